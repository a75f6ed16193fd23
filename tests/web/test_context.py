"""The meter in the header, "Compact" and "Clear"."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest
from django.test import Client

from agents.domain import context, notices
from agents.domain.requests import keep_request
from agents.models import AgentSession, Run, Share, User
from agents.models.runs import RunKind
from agents.models.sessions import ShareRight
from tests import factories
from tests.dom import Node, parse

HTMX = {"HX-Request": "true"}
SignIn = Callable[[User], Client]

pytestmark = pytest.mark.django_db


def page_of(client: Client, session: AgentSession) -> Node:
    return parse(client.get(f"/sessions/{session.pk}/").content.decode())


def part(session: AgentSession, name: str) -> str:
    return f"session-{session.pk}-{name}"


@pytest.fixture
def done(run: Run) -> AgentSession:
    """A session with a turn that the model remembers."""
    factories.remember(run)
    context.record_context(run, 46_000, "claude-test")
    factories.say(run, "Three.")
    factories.end_turn(run)
    return AgentSession.objects.get(pk=run.session_id)


def test_the_header_shows_how_full_the_context_is(
    done: AgentSession, alice: User, sign_in: SignIn
) -> None:
    meter = page_of(sign_in(alice), done).find(part(done, "context"))

    assert meter.words.endswith("23% of 200k")
    (bar,) = meter.find_all("meter")
    assert (bar.attributes["value"], bar.attributes["max"]) == ("46000", "200000")


def test_there_is_no_meter_before_the_first_answer(
    run: Run, alice: User, sign_in: SignIn
) -> None:
    page = page_of(sign_in(alice), run.session)

    assert page.find_all("meter") == []


def test_compact_starts_a_run_that_the_page_shows(
    done: AgentSession, alice: User, sign_in: SignIn
) -> None:
    client = sign_in(alice)

    response = client.post(f"/sessions/{done.pk}/compact/", follow=True)

    assert response.status_code == 200
    assert done.runs.unfinished().get().kind == RunKind.COMPACT
    page = parse(response.content.decode())
    assert notices.COMPACTING in page.find(part(done, "items")).words


def test_compact_while_it_works_waits_above_the_composer(
    run: Run, alice: User, sign_in: SignIn
) -> None:
    response = sign_in(alice).post(f"/sessions/{run.session_id}/compact/", headers=HTMX)

    fragment = parse(response.content.decode())
    queue = fragment.find(part(run.session, "queue"))
    assert "Compact the conversation" in queue.words
    assert queue.find_all("textarea") == []


def test_clear_draws_a_line(done: AgentSession, alice: User, sign_in: SignIn) -> None:
    client = sign_in(alice)

    response = client.post(f"/sessions/{done.pk}/clear/", headers=HTMX)

    fragment = parse(response.content.decode())
    assert fragment.find(part(done, "context")).words.endswith("0% of 200k")
    page = page_of(client, done)
    (divider,) = page.find_all(role="separator")
    assert "The model starts afresh here" in divider.words
    assert "Three." in page.find(part(done, "items")).words


@pytest.mark.parametrize(
    ("action", "sentence"),
    [("compact", context.NOTHING_TO_COMPACT), ("clear", context.NOTHING_TO_CLEAR)],
)
def test_where_nothing_was_said_it_says_so(
    action: str, sentence: str, session: AgentSession, alice: User, sign_in: SignIn
) -> None:
    session.runs.all().delete()

    response = sign_in(alice).post(f"/sessions/{session.pk}/{action}/", headers=HTMX)

    assert response.status_code == 422
    assert response.content.decode() == sentence


def test_clear_at_work_is_refused(run: Run, alice: User, sign_in: SignIn) -> None:
    response = sign_in(alice).post(f"/sessions/{run.session_id}/clear/", headers=HTMX)

    assert response.status_code == 409
    assert "Stop it first" in response.content.decode()


def test_what_became_too_long_offers_its_next_steps(
    run: Run, alice: User, sign_in: SignIn
) -> None:
    factories.remember(run)
    factories.end_turn(run, stop_reason="context_limit", error_class="context_limit")

    page = page_of(sign_in(alice), run.session)

    tail = page.find(part(run.session, "tail"))
    offered = [form.attributes["action"] for form in tail.find_all("form")]
    address = f"/sessions/{run.session_id}/"
    assert offered == [
        f"{address}{step}/" for step in ("compact", "clear", "duplicate", "retry")
    ]


# What the model saw


def test_what_the_model_saw_is_shown_to_those_who_operate(
    done: AgentSession, alice: User, bob: User, sign_in: SignIn
) -> None:
    address = f"/sessions/{done.pk}/context/"
    client = sign_in(alice)
    assert "Nothing yet" in client.get(address).text
    body = {
        "system": [{"type": "text", "text": "Be <kind>."}],
        "tools": [{"name": "Read", "description": "Reads", "input_schema": {}}],
        "messages": [{"role": "user", "content": "Hi there"}],
    }
    keep_request(done.pk, json.dumps(body).encode(), max_bytes=10_000)
    Share.objects.create(session=done, user=bob, right=ShareRight.VIEW)

    page = parse(client.get(address).content.decode())

    for words in ("Be <kind>.", "Read", "Hi there", "8 characters in 1 message"):
        assert words in page.words
    saved = client.get(address, {"format": "json"})
    assert saved.json() == body
    assert saved["Content-Disposition"].startswith("attachment")
    assert sign_in(bob).get(address).status_code == 403
    links = [n.attributes.get("href") for n in page_of(client, done).find_all("a")]
    assert address in links


def test_of_a_request_that_was_too_large_the_size_is_shown(
    done: AgentSession, alice: User, sign_in: SignIn
) -> None:
    keep_request(done.pk, b'{"messages": []}', max_bytes=1)

    assert "too large" in sign_in(alice).get(f"/sessions/{done.pk}/context/").text
