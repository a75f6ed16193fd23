"""Approvals: what waits for a decision, and deciding."""

from __future__ import annotations

from typing import Annotated, Any, Literal
from uuid import UUID

from django.shortcuts import get_object_or_404
from ninja import Query, Router, Schema
from pydantic import Field

from agents.domain import approvals
from agents.domain.approvals import Decision
from agents.domain.queries.approvals import ApprovalCard
from agents.domain.queries.records import approval_records
from agents.errors import InvalidInputError
from agents.models.approvals import ApprovalKind, ApprovalScope, ApprovalStatus

from .access import find_answerable, find_session
from .auth import DECIDE, READ, ApiRequest
from .errors import REFUSALS
from .options import Input
from .records import ApprovalOut, approval_record

router = Router(tags=["Approvals"])

CHANNEL = "api"
_SCOPES = {"session": ApprovalScope.SESSION, "always": ApprovalScope.ALWAYS}


Answer = Annotated[str, Field(min_length=1, max_length=10_000)]


class ApprovalPage(Schema):
    items: list[ApprovalOut]
    has_more: bool


class ApprovalFilter(Schema):
    session_id: UUID | None = None
    status: ApprovalStatus = ApprovalStatus.PENDING
    limit: Annotated[int, Field(ge=1, le=200)] = 50


class DecisionIn(Input):
    """`session` and `always` approve and leave a rule. `updated_input` runs in place of
    what the model wrote. `answers` are for questions, by the question's text."""

    decision: Literal["approve", "session", "always", "deny", "deny_stop"]
    message: Annotated[str, Field(max_length=20_000)] = ""
    updated_input: dict[str, Any] | None = None
    answers: dict[str, Answer] | None = None

    @property
    def is_approved(self) -> bool:
        return self.decision not in ("deny", "deny_stop")


@router.get(
    "/approvals/",
    auth=READ,
    response={200: ApprovalPage, **REFUSALS},
    url_name="approvals",
    operation_id="list_approvals",
    summary="List approvals",
)
def list_approvals(
    request: ApiRequest, wanted: Query[ApprovalFilter]
) -> dict[str, Any]:
    """What waits, oldest first; `status` asks for what is over."""
    found = approval_records(request.user)
    if wanted.status == ApprovalStatus.PENDING:
        found = found.pending()
    else:
        found = found.filter(status=wanted.status)
    if wanted.session_id is not None:
        session = find_session(request.user, wanted.session_id)
        found = found.filter(session_id=session.host_id)
    rows = list(found[: wanted.limit + 1])
    return {
        "items": [approval_record(approval) for approval in rows[: wanted.limit]],
        "has_more": len(rows) > wanted.limit,
    }


@router.get(
    "/approvals/{uuid:approval_id}/",
    auth=READ,
    response={200: ApprovalOut, **REFUSALS},
    url_name="approval",
    operation_id="get_approval",
    summary="Look at an approval",
)
def get_approval(request: ApiRequest, approval_id: UUID) -> dict[str, Any]:
    found = get_object_or_404(approval_records(request.user), pk=approval_id)
    return approval_record(found)


@router.post(
    "/approvals/{uuid:approval_id}/decide/",
    auth=DECIDE,
    response={200: ApprovalOut, **REFUSALS},
    url_name="approval_decide",
    operation_id="decide_approval",
    summary="Decide",
)
def decide_approval(
    request: ApiRequest, approval_id: UUID, body: DecisionIn
) -> dict[str, Any]:
    """The first decision wins; whoever comes second is told by 409 who was first."""
    card = find_answerable(request.user, approval_id)
    decision = Decision(
        is_approved=body.is_approved,
        message=body.message,
        updated_input=_input_of(card, body),
        scope=_SCOPES.get(body.decision, ApprovalScope.ONCE),
        stops_run=body.decision == "deny_stop",
        channel=CHANNEL,
    )
    decided = approvals.decide_approval(card.approval, request.user, decision)
    return approval_record(decided)


def _input_of(card: ApprovalCard, body: DecisionIn) -> dict[str, Any] | None:
    """Raises: InvalidInputError where questions and answers don't go together."""
    is_question = card.approval.kind == ApprovalKind.QUESTION and bool(card.questions)
    if not body.is_approved:
        return None
    if not is_question:
        if body.answers is not None:
            raise InvalidInputError("This is no question.", field="answers")
        return body.updated_input
    if body.updated_input is not None:
        raise InvalidInputError(
            "A question is answered by `answers`.", field="updated_input"
        )
    asked = {question.asked["key"] for question in card.questions}
    if body.answers is None or set(body.answers) != asked:
        raise InvalidInputError(
            "Answer exactly these: " + ", ".join(f"“{key}”" for key in sorted(asked)),
            field="answers",
        )
    return {**card.approval.tool_input, "answers": body.answers}
