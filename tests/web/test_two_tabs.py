"""Two tabs that edit, send and stop in the same moment, while the engine works."""

from __future__ import annotations

from functools import partial
from itertools import pairwise
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse

from agents.domain.queries.transcript import load_transcript
from agents.models import AgentSession, Message, Run, User
from agents.models.messages import MessageRole
from agents.models.runs import StopReason
from tests import factories
from tests.dom import Node, parse
from tests.domain.scripted_engine import ScriptedTurn
from tests.threads import at_once

pytestmark = pytest.mark.django_db(transaction=True)

ROUNDS = 4
SPOKEN = (MessageRole.USER, MessageRole.ASSISTANT)


class Tab:
    def __init__(self, user: User, session: AgentSession) -> None:
        self.client = Client()
        self.client.force_login(user)
        self.session = session
        self.typed: list[str] = []

    def send(self, text: str) -> int:
        self.typed.append(text)
        return self._post("message_send", self.session.pk, text=text)

    def edit(self, message: Message, text: str) -> int:
        self.typed.append(text)
        return self._post("message_edit", message.pk, text=text)

    def stop(self) -> int:
        return self._post("session_stop", self.session.pk)

    def resume_queue(self) -> int:
        return self._post("queue_resume", self.session.pk)

    def _post(self, name: str, key: Any, **data: str) -> int:
        return self.client.post(reverse(name, args=[key]), data).status_code

    def transcript(self) -> list[str]:
        """The texts that a reload of this tab shows."""
        path = reverse("session_detail", args=[self.session.pk])
        page = parse(self.client.get(path).content.decode())
        return [node.words for node in page.walk() if is_body(node)]


def is_body(node: Node) -> bool:
    return "message__body" in node.attributes.get("class", "").split()


def work(session: AgentSession) -> bool:
    """One turn of the engine, if one is due. Returns: whether there was one."""
    turn = ScriptedTurn.try_to_claim(session)
    if turn is None:
        return False
    turn.say(f"to {turn.sent[-1]}")
    turn.end(StopReason.NO_TOOL_CALLS)
    return True


def test_two_tabs_at_once_lose_nothing_and_show_the_same() -> None:
    alice = factories.make_user("alice")
    session = factories.make_session(alice, "first")
    tabs = one, two = Tab(alice, session), Tab(alice, session)
    work(session)

    for number in range(ROUNDS):
        said = session.messages.delivered().filter(role=MessageRole.USER)
        last = said.order_by("seq").last()
        assert last is not None
        statuses = at_once(
            partial(one.send, f"one-{number}"),
            partial(one.edit, last, f"edit-{number}"),
            partial(two.send, f"two-{number}"),
            two.stop,
            partial(work, session),
        )
        assert [each for each in statuses if each not in (True, False, 302)] == []
    while work(session) or session.messages.queued().exists():
        two.resume_queue()

    typed = ["first", *one.typed, *two.typed]
    asked = session.messages.filter(role=MessageRole.USER)
    assert sorted(asked.values_list("text", flat=True)) == sorted(typed)
    each_ran = Run.objects.filter(session=session).values_list(
        "trigger_message__text", flat=True
    )
    assert sorted(each_ran) == sorted(typed)
    began = Run.objects.filter(session=session, started_at__isnull=False)
    times = began.order_by("started_at").values_list("started_at", "finished_at")
    for (_, end), (start, _) in pairwise(times):
        assert end is not None
        assert start is not None
        assert end <= start
    session.refresh_from_db()
    items = load_transcript(session, alice, limit=1000).items
    stored = [each.message.text for each in items if each.message.role in SPOKEN]
    assert [tab.transcript() for tab in tabs] == [stored, stored]
    assert stored
