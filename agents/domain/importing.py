"""Makes a session of a file that `export.py` wrote, here or elsewhere.

The file is a stranger's word. What it says was said is kept; what would give it power
is not: everything belongs to the importer and gets new ids, nothing waits or runs,
decisions are spent, no cost is entered, HTML is rendered anew, and folders, rights and
the system prompt are the importer's own.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from typing import Any
from uuid import UUID

from django.db import IntegrityError, transaction
from django.utils import timezone

from agents.errors import InvalidInputError, NotAllowedError
from agents.models import (
    AgentSession,
    ApprovalRequest,
    Message,
    MessageBranch,
    Run,
    User,
)
from agents.models.approvals import ApprovalKind, ApprovalStatus
from agents.models.messages import MessageRole, ToolOutcome
from agents.models.runs import RunKind, RunState, StopReason
from agents.models.users import Effort
from agents.policy.modes import SecurityMode
from agents.rendering.markdown import render_markdown
from agents.rendering.text import preview
from agents.workspaces.folders import create_workspace, workspace_of

from . import audit
from .accounts import preferences_of
from .approvals import hash_input
from .attachments import with_summary
from .export import FORMAT, IMPORTED_KIND, VERSION
from .import_reading import Row, parse, refuse
from .import_values import kept_attachments, kept_content
from .sessions import find_mode
from .status import refresh_status

MAX_FILE_BYTES = 20 * 1024 * 1024
MAX_MESSAGES = 20_000
MAX_BRANCHES = 1_000
MAX_RENDERED_CHARACTERS = 2_000_000
"""Rendering takes some 6 s a million; what is beyond is shown as plain text."""
_NOTICE = (
    "This conversation was imported from a file. The agent remembers nothing of it, and"
    " its system prompt was not taken over."
)


def import_session(user: User, data: bytes) -> AgentSession:
    """Raises: InvalidInputError that says what is wrong, NotAllowedError to viewers."""
    if not user.may_start_agents:
        raise NotAllowedError("Viewers can look at agents, but not import them.")
    if len(data) > MAX_FILE_BYTES:
        megabytes = MAX_FILE_BYTES // 1024**2
        raise refuse(f"The file is larger than {megabytes} MB.")
    file = parse(data)
    if file.text("format", 100) != FORMAT:
        raise refuse("This is not an exported session.")
    if file.number("version") != VERSION:
        raise refuse("This session was exported by another version of OpenSwarm.")
    imported = _Import(user, file)
    imported.read()
    try:
        return imported.save()
    except IntegrityError as error:
        raise refuse("The file contradicts itself.") from error


@dataclass(slots=True)
class _Import:
    user: User
    file: Row
    now: datetime = field(default_factory=timezone.now)
    session: AgentSession = field(init=False)
    branches: dict[str, MessageBranch] = field(default_factory=dict)
    messages: dict[str, Message] = field(default_factory=dict)
    runs: dict[str, Run] = field(default_factory=dict)
    last_words: dict[UUID, datetime] = field(default_factory=dict)
    """By run: when it last said something, for one that the file says is still on."""
    approvals: list[ApprovalRequest] = field(default_factory=list)

    def read(self) -> None:
        self.session = _read_session(self.user, self.file.row("session"))
        self._read_branches(self.file.rows("branches", MAX_BRANCHES))
        runs = self.file.rows("runs", MAX_MESSAGES)
        for row in runs:
            self.runs[row.key("id")] = Run(session=self.session)
        self._read_messages(self.file.rows("messages", MAX_MESSAGES))
        for row in runs:
            self._fill_run(row)
        self._read_forks()
        for row in self.file.rows("approvals", MAX_MESSAGES):
            self._read_approval(row)
        self._conclude()

    def _read_branches(self, rows: list[Row]) -> None:
        if not rows:
            raise refuse("The file has no branches.")
        for row in rows:
            self.branches[row.key("id")] = MessageBranch(
                session=self.session, created_at=row.time("created_at") or self.now
            )
        for row in rows:
            if row.has("parent_id"):
                branch = self.branches[row.key("id")]
                branch.parent_branch = self._branch(row, "parent_id")
        _refuse_circles(self.branches.values())

    def _branch(self, row: Row, name: str) -> MessageBranch:
        found: MessageBranch = _known(self.branches, row, name)
        return found

    def _read_messages(self, rows: list[Row]) -> None:
        """Places are counted anew, in the order of the file's."""
        placed = sorted(rows, key=lambda row: row.number("seq") or 0)
        for seq, row in enumerate(placed, start=1):
            key = row.key("id")
            if key in self.messages:
                raise row.wrong("id", "is there twice")
            message = self.messages[key] = self._read_message(row, seq)
            if message.run_id is not None:
                spoken_at = self.last_words.get(message.run_id, message.created_at)
                self.last_words[message.run_id] = max(spoken_at, message.created_at)
        self._interrupt_open_calls()

    def _interrupt_open_calls(self) -> None:
        """What waited or ran when the file was written has no result any more."""
        answered = {
            message.tool_use_id
            for message in self.messages.values()
            if message.role == MessageRole.TOOL_RESULT
        }
        for message in self.messages.values():
            is_call = message.role == MessageRole.TOOL_CALL
            if is_call and message.tool_use_id not in answered:
                message.is_interrupted = True

    def _read_message(self, row: Row, seq: int) -> Message:
        role = row.choice("role", MessageRole.values)
        attachments = kept_attachments(row.object("attachments"))
        return Message(
            session=self.session,
            branch=self._branch(row, "branch_id"),
            run=_known(self.runs, row, "run_id") if row.has("run_id") else None,
            seq=seq,
            role=role,
            text=row.text("text"),
            content=with_summary(
                kept_content(role, row.object("content")), attachments
            ),
            tool_name=row.text("tool_name", 200),
            tool_use_id=row.text("tool_use_id", 200),
            parent_tool_use_id=row.text("parent_tool_use_id", 200),
            outcome=row.choice("outcome", [*ToolOutcome.values, ""]),
            elapsed_ms=row.number("elapsed_ms"),
            model=row.text("model", 200),
            hidden=row.flag("hidden"),
            is_interrupted=row.flag("is_interrupted"),
            is_error=row.flag("is_error"),
            attachments=attachments,
            created_at=row.time("created_at") or self.now,
        )

    def _fill_run(self, row: Row) -> None:
        """Every run has ended, whatever the file says; what it cost is not ours."""
        run = self.runs[row.key("id")]
        run.branch = self._branch(row, "branch_id")
        run.trigger_message = _known(self.messages, row, "message_id")
        run.kind = row.choice("kind", RunKind.values, RunKind.PROMPT)
        run.state = RunState.FINISHED
        run.stop_reason = row.choice(
            "stop_reason", StopReason.values, StopReason.CANCELLED
        )
        run.success = row.answer("success")
        run.steps = row.number("steps") or 0
        run.model_requested = row.text("model_requested", 200)
        run.model_actual = row.text("model_actual", 200)
        run.error_class = row.text("error_class", 40)
        run.error_text = row.text("error_text")
        run.created_at = row.time("created_at") or self.now
        run.started_at = row.time("started_at")
        ended = row.time("finished_at") or self.last_words.get(run.pk, run.created_at)
        run.finished_at = max(ended, run.started_at or ended)

    def _read_forks(self) -> None:
        for row in self.file.rows("branches", MAX_BRANCHES):
            if row.has("fork_message_id"):
                branch = self.branches[row.key("id")]
                branch.fork_point_message = _known(
                    self.messages, row, "fork_message_id"
                )

    def _read_approval(self, row: Row) -> None:
        """A record of what was decided: nothing in it can be decided or used again."""
        created_at = row.time("created_at") or self.now
        status = row.choice("status", ApprovalStatus.values)
        tool_name, tool_input = row.text("tool_name", 200), row.object("tool_input")
        if status == ApprovalStatus.PENDING:
            status = ApprovalStatus.CANCELLED
        self.approvals.append(
            ApprovalRequest(
                session=self.session,
                run=_known(self.runs, row, "run_id"),
                kind=row.choice("kind", ApprovalKind.values, ApprovalKind.APPROVAL),
                tool_use_id=row.key("tool_use_id"),
                tool_name=tool_name,
                tool_input=tool_input,
                input_sha256=hash_input(tool_name, tool_input),
                reason=row.text("reason"),
                status=status,
                decided_at=row.time("decided_at"),
                channel="import",
                message=row.text("message"),
                updated_input=row.object("updated_input")
                if row.has("updated_input")
                else None,
                consumed_at=created_at,
                created_at=created_at,
                expires_at=created_at,
            )
        )

    def _conclude(self) -> None:
        active = self.file.text("active_branch_id", 200)
        branch = self.branches.get(active) or next(iter(self.branches.values()))
        notice = Message(
            session=self.session,
            branch=branch,
            seq=len(self.messages) + 1,
            role=MessageRole.SYSTEM,
            text=_NOTICE,
            content={"kind": IMPORTED_KIND, "title": "Imported"},
        )
        self.messages[""] = notice  # no id of the file is empty
        session = self.session
        session.active_branch = branch
        session.last_message_seq = session.message_count = notice.seq
        session.last_preview = self._preview()
        self._render()

    def _preview(self) -> str:
        for message in reversed(self.messages.values()):
            said = message.role in (MessageRole.USER, MessageRole.ASSISTANT)
            if said and message.text.strip() and not message.hidden:
                return preview(message.text, 120)
        return ""

    def _render(self) -> None:
        """The newest first, as far as the time for it goes."""
        left = MAX_RENDERED_CHARACTERS
        for message in reversed(self.messages.values()):
            if message.role == MessageRole.ASSISTANT and message.text:
                left -= len(message.text)
                if left < 0:
                    return
                message.rendered_html = render_markdown(message.text)

    @transaction.atomic
    def save(self) -> AgentSession:
        session = self.session
        session.cwd = str(workspace_of(self.user.pk, session.pk))
        session.save()
        MessageBranch.objects.bulk_create(self.branches.values())
        Run.objects.bulk_create(self.runs.values())
        Message.objects.bulk_create(self.messages.values(), batch_size=500)
        ApprovalRequest.objects.bulk_create(self.approvals)
        audit.record("session.imported", actor=self.user, target=session)
        create_workspace(self.user.pk, session.pk)  # last: it is not rolled back
        refresh_status(session.pk, always_publish=True)
        session.refresh_from_db()
        return session


def _read_session(user: User, row: Row) -> AgentSession:
    preferences = preferences_of(user)
    try:
        mode = find_mode(user, row.text("mode", 64))
    except InvalidInputError:
        mode = find_mode(user, preferences.default_mode)
    wanted = SecurityMode(preferences.default_security_mode)
    ceiling = SecurityMode(user.security_ceiling)
    return AgentSession(
        owner=user,
        name=row.text("name", 200).strip() or "Imported session",
        name_is_automatic=False,
        mode=mode.slug,
        allowed_tools=mode.tools,
        model=preferences.default_model,
        effort=row.choice("effort", Effort.values, Effort.MEDIUM),
        security_mode=wanted.capped_by(ceiling).value,
        on_timeout=preferences.on_timeout,
        created_at=row.time("created_at") or timezone.now(),
    )


def _known(rows: dict[str, Any], row: Row, name: str) -> Any:
    found = rows.get(row.key(name))
    if found is None:
        raise row.wrong(name, "names something that is not in the file")
    return found


def _refuse_circles(branches: Any) -> None:
    """Raises: InvalidInputError: a branch would be its own ancestor."""
    rooted: set[UUID] = set()
    for branch in branches:
        path: list[UUID] = []
        step: MessageBranch | None = branch
        while step is not None and step.pk not in rooted:
            if step.pk in path:
                raise refuse("The file's branches go in a circle.")
            path.append(step.pk)
            step = step.parent_branch
        rooted.update(path)
