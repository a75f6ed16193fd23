"""What a run needs from the database before its client starts."""

from __future__ import annotations

import uuid
from dataclasses import dataclass
from pathlib import Path

from claude_agent_sdk import project_key_for_directory

from agents.conf import conf
from agents.domain import workspaces
from agents.domain.capability import capability_of
from agents.domain.mcp_offers import offered_servers, with_tools
from agents.domain.model_choice import check_allowed, choose_model, resolve_model_id
from agents.domain.providers import provider_for
from agents.domain.skills import packages_of
from agents.domain.snapshots import restores_files
from agents.domain.transcripts import (
    copy_transcript,
    has_entry,
    has_transcript,
    is_summarised_after,
    last_entry_uuid,
    turn_end_before,
)
from agents.errors import JailUnavailableError, SessionGoneError
from agents.gateway.lines import Upstream
from agents.gateway.upstreams import resolve_upstream
from agents.models import AgentSession, Message, MessageBranch, Preferences, Run
from agents.models.runs import RunKind
from agents.models.sessions import Network
from agents.policy.limits import step_limit
from agents.policy.modes import plans_first
from agents.policy.tools import SKILL_TOOL
from agents.workspaces.plugins import write_plugin

from .confinement import JailStatus
from .options import ClientSetup, Start, compute_tool_permissions
from .prompt_builder import (
    PromptContent,
    build_prompt_content,
    session_system_prompt,
)

# The CLI's own; a person's text is never taken for a command.
COMPACT_COMMAND = "/compact"


@dataclass(frozen=True, slots=True)
class Prepared:
    setup: ClientSetup
    start: Start
    upstream: Upstream
    content: PromptContent | None
    """None: there is nothing to say, the CLI takes up the call that was put aside."""
    prompt_id: uuid.UUID
    """The prompt's id in the transcript; on its message, for a retry to find."""
    needs_files_first: bool
    """Whether files are put back before, or a call runs before anything is said."""


def prepare(run: Run, jail: JailStatus) -> Prepared:
    """Read everything the turn starts with.

    Raises: JailUnavailableError, FolderMissingError, WorkspaceError,
        SessionGoneError, InvalidInputError for a model that may not be used.
    """
    session = AgentSession.objects.select_related(
        "owner", "provider", "worktree_of"
    ).get(pk=run.session_id)
    preferences, _ = Preferences.objects.get_or_create(user=session.owner)
    session.owner.preferences = preferences
    if conf().require_jail and not jail.jailed:
        raise JailUnavailableError(
            f"This site runs agents in the jail only, and {jail.reason}"
        )
    folder = workspaces.ensure_folder(session)
    start = _start(run, folder)
    is_compaction = run.kind == RunKind.COMPACT
    provider = provider_for(session)
    model = resolve_model_id(
        choose_model(session, run.trigger_message.model).model, provider
    )
    plain = model.removeprefix(provider.model_prefix)
    check_allowed(plain, session.owner)
    capability = capability_of(plain)
    tools = compute_tool_permissions(session, capability)
    setup = ClientSetup(
        session_id=session.pk,
        sdk_session_id=run.branch.sdk_session_id,
        cwd=folder,
        model=model,
        effort=capability.effort_for(session.effort),
        thinks=capability.thinking,
        system_prompt=session_system_prompt(session, has_tools=bool(tools)),
        tools=tools,
        servers=with_tools(offered_servers(session), tools),
        max_steps=_steps_left(run, session),
        network=session.network == Network.OPEN,
        provider_id=provider.pk,
        timezone=preferences.timezone or "UTC",
        folder_inode=folder.stat().st_ino,
        mounts=workspaces.jail_mounts(session),
        plugin=_plugin(session, tools),
        plans_first=plans_first(session.allowed_tools),
        is_verbatim=not is_compaction,
    )
    Run.objects.filter(pk=run.pk).update(
        model_requested=setup.model, jailed=jail.jailed
    )
    run.model_requested = setup.model
    return Prepared(
        setup=setup,
        start=start,
        upstream=resolve_upstream(session),
        content=COMPACT_COMMAND if is_compaction else _content(run),
        prompt_id=_name_prompt(run),
        needs_files_first=bool(run.deferred_tool_use_id) or restores_files(run),
    )


def _steps_left(run: Run, session: AgentSession) -> int:
    """The CLI's own limit, a second belt; it takes 0 for no limit."""
    return max(step_limit(session.effort, session.max_steps) - run.steps, 1)


def _plugin(session: AgentSession, tools: tuple[str, ...]) -> Path | None:
    """The owner's skills, where the session offers the tool that looks them up."""
    if SKILL_TOOL not in tools:
        return None
    return write_plugin(session.pk, packages_of(session.owner))


def _content(run: Run) -> PromptContent | None:
    if run.deferred_tool_use_id:
        return None
    return build_prompt_content(run)


def _start(run: Run, folder: Path) -> Start:
    """Where the conversation goes on.

    A branch that was not begun yet starts with the memory it was forked with.

    A retry goes back to where its prompt was put first, so that the prompt is not in
    the history twice and nothing from before it is lost.
    """
    branch = run.branch
    if run.kind == RunKind.RETRY and _is_in_transcript(run):
        before = _turn_end_before(run)
        if before is not None:
            return _go_back_to(before, branch, folder)
    elif has_transcript(branch.sdk_session_id):
        return Start(is_resumed=True)
    # A first turn that was killed may have left the id to the CLI's own files; it
    # refuses to begin under it again.
    _begin_anew(branch)
    return _fork_memory(branch, folder)


def _go_back_to(entry_id: uuid.UUID, branch: MessageBranch, folder: Path) -> Start:
    """Resume there; where a summary came later, only a copy without it can be."""
    if not is_summarised_after(branch.sdk_session_id, entry_id):
        return Start(is_resumed=True, resume_at=entry_id)
    branch.sdk_fork_session_id = branch.sdk_session_id
    branch.sdk_fork_uuid = entry_id
    _save(branch, "sdk_fork_session_id", "sdk_fork_uuid")
    _begin_anew(branch)
    return _fork_memory(branch, folder)


def _fork_memory(branch: MessageBranch, folder: Path) -> Start:
    source_id, entry_id = branch.sdk_fork_session_id, branch.sdk_fork_uuid
    if source_id is None or entry_id is None:
        return Start(is_resumed=False)
    key = project_key_for_directory(folder)
    if not copy_transcript(source_id, entry_id, branch.sdk_session_id, project_key=key):
        return Start(is_resumed=False)
    return Start(is_resumed=True, resume_at=entry_id)


def _is_in_transcript(run: Run) -> bool:
    prompt_id = run.trigger_message.sdk_uuid
    return prompt_id is not None and has_entry(run.branch.sdk_session_id, prompt_id)


def _turn_end_before(run: Run) -> uuid.UUID | None:
    prompt_id = run.trigger_message.sdk_uuid
    assert prompt_id is not None, "asked of prompts that are in the transcript"
    return turn_end_before(run.branch.sdk_session_id, prompt_id)


def _begin_anew(branch: MessageBranch) -> None:
    branch.sdk_session_id = uuid.uuid4()
    _save(branch, "sdk_session_id")


def _save(branch: MessageBranch, *names: str) -> None:
    values = {name: getattr(branch, name) for name in names}
    if not MessageBranch.objects.filter(pk=branch.pk).update(**values):
        raise SessionGoneError


def _name_prompt(run: Run) -> uuid.UUID:
    """A fresh id for the prompt: one that was used is dropped silently.

    The message keeps the id of its first try: later ones start from the same place.
    """
    prompt_id = uuid.uuid4()
    is_own_prompt = run.kind != RunKind.RESUME
    if is_own_prompt and not (run.kind == RunKind.RETRY and _is_in_transcript(run)):
        Message.objects.filter(pk=run.trigger_message_id).update(sdk_uuid=prompt_id)
    return prompt_id


def end_of_transcript(run: Run) -> uuid.UUID | None:
    return last_entry_uuid(run.branch.sdk_session_id)
