"""What a rule would have done: the past calls that it speaks about, and who decided.

Shown before a rule is saved, so that nobody allows more than they meant to.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlencode
from uuid import UUID

from django.db.models import Q
from django.db.models.fields.json import KT
from django.urls import reverse

from agents.models import AgentSession, ApprovalRequest, Message, User
from agents.models.approvals import ApprovalStatus
from agents.models.messages import MessageRole
from agents.models.sessions import AgentSessionQuerySet
from agents.policy.calls import ToolCall
from agents.policy.matchers import matched_field, tool_names
from agents.policy.paths import Place
from agents.policy.rules import Rule, would_match
from agents.rendering.dom import dom_id
from agents.rendering.tool_calls import ToolView, tool_view

from . import releases
from .approvals import preview_rule

REPLAYED_SESSIONS = 100
REPLAYED_CALLS = 500
SHOWN_CALLS = 10
_VIEW_BYTES = 1_000
# Decisions of these channels are nobody's look at the call.
_BY_ITSELF = (releases.RULE_CHANNEL, releases.POLICY_CHANNEL, "system")


@dataclass(frozen=True, slots=True, kw_only=True)
class PastCall:
    """A call that the rule would have matched, and what a person said to it."""

    message: Message
    decision: str
    """Approved or denied by hand; empty where no person was asked."""

    @property
    def view(self) -> ToolView:
        content = self.message.content
        return tool_view(
            self.message.tool_name,
            content.get("input") if isinstance(content, dict) else None,
            None,
            max_bytes=_VIEW_BYTES,
        )

    @property
    def url(self) -> str:
        return url_of_call(self.message)


@dataclass(frozen=True, slots=True, kw_only=True)
class Replay:
    """What a rule would have done."""

    rule: Rule
    shown: tuple[PastCall, ...]
    """The newest."""
    matched: int
    approved: int
    denied: int
    looked_at: int
    is_bounded: bool
    """Whether there may be older calls that were not looked at."""

    @property
    def unasked(self) -> int:
        return self.matched - self.approved - self.denied


def url_of_call(message: Message) -> str:
    """Where the card of a call stands."""
    page = reverse("session_detail", args=[message.session_id])
    place = urlencode({"branch": message.branch_id, "message": message.pk})
    return f"{page}?{place}#{dom_id('tool', message.pk)}"


def replay_rule(
    rule: Rule, sessions: AgentSessionQuerySet, *, but: ApprovalRequest | None = None
) -> Replay:
    """Try a rule on the newest calls of these sessions; four queries at most.

    The rule stands alone: other rules and the guards are not asked.

    Args:
        but: the request whose call is what the rule is made for.
    """
    newest = sessions.filter(host_session=None).recent_first()
    folders = dict(newest.values_list("pk", "cwd")[:REPLAYED_SESSIONS])
    asked = (but.session_id, but.tool_use_id) if but else None
    looked_at = [
        row
        for row in _past_calls(rule, folders)
        if (row.session_id, row.tool_use_id) != asked
    ]
    matched = [
        row for row in looked_at if would_match(rule, row.call, Place(row.cwd, None))
    ]
    decisions = _decisions_by_hand(matched)
    found = [decisions.get((row.session_id, row.tool_use_id), "") for row in matched]
    return Replay(
        rule=rule,
        shown=_shown(matched[:SHOWN_CALLS], found),
        matched=len(matched),
        approved=found.count(ApprovalStatus.APPROVED),
        denied=found.count(ApprovalStatus.DENIED),
        looked_at=len(looked_at),
        is_bounded=len(looked_at) >= REPLAYED_CALLS - (but is not None)
        or len(folders) == REPLAYED_SESSIONS,
    )


def replay_for_card(approval: ApprovalRequest, user: User) -> Replay | None:
    """What "Always allow" would have allowed in the person's sessions and in this one.

    None where no rule would be narrow enough.
    """
    rule = preview_rule(approval)
    if rule is None:
        return None
    either = Q(owner=user) | Q(pk=approval.session_id)
    return replay_rule(rule, AgentSession.objects.filter(either), but=approval)


@dataclass(frozen=True, slots=True)
class _Row:
    message_id: UUID
    session_id: UUID
    tool_use_id: str
    call: ToolCall
    cwd: Path


def _past_calls(rule: Rule, folders: dict[UUID, str]) -> list[_Row]:
    """Of each input only the field that the matcher reads: others may be megabytes."""
    field = matched_field(rule.tool) if rule.matcher else None
    columns = ["pk", "session_id", "tool_use_id", "tool_name"]
    calls = Message.objects.filter(
        _names(rule.tool),
        session_id__in=folders,
        role=MessageRole.TOOL_CALL,
        hidden=False,
    ).order_by("-created_at", "-seq")
    if field:
        calls = calls.annotate(read=KT(f"content__input__{field}"))
        columns.append("read")
    return [
        _Row(
            message_id=pk,
            session_id=session_id,
            tool_use_id=tool_use_id,
            call=ToolCall(name, {field: read[0]} if field and read[0] else {}),
            cwd=Path(folders[session_id]),
        )
        for pk, session_id, tool_use_id, name, *read in calls.values_list(*columns)[
            :REPLAYED_CALLS
        ]
    ]


def _names(tool: str) -> Q:
    names, prefixes = tool_names(tool)
    found = Q(tool_name__in=names)
    for prefix in prefixes:
        found |= Q(tool_name__startswith=prefix)
    return found


def _decisions_by_hand(rows: Iterable[_Row]) -> dict[tuple[UUID, str], str]:
    wanted = {row.tool_use_id for row in rows}
    if not wanted:
        return {}
    decided = ApprovalRequest.objects.filter(
        session_id__in={row.session_id for row in rows},
        tool_use_id__in=wanted,
        status__in=(ApprovalStatus.APPROVED, ApprovalStatus.DENIED),
    ).exclude(channel__in=_BY_ITSELF)
    return {
        (session_id, tool_use_id): status
        for session_id, tool_use_id, status in decided.order_by().values_list(
            "session_id", "tool_use_id", "status"
        )
    }


def _shown(rows: list[_Row], decisions: list[str]) -> tuple[PastCall, ...]:
    if not rows:
        return ()
    messages = Message.objects.select_related("session").in_bulk(
        [row.message_id for row in rows]
    )
    return tuple(
        PastCall(message=messages[row.message_id], decision=decision)
        for row, decision in zip(rows, decisions, strict=False)
        if row.message_id in messages
    )
