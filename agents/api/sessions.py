"""Sessions: list, start, look at, stop."""

from __future__ import annotations

from typing import Annotated, Any, Literal
from uuid import UUID

from django.core.paginator import Paginator
from ninja import Query, Router, Schema, Status
from pydantic import Field

from agents.domain import runs, sessions
from agents.domain.queries.records import session_records
from agents.models.sessions import SessionStatus

from .access import find_operable, find_session
from .auth import READ, WRITE, ApiRequest
from .errors import REFUSALS
from .options import (
    Budget,
    Effort,
    Flag,
    Input,
    Name,
    SecurityMode,
    Steps,
    Task,
    Temperature,
    listed_folder,
    naming,
    usable_provider,
    usd_micros,
)
from .records import SessionOut, SessionSummary, session_record, session_summary

router = Router(tags=["Sessions"])

PageNumber = Annotated[int, Field(ge=1, le=1_000_000)]
PageSize = Annotated[int, Field(ge=1, le=200)]


class SessionPage(Schema):
    items: list[SessionSummary]
    page: int
    pages: int
    total: int


class SessionFilter(Schema):
    status: SessionStatus | None = None
    page: PageNumber = 1
    page_size: PageSize = 50


class SessionIn(Input):
    """What is left out comes from your preferences."""

    task: Task
    name: Annotated[str, Field(max_length=60)] = ""
    mode: Annotated[str, Field(max_length=64)] = ""
    model: Name = ""
    provider: Name | None = None
    effort: Effort | None = None
    security_mode: SecurityMode | None = None
    system_prompt: str = ""
    network: Literal["none", "open"] = "none"
    folder_id: UUID | None = None
    worktree: Flag = False
    max_steps: Steps | None = None
    max_budget_usd: Budget | None = None
    temperature: Temperature | None = None
    client_message_id: UUID | None = None


class StopOut(Schema):
    stopped: bool
    """Whether something was at work."""
    session: SessionOut


@router.get(
    "/sessions/",
    auth=READ,
    response={200: SessionPage, **REFUSALS},
    url_name="sessions",
    operation_id="list_sessions",
    summary="List sessions",
)
def list_sessions(request: ApiRequest, wanted: Query[SessionFilter]) -> dict[str, Any]:
    """Yours and those shared with you, newest first; sub-agents are left out."""
    found = session_records(request.user)
    if wanted.status is not None:
        found = found.filter(status=wanted.status)
    pages = Paginator(found, wanted.page_size)
    page = pages.get_page(wanted.page)
    return {
        "items": [session_summary(session) for session in page],
        "page": page.number,
        "pages": pages.num_pages,
        "total": pages.count,
    }


@router.post(
    "/sessions/",
    auth=WRITE,
    response={201: SessionOut, **REFUSALS},
    url_name="sessions",
    operation_id="start_session",
    summary="Start an agent",
)
def start_session(request: ApiRequest, body: SessionIn) -> Status[Any]:
    """Make a session and send it its task, both or neither.

    Sent again with the same `client_message_id` and task, it starts nothing new and
    answers with the session that the first one started.
    """
    config = sessions.LaunchConfig(
        task=body.task,
        name=body.name,
        mode=body.mode,
        model=body.model,
        provider=usable_provider(request.user, body.provider),
        effort=body.effort or "",
        security_mode=body.security_mode or "",
        system_prompt=body.system_prompt,
        network=body.network,
        folder=listed_folder(body.folder_id),
        worktree=body.worktree,
        max_steps=body.max_steps,
        max_budget_usd_micros=usd_micros(body.max_budget_usd),
        temperature=body.temperature,
        client_message_id=body.client_message_id,
    )
    with naming("task"):
        session = sessions.launch_agent(request.user, config)
    return Status(201, session_record(find_session(request.user, session.pk)))


@router.get(
    "/sessions/{uuid:session_id}/",
    auth=READ,
    response={200: SessionOut, **REFUSALS},
    url_name="session",
    operation_id="get_session",
    summary="Look at a session",
)
def get_session(request: ApiRequest, session_id: UUID) -> dict[str, Any]:
    return session_record(find_session(request.user, session_id))


@router.post(
    "/sessions/{uuid:session_id}/stop/",
    auth=WRITE,
    response={200: StopOut, **REFUSALS},
    url_name="session_stop",
    operation_id="stop_session",
    summary="Stop the agent",
)
def stop_session(request: ApiRequest, session_id: UUID) -> dict[str, Any]:
    """Its turn ends within seconds; what it had written stays.

    The event `agent:complete` says when it has ended.
    """
    session = find_operable(request.user, session_id)
    stopped = runs.stop_agent(session)
    session = find_session(request.user, session_id)
    return {"stopped": stopped, "session": session_record(session)}
