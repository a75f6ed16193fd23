"""A stranger's program gets 404 for all that isn't theirs.

Generated over the API's routes, as `tests/test_access.py` is over the pages': a new one
fails here until it is said whose object it names, or that it names none.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from uuid import UUID, uuid4

import pytest
from django.urls import reverse

from agents.api.urls import operations, urlpatterns
from agents.models.users import Role
from tests.people import browser, person
from tests.test_access import SECRET, Estate, make_estate, sub_agent_of

from .conftest import MakeProgram, Program

pytestmark = pytest.mark.django_db

# Which object of alice's the route names.
TARGETS: dict[str, Callable[[Estate], UUID]] = {
    "session": lambda estate: estate.session.pk,
    "session_stop": lambda estate: estate.session.pk,
    "session_messages": lambda estate: estate.session.pk,
    "session_events": lambda estate: estate.session.pk,
    "message": lambda estate: estate.message.pk,
    "approval": lambda estate: estate.approval.pk,
    "approval_decide": lambda estate: estate.approval.pk,
}
# Without an object in the address: each person finds their own things there.
OWN = {"me", "sessions", "approvals", "chat"}
# For everybody signed in, or for everybody, and about nobody.
ABOUT_NOBODY = {"api_docs", "api_document", "api_nowhere"}
ROOT = "api-root"  # Ninja's own, behind the page about the API

BODIES: dict[str, dict[str, Any]] = {
    "session_messages": {"text": "Go on"},
    "approval_decide": {"decision": "deny"},
}


@pytest.fixture
def estate() -> Estate:
    return make_estate(person("alice", Role.OWNER))


@pytest.fixture
def stranger(program: MakeProgram) -> Program:
    return program(person("charlie"))


def test_every_route_is_covered_or_says_why_not() -> None:
    names = {str(route.name) for route in operations} - {ROOT}
    others = {str(route.name) for route in urlpatterns if hasattr(route, "name")}

    assert names == {*TARGETS, *OWN}
    assert others == ABOUT_NOBODY


def path_of(name: str, object_id: UUID) -> str:
    return reverse(f"api:{name}", args=[object_id]).removeprefix("/api")


@pytest.mark.parametrize("method", ["get", "post"])
@pytest.mark.parametrize("name", sorted(TARGETS))
def test_a_stranger_finds_nothing_of_somebody_elses(
    name: str, method: str, estate: Estate, stranger: Program, program: MakeProgram
) -> None:
    path = path_of(name, TARGETS[name](estate))
    ask = {"get": {}, "post": {"body": BODIES.get(name)}}[method]

    foreign = getattr(stranger, method)(path, **ask)
    nobody = getattr(Program(""), method)(path, **ask)
    own = getattr(program(estate.owner), method)(path, **ask)

    assert own.status_code in (200, 201, 405), "the control: it is there for alice"
    assert foreign.status_code == (405 if own.status_code == 405 else 404)
    assert nobody.status_code == (405 if own.status_code == 405 else 401)
    for answer in (foreign, nobody):
        assert SECRET not in answer.text
        assert answer.json()["error"]["message"]


@pytest.mark.parametrize("name", sorted(n for n in TARGETS if n.startswith("session")))
def test_a_stranger_finds_no_sub_agent_either(
    name: str, estate: Estate, stranger: Program, program: MakeProgram
) -> None:
    path = path_of(name, sub_agent_of(estate).pk)
    method = "post" if name == "session_stop" else "get"

    foreign = getattr(stranger, method)(path)
    own = getattr(program(estate.owner), method)(path)

    assert foreign.status_code == 404
    assert own.status_code == (409 if name == "session_stop" else 200)


def test_what_has_no_object_in_its_address_shows_nothing_of_others(
    estate: Estate, stranger: Program, program: MakeProgram
) -> None:
    for path in ("/me/", "/sessions/", "/approvals/"):
        theirs = stranger.get(path)
        assert theirs.status_code == 200
        assert SECRET not in theirs.text
        assert Program("").get(path).status_code == 401
    own = program(estate.owner)
    assert SECRET in own.get("/sessions/").text, "the control"
    assert str(estate.approval.pk) in own.get("/approvals/").text


@pytest.mark.parametrize(
    "conversation", [lambda estate: estate.session.pk, lambda estate: uuid4()]
)
def test_nobody_goes_on_with_somebody_elses_conversation(
    conversation: Callable[[Estate], UUID], estate: Estate, stranger: Program
) -> None:
    body = {
        "conversation_id": str(conversation(estate)),
        "messages": [{"role": "user", "content": "Go on"}],
    }

    assert stranger.post("/chat/", body).status_code == 404


def test_a_filter_by_somebody_elses_session_finds_nothing(
    estate: Estate, stranger: Program
) -> None:
    answer = stranger.get("/approvals/", session_id=str(estate.session.pk))

    assert answer.status_code == 404


def test_pages_about_the_api_are_about_nobody(estate: Estate) -> None:
    signed_in, nobody = browser(estate.owner), browser()

    assert signed_in.get("/api/").status_code == 200
    assert nobody.get("/api/").status_code == 302
    assert nobody.get("/api/openapi.json").status_code == 200
    assert SECRET not in nobody.get("/api/openapi.json").text
    assert nobody.get("/api/else/").status_code == 404
