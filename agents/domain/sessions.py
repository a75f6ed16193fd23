"""Sessions: launching an agent, and what a person changes about it afterwards."""

from __future__ import annotations

from collections.abc import Iterable
from copy import copy
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

from django.core.exceptions import ValidationError
from django.db import transaction
from django.utils import timezone

from agents.errors import InvalidInputError, NotAllowedError
from agents.events.bus import control_group, publish_on_commit, ring_on_commit
from agents.events.vocabulary import NameUpdated
from agents.models import (
    AgentSession,
    ListedFolder,
    MessageBranch,
    Provider,
    Task,
    Ticket,
    User,
)
from agents.models.sessions import Network
from agents.models.users import Effort
from agents.policy.modes import SecurityMode
from agents.rendering.text import clean_text, preview

from . import analytics, audit, budgets, messages, releases, tasks
from .accounts import preferences_of
from .lifecycle import close_session as close_session
from .lifecycle import delete_session as delete_session
from .lifecycle import get_all_sessions as get_all_sessions
from .lifecycle import get_browser_agent_children as get_browser_agent_children
from .lifecycle import get_session as get_session
from .lifecycle import persist_all_sessions as persist_all_sessions
from .lifecycle import pin_session as pin_session
from .lifecycle import restore_all_sessions as restore_all_sessions
from .lifecycle import resume_session as resume_session
from .model_choice import check_model
from .modes import find_mode as find_mode
from .providers import provider_for
from .status import publish_status
from .subagents import share_with_sub_agents
from .workspaces import choose_folder

NAME_CHARACTERS = 60
_BUDGETS = ("max_budget_usd_micros", "run_budget_usd_micros")
_CHOSEN = ("model", "effort", "network", "max_steps", "temperature", *_BUDGETS)


@dataclass(frozen=True, slots=True, kw_only=True)
class LaunchConfig:
    """What "New agent" asks; everything but the task has a default."""

    task: str
    name: str = ""
    mode: str = ""
    model: str = ""
    provider: Provider | None = None
    effort: str = ""
    security_mode: str = ""
    system_prompt: str = ""
    network: str = Network.NONE
    mcp_servers_off: list[str] = field(default_factory=list)
    """Ids of the MCP servers that the agent is not given."""
    folder: ListedFolder | None = None
    worktree: bool = False
    """Work in a git worktree of the folder instead of in the folder itself."""
    linked_task: Task | None = None
    """The task of the board that the agent works on."""
    linked_ticket: Ticket | None = None
    max_steps: int | None = None
    max_budget_usd_micros: int | None = None
    run_budget_usd_micros: int | None = None
    """None: what the person prefers."""
    temperature: float | None = None
    client_message_id: UUID | None = None
    attachments: dict[str, Any] = field(default_factory=dict)


@transaction.atomic
def launch_agent(owner: User, config: LaunchConfig) -> AgentSession:
    """Make a session and send it its first message, both or neither.

    Idempotent by `client_message_id`, as long as the task is the same.

    Raises: NotAllowedError for viewers, InvalidInputError naming the field.
    """
    if not owner.may_start_agents:
        raise NotAllowedError("Viewers can look at agents, but not start them.")
    task = messages.clean_prompt(config.task)
    launched = _find_launched(owner, config.client_message_id, task)
    if launched is not None:
        return launched
    session = _new_session(owner, task, config)
    session.save()
    session.active_branch = MessageBranch.objects.create(session=session)
    session.save(update_fields=["active_branch"])
    if session.task is not None:
        tasks.start_task(session.task)
    analytics.session_started(session)
    messages.send_message(
        session,
        author=owner,
        text=task,
        client_message_id=config.client_message_id,
        attachments=config.attachments,
    )
    session.refresh_from_db()
    return session


def _find_launched(
    owner: User, client_message_id: UUID | None, task: str
) -> AgentSession | None:
    """What a form that was sent twice started the first time."""
    if client_message_id is None:
        return None
    # Two sends at once: the second one waits here and then finds the first.
    User.objects.select_for_update(no_key=True).get(pk=owner.pk)
    return owner.sessions.filter(
        messages__client_message_id=client_message_id, messages__text=task
    ).first()


def _new_session(owner: User, task: str, config: LaunchConfig) -> AgentSession:
    preferences = preferences_of(owner)
    mode = find_mode(owner, config.mode or preferences.default_mode)
    session = AgentSession(
        owner=owner,
        name=clean_text(config.name).strip()[:NAME_CHARACTERS]
        or preview(task, NAME_CHARACTERS),
        name_is_automatic=not clean_text(config.name).strip(),
        mode=mode.slug,
        allowed_tools=mode.tools,
        model=clean_text(config.model) or preferences.default_model,
        provider=config.provider,
        effort=config.effort or preferences.default_effort or Effort.MEDIUM,
        security_mode=allowed_security_mode(
            owner, config.security_mode or preferences.default_security_mode
        ),
        system_prompt=clean_text(config.system_prompt),
        on_timeout=preferences.on_timeout,
        network=config.network,
        task=config.linked_task,
        ticket=config.linked_ticket,
        mcp_servers_off=config.mcp_servers_off,
        max_steps=config.max_steps,
        max_budget_usd_micros=config.max_budget_usd_micros,
        run_budget_usd_micros=config.run_budget_usd_micros
        if config.run_budget_usd_micros is not None
        else preferences.run_budget_usd_micros,
        temperature=config.temperature,
    )
    _check(session, _CHOSEN)
    if clean_text(config.model):
        check_model(session.model, provider_for(session), owner)
        session.model_set_by, session.model_set_at = owner, timezone.now()
    folder = config.folder or preferences.default_folder
    choose_folder(session, folder, worktree=config.worktree)
    return session


def _check(session: AgentSession, names: Iterable[str]) -> None:
    """Raises: InvalidInputError for the first of these columns that is not valid."""
    others = {field.name for field in AgentSession._meta.concrete_fields} - set(names)
    try:
        session.clean_fields(exclude=others)
    except ValidationError as error:
        name, sentences = next(iter(error.message_dict.items()))
        raise InvalidInputError(sentences[0], field=name) from error


def allowed_security_mode(user: User, mode: str) -> str:
    """Raises: InvalidInputError when the mode is wider than the person's ceiling."""
    try:
        wanted = SecurityMode(mode)
    except ValueError:
        raise InvalidInputError(
            f"“{mode}” is not a security mode.", field="security_mode"
        ) from None
    ceiling = SecurityMode(user.security_ceiling)
    if wanted.rank > ceiling.rank:
        raise InvalidInputError(
            f"The widest security mode you may use is “{ceiling}”.",
            field="security_mode",
        )
    return wanted.value


@transaction.atomic
def rename_session(session: AgentSession, name: str) -> None:
    """A name that a person gave is never replaced by a generated title.

    Raises: InvalidInputError for an empty name.
    """
    cleaned = clean_text(name).strip()[:200]
    if not cleaned:
        raise InvalidInputError("A session needs a name.", field="name")
    AgentSession.objects.filter(pk=session.pk).update(
        name=cleaned, name_is_automatic=False
    )
    session.name, session.name_is_automatic = cleaned, False
    publish_on_commit(NameUpdated(session_id=session.pk, name=cleaned))


@transaction.atomic
def update_session(session: AgentSession, user: User, **fields: Any) -> None:
    """Change settings of a session; a running agent is told at once.

    `fields` may name security_mode, model, effort, max_steps, system_prompt, network,
    pinned, mcp_servers_off, on_timeout, mode and the budgets. What waits for a person
    and is allowed or forbidden by the new mode is answered by it.

    Raises: InvalidInputError naming the field.
    """
    before = copy(session)
    if fields.get("security_mode", session.security_mode) != session.security_mode:
        _check_security_mode(session, user, fields["security_mode"])
    # One that stays keeps its tools: it may be deleted, or they may be fewer here.
    if fields.get("mode", session.mode) != session.mode:
        fields["allowed_tools"] = find_mode(session.owner, fields["mode"]).tools
    if "model" in fields and fields["model"] != session.model:
        if fields["model"]:
            people = {session.owner, user}
            check_model(fields["model"], provider_for(session), *people)
        fields |= {"model_set_by": user, "model_set_at": timezone.now()}
    for name, value in fields.items():
        setattr(session, name, clean_text(value) if isinstance(value, str) else value)
    _check(session, fields)
    session.save(update_fields=list(fields))
    share_with_sub_agents(session, fields)
    if any(getattr(session, name) != getattr(before, name) for name in _BUDGETS):
        budgets.forget_raises(session)
        transaction.on_commit(releases.release_within_budgets)
    _note_changes(session, before, user)
    ring_on_commit(control_group(session.pk), {"type": "control.changed"})
    publish_status(session.pk)
    if _binds_differently(session, before):
        releases.settle_in_session(session, user)


def _check_security_mode(session: AgentSession, user: User, mode: str) -> None:
    """Neither who changes it nor whose session it is may go past their ceiling."""
    allowed_security_mode(user, mode)
    allowed_security_mode(session.owner, mode)


def _binds_differently(session: AgentSession, before: AgentSession) -> bool:
    names = ("security_mode", "allowed_tools", "mode", "mcp_servers_off")
    return any(getattr(session, name) != getattr(before, name) for name in names)


def _note_changes(session: AgentSession, before: AgentSession, user: User) -> None:
    if session.security_mode != before.security_mode:
        audit.record(
            "session.security_mode",
            actor=user,
            target=session,
            before=before.security_mode,
            after=session.security_mode,
        )
    if session.model != before.model:
        analytics.model_switched(session, before, user=user)
    if session.mode != before.mode:
        analytics.feature_used(
            session, "mode.switched", from_mode=before.mode, to_mode=session.mode
        )
