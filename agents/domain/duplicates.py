"""Duplicates: a session of its own that goes on from what another one holds.

The copy shows the branch up to a message, and the model remembers exactly that.
"""

from __future__ import annotations

import shutil
from pathlib import Path
from uuid import UUID

from django.db import transaction
from django.db.models import Q

from agents.errors import InvalidInputError, WorkspaceError
from agents.models import (
    AgentSession,
    Message,
    MessageBranch,
    Provider,
    ToolGroupMeta,
    User,
)
from agents.models.messages import MessageRole
from agents.models.sessions import SessionKind
from agents.policy.modes import SecurityMode
from agents.workspaces.disk import remove_tree
from agents.workspaces.folders import create_workspace

from . import audit
from .branches import memory_at_end, memory_before
from .queries.branches import lineage, within
from .status import refresh_status

_SETTINGS = (
    "mode",
    "model",
    "system_prompt",
    "effort",
    "max_steps",
    "max_budget_usd_micros",
    "run_budget_usd_micros",
    "temperature",
    "allowed_tools",
    "mcp_servers_off",
    "on_timeout",
    "network",
)
_NOT_COPIED = {
    "id",
    "session",
    "branch",
    "run",
    "seq",
    "client_message_id",
    "created_at",
    "updated_at",
}


def duplicate_session(
    session: AgentSession,
    owner: User,
    *,
    up_to: Message | None = None,
    name: str = "",
    kind: SessionKind = SessionKind.CHAT,
    parent: AgentSession | None = None,
    shares_folder: bool = False,
) -> AgentSession:
    """Copy the shown branch, up to and including a message, with the model's memory.

    Where the shown branch does not have the message, its own branch is copied.

    Files are copied into a workspace of its own, unless the folder is not ours or
    `shares_folder` says to work in the same one. The copy belongs to `owner`. Large
    folders take their time, so it must not be called inside a transaction then.

    Raises: InvalidInputError when `up_to` can't be copied; WorkspaceError when the
        files can't be, and then nothing is left behind.
    """
    branch = _branch_of(session, up_to)
    _shown(session, branch, up_to)
    copy = AgentSession(
        owner=owner,
        name=(name or f"{session.name} (copy)")[:200],
        name_is_automatic=False,
        kind=kind,
        parent_session=parent,
        depth=parent.depth + 1 if parent else 0,
        security_mode=_narrower(session, owner),
        provider=_usable_provider(session, owner),
        **{field: getattr(session, field) for field in _SETTINGS},
    )
    try:
        _give_folder(copy, session, shares_folder=shares_folder)
        _store(copy, session, branch, up_to)
    except (OSError, RecursionError) as error:
        _remove_folder(copy)
        reason = getattr(error, "strerror", None) or "some can't be read"
        raise WorkspaceError(f"The files can't be copied: {reason}.") from error
    except Exception:
        _remove_folder(copy)
        raise
    copy.refresh_from_db()
    return copy


@transaction.atomic
def _store(
    copy: AgentSession,
    session: AgentSession,
    branch: MessageBranch,
    up_to: Message | None,
) -> None:
    shown = _shown(session, branch, up_to)
    source_id, entry_id = _memory(branch, up_to)
    copy.save()
    copy.active_branch = MessageBranch.objects.create(
        session=copy, sdk_fork_session_id=source_id, sdk_fork_uuid=entry_id
    )
    copy.save(update_fields=["active_branch"])
    new_ids = _copy_messages(shown, copy, copy.active_branch)
    _copy_groups(session, copy, new_ids)
    audit.record(
        "session.duplicated", actor=copy.owner, target=copy, source=str(session.pk)
    )
    refresh_status(copy.pk, always_publish=True)


def _remove_folder(copy: AgentSession) -> None:
    if copy.owns_cwd:
        remove_tree(Path(copy.cwd))


def _usable_provider(session: AgentSession, owner: User) -> Provider | None:
    """The session's provider, unless it is somebody else's own."""
    if session.provider_id is None:
        return None
    return Provider.objects.visible_to(owner).filter(pk=session.provider_id).first()


def _branch_of(session: AgentSession, up_to: Message | None) -> MessageBranch:
    """The shown branch, or the message's own where the shown one doesn't have it."""
    if session.active_branch is None:
        raise InvalidInputError("What a sub-agent said can't be duplicated.")
    if up_to is None:
        return session.active_branch
    if up_to.session_id != session.pk:
        raise InvalidInputError("This message is not part of the session.")
    shown = within(lineage(session.pk, session.active_branch_id))
    is_shown = session.messages.filter(shown, pk=up_to.pk).exists()
    return session.active_branch if is_shown else up_to.branch


def _shown(
    session: AgentSession, branch: MessageBranch, up_to: Message | None
) -> list[Message]:
    """What the branch shows, finished and delivered; hidden prompts stay hidden."""
    rows = session.messages.filter(within(lineage(session.pk, branch.pk)))
    rows = rows.delivered()
    if up_to is not None:
        if not rows.filter(pk=up_to.pk).exists():
            raise InvalidInputError("This message was not delivered yet.")
        rows = rows.filter(seq__lte=_last_seq(up_to))
    return list(rows.order_by("seq"))


def _last_seq(up_to: Message) -> int:
    """A call is copied with its result, also where the result came later."""
    result = Message.objects.filter(
        session_id=up_to.session_id,
        branch_id=up_to.branch_id,
        role=MessageRole.TOOL_RESULT,
        tool_use_id=up_to.tool_use_id,
    ).exclude(tool_use_id="")
    seqs = result.values_list("seq", flat=True)
    return max([up_to.seq, *seqs])


def _memory(
    branch: MessageBranch, up_to: Message | None
) -> tuple[UUID | None, UUID | None]:
    """The model's memory ends with the turn that the last copied message is part of.

    A prompt without its answer is copied as text alone: the model has not seen it.
    """
    if up_to is None:
        return memory_at_end(branch)
    if up_to.role == MessageRole.USER:
        return memory_before(up_to)
    is_prompt = Q(role=MessageRole.USER, sdk_uuid__isnull=False)
    is_divider = Q(role=MessageRole.SYSTEM, content__kind="cleared")
    following = (
        Message.objects.filter(
            within(lineage(up_to.session_id, branch.pk)),
            is_prompt | is_divider,
            session_id=up_to.session_id,
            seq__gt=up_to.seq,
        )
        .order_by("seq")
        .select_related("branch__fork_point_message__branch")
        .first()
    )
    if following is None:
        return memory_at_end(branch)
    if following.role == MessageRole.SYSTEM:  # the memory ends where it was cleared
        following = following.branch.fork_point_message or following
    return memory_before(following)


def _narrower(session: AgentSession, owner: User) -> str:
    """The session's security mode, within what the new owner may use."""
    wanted = SecurityMode(session.security_mode)
    return wanted.capped_by(SecurityMode(owner.security_ceiling)).value


def _give_folder(
    copy: AgentSession, session: AgentSession, *, shares_folder: bool
) -> None:
    copy.cwd, copy.owns_cwd = session.cwd, False
    if shares_folder or not session.owns_cwd:
        return
    folder = create_workspace(copy.owner_id, copy.pk)
    copy.cwd, copy.owns_cwd = str(folder), True
    if Path(session.cwd).is_dir():
        shutil.copytree(
            session.cwd,
            folder,
            symlinks=True,  # links stay links: what they point to is not ours to copy
            dirs_exist_ok=True,
            ignore=_only_files,
        )
    if session.worktree_of_id is not None:
        # It points to the worktree of the other session; the copy is plain files.
        (folder / ".git").unlink(missing_ok=True)


def _only_files(folder: str, names: list[str]) -> set[str]:
    """Sockets and pipes can't be copied, and reading a pipe would wait for ever."""
    paths = ((name, Path(folder, name)) for name in names)
    return {
        name
        for name, path in paths
        if not (path.is_symlink() or path.is_file() or path.is_dir())
    }


def _copy_messages(
    shown: list[Message], copy: AgentSession, branch: MessageBranch
) -> dict[UUID, UUID]:
    """Returns: the new id of each copied message."""
    names = [
        field.name
        for field in Message._meta.concrete_fields
        if field.name not in _NOT_COPIED
    ]
    rows = []
    for seq, message in enumerate(shown, start=1):
        values = {name: getattr(message, name) for name in names}
        values |= {"is_streaming": False, "queued_at": None, "delivered_at": None}
        rows.append(Message(session=copy, branch=branch, seq=seq, **values))
    Message.objects.bulk_create(rows, batch_size=500)
    AgentSession.objects.filter(pk=copy.pk).update(
        last_message_seq=len(rows),
        message_count=len(rows),
        last_preview=AgentSession.objects.filter(pk=shown[0].session_id)
        .values_list("last_preview", flat=True)
        .get()
        if shown
        else "",
    )
    return {old.pk: new.pk for old, new in zip(shown, rows, strict=True)}


def _copy_groups(
    session: AgentSession, copy: AgentSession, new_ids: dict[UUID, UUID]
) -> None:
    ToolGroupMeta.objects.bulk_create(
        ToolGroupMeta(
            session=copy,
            first_message_id=new_ids[group.first_message_id],
            name=group.name,
            svg=group.svg,
            is_refined=group.is_refined,
        )
        for group in session.tool_groups.all()
        if group.first_message_id in new_ids
    )
