"""Whatever is sent, the answers are those that the OpenAPI document promises."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import schemathesis
from django.core.handlers.wsgi import WSGIHandler
from django.core.signals import request_finished, request_started
from django.db import close_old_connections
from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from hypothesis import HealthCheck, settings
from schemathesis import Case, GenerationMode
from schemathesis.specs.openapi.checks import positive_data_acceptance

from agents.models import AgentSession, ApprovalRequest, Run, User
from tests import factories

from .conftest import token_of

EXAMPLES = 10


class _Site(WSGIHandler):
    """The whole site; of a stream of events only how it begins."""

    def get_response(self, request: HttpRequest) -> HttpResponseBase:
        response = super().get_response(request)
        if not response.streaming:
            return response
        response.close()
        headers = dict(response.headers)
        return HttpResponse(status=response.status_code, headers=headers)


schema = schemathesis.openapi.from_wsgi("/api/openapi.json", _Site())
schema.config.generation.update(
    modes=[GenerationMode.POSITIVE, GenerationMode.NEGATIVE],
    with_security_parameters=False,
)


@pytest.fixture
def ids(
    alice: User, session: AgentSession, run: Run, approval: ApprovalRequest
) -> dict[str, str]:
    """What the paths may name, so that not everything is a 404."""
    return {
        "session_id": str(session.pk),
        "message_id": str(run.trigger_message_id),
        "approval_id": str(approval.pk),
    }


@pytest.fixture
def token(alice: User) -> str:
    return token_of(alice)


@pytest.fixture
def kept_connection() -> Iterator[None]:
    """The test's transaction outlives its requests, as with Django's own client."""
    signals = (request_started, request_finished)
    for signal in signals:
        signal.disconnect(close_old_connections)
    yield
    for signal in signals:
        signal.connect(close_old_connections)


@pytest.fixture
def approval(run: Run) -> ApprovalRequest:
    return factories.ask_approval(run)


@pytest.mark.django_db
@pytest.mark.usefixtures("kept_connection")
@schema.parametrize()
@settings(
    max_examples=EXAMPLES,
    deadline=None,
    derandomize=True,
    suppress_health_check=list(HealthCheck),
)
def test_answers_keep_to_the_document(
    case: Case, token: str, ids: dict[str, str], override_conf: Any
) -> None:
    override_conf(login_attempts=10**6)  # it tries many wrong tokens
    for name in set(ids) & set(case.path_parameters):
        if case.meta is not None and case.meta.generation.mode.is_positive:
            case.path_parameters[name] = ids[name]

    case.call_and_validate(
        headers={"Authorization": f"Bearer {token}"},
        # Names of modes and models are checked against what there is: 422 says so.
        excluded_checks=[positive_data_acceptance],
    )
