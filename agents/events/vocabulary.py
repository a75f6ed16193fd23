"""The closed set of events: one frozen dataclass per fact, one wire name each.

The JSON API, the SSE stream and the HTML frames all come from these. Durable events
are rows with a seq per session; `StreamDelta` and `SessionDeleted` are not. `SLIM` ones
also ring at the people who may see the session, wherever they are on the site.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, ClassVar
from uuid import UUID


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    wire: ClassVar[str] = ""
    is_slim: ClassVar[bool] = False
    is_durable: ClassVar[bool] = True

    session_id: UUID

    def data(self) -> dict[str, Any]:
        """The event's fields as JSON values, without the session's id."""
        fields = asdict(self)
        del fields["session_id"]
        return {
            name: str(value) if isinstance(value, UUID) else value
            for name, value in fields.items()
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class StatusChanged(Event):
    """The session's status, name or totals changed; carries the new status."""

    wire: ClassVar[str] = "agent:status"
    is_slim: ClassVar[bool] = True

    status: str


@dataclass(frozen=True, slots=True, kw_only=True)
class MessageSaved(Event):
    """A message row came into being, or a finished one changed."""

    wire: ClassVar[str] = "agent:message"

    message_id: UUID
    branch_id: UUID
    role: str
    tool_use_id: str = ""
    is_new: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class CostUpdated(Event):
    wire: ClassVar[str] = "agent:cost_update"
    is_slim: ClassVar[bool] = True

    cost_usd_micros: int
    cost_is_partial: bool
    input_tokens: int
    output_tokens: int


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamStarted(Event):
    wire: ClassVar[str] = "agent:stream_start"

    message_id: UUID
    branch_id: UUID
    role: str
    tool_name: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamDelta(Event):
    """Text since `offset`, which is the length surely in the row; no row of its own."""

    wire: ClassVar[str] = "agent:stream_delta"
    is_durable: ClassVar[bool] = False

    message_id: UUID
    offset: int
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamEnded(Event):
    wire: ClassVar[str] = "agent:stream_end"

    message_id: UUID
    branch_id: UUID


@dataclass(frozen=True, slots=True, kw_only=True)
class BranchCreated(Event):
    """A message was edited or answered anew; the new branch is the active one."""

    wire: ClassVar[str] = "agent:branch_created"

    branch_id: UUID
    parent_branch_id: UUID | None
    fork_point_message_id: UUID | None


@dataclass(frozen=True, slots=True, kw_only=True)
class BranchSwitched(Event):
    wire: ClassVar[str] = "agent:branch_switched"

    branch_id: UUID


@dataclass(frozen=True, slots=True, kw_only=True)
class NameUpdated(Event):
    wire: ClassVar[str] = "agent:name_updated"
    is_slim: ClassVar[bool] = True

    name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupMetaUpdated(Event):
    """A run of tool calls got a name and an icon, or better ones."""

    wire: ClassVar[str] = "agent:group_meta_updated"

    group_id: UUID
    name: str
    svg: str
    is_refined: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionClosed(Event):
    wire: ClassVar[str] = "agent:closed"
    is_slim: ClassVar[bool] = True

    status: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionResumed(Event):
    """A closed session was opened again."""

    wire: ClassVar[str] = "agent:resumed"
    is_slim: ClassVar[bool] = True

    status: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionDeleted(Event):
    """The session is gone, and the rows of its events with it."""

    wire: ClassVar[str] = "agent:deleted"
    is_slim: ClassVar[bool] = True
    is_durable: ClassVar[bool] = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ApprovalRequested(Event):
    wire: ClassVar[str] = "agent:approval_request"
    is_slim: ClassVar[bool] = True

    approval_id: UUID
    kind: str
    tool_name: str
    tool_use_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ApprovalResolved(Event):
    wire: ClassVar[str] = "agent:approval_resolved"
    is_slim: ClassVar[bool] = True

    approval_id: UUID
    status: str
    tool_use_id: str
    decided_by: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueUpdated(Event):
    """Messages waiting for the turn to end changed, or the run's place in line."""

    wire: ClassVar[str] = "agent:queue_updated"

    queued_messages: int
    is_paused: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class ContextUpdated(Event):
    """How much the model's last call on a branch held, of how much it can."""

    wire: ClassVar[str] = "agent:context_update"

    branch_id: UUID
    tokens: int
    window_tokens: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Compacted(Event):
    """The model goes on from a summary of what was said; `message_id` says so."""

    wire: ClassVar[str] = "agent:compacted"

    run_id: UUID
    message_id: UUID
    branch_id: UUID
    trigger: str
    pre_tokens: int
    post_tokens: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ContextCleared(Event):
    """The model forgot everything; the branch begins at `message_id`, the divider."""

    wire: ClassVar[str] = "agent:context_cleared"

    message_id: UUID
    branch_id: UUID


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolDenied(Event):
    wire: ClassVar[str] = "agent:tool_denied"

    tool_use_id: str
    tool_name: str
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Retrying(Event):
    """A model call failed and is tried again by itself."""

    wire: ClassVar[str] = "agent:retry"

    run_id: UUID
    attempt: int
    max_retries: int
    delay_ms: int
    error_status: int | None
    error: str


@dataclass(frozen=True, slots=True, kw_only=True)
class StepStarted(Event):
    """The model begins a message of the main conversation."""

    wire: ClassVar[str] = "agent:step_start"

    run_id: UUID
    step: int
    max_steps: int


@dataclass(frozen=True, slots=True, kw_only=True)
class StepCompleted(Event):
    """The message and its tool calls are over; `status` is "ok" or "failed"."""

    wire: ClassVar[str] = "agent:step_complete"

    run_id: UUID
    step: int
    status: str
    tool_calls: int
    tokens: int
    cost_usd_micros: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Corrected(Event):
    """A call failed and its error went back to the model with advice."""

    wire: ClassVar[str] = "agent:correction"

    run_id: UUID
    tool_use_id: str
    tool_name: str
    agent_id: str
    cycle: int
    max_cycles: int
    failure_kind: str
    error: str
    suggestion: str
    alternatives: list[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class StepFailed(Event):
    """A tool failed once more after all corrections; it is not run any more."""

    wire: ClassVar[str] = "agent:step_failed"

    run_id: UUID
    step: int
    tool_use_id: str
    tool_name: str
    agent_id: str
    failures: int
    error: str


@dataclass(frozen=True, slots=True, kw_only=True)
class BudgetWarned(Event):
    """Most of a budget is used; told once for each limit."""

    wire: ClassVar[str] = "agent:budget_warning"

    run_id: UUID | None
    scope: str
    spent_usd_micros: int
    limit_usd_micros: int
    percent: int
    threshold: int


@dataclass(frozen=True, slots=True, kw_only=True)
class RunCompleted(Event):
    wire: ClassVar[str] = "agent:complete"

    run_id: UUID
    stop_reason: str
    success: bool
    steps: int
    cost_usd_micros: int
    duration_ms: int


@dataclass(frozen=True, slots=True, kw_only=True)
class RunFailed(Event):
    wire: ClassVar[str] = "agent:error"

    run_id: UUID
    error_class: str
    message: str


EVENTS: dict[str, type[Event]] = {
    event.wire: event
    for event in (
        StatusChanged,
        MessageSaved,
        CostUpdated,
        StreamStarted,
        StreamDelta,
        StreamEnded,
        BranchCreated,
        BranchSwitched,
        NameUpdated,
        GroupMetaUpdated,
        SessionClosed,
        SessionResumed,
        SessionDeleted,
        ApprovalRequested,
        ApprovalResolved,
        QueueUpdated,
        ContextUpdated,
        Compacted,
        ContextCleared,
        ToolDenied,
        Retrying,
        StepStarted,
        StepCompleted,
        StepFailed,
        Corrected,
        BudgetWarned,
        RunCompleted,
        RunFailed,
    )
}
