"""The answer to a form comes after the frame that shows the same already."""

from __future__ import annotations

import pytest
from playwright.sync_api import APIResponse, Page, Route, expect

from .people import Person, Session

pytestmark = [pytest.mark.e2e, pytest.mark.cli]


class LateAnswers:
    """The server does what a form asks for; its answers arrive when the test says."""

    def __init__(self, page: Page, pattern: str) -> None:
        self._answers: list[tuple[Route, APIResponse]] = []
        page.route(pattern, self._keep)

    def _keep(self, route: Route) -> None:
        self._answers.append((route, route.fetch(max_redirects=0)))

    def arrive(self, session: Session) -> None:
        session.until(lambda: self._answers, "the server's answer")
        for route, answer in self._answers:
            with session.page.expect_response(route.request.url):
                route.fulfill(response=answer)
        self._answers.clear()


def test_queued_messages_keep_their_words(olivia: Person) -> None:
    session = olivia.start_agent("demo: say Working.\ndemo: hold overtaken-queue")
    olivia.demo.state.wait_until_held("overtaken-queue")
    words = session.page.locator(".queue-chip .queue-chip__text")
    for number, text in enumerate(("say one", "say two", "say three"), start=1):
        session.send(text)
        expect(words).to_have_count(number)
    answers = LateAnswers(session.page, "**/move/")
    chip = session.page.locator(".queue-chip")

    chip.filter(has_text="say three").get_by_role("button", name="Move up").click()
    expect(words).to_have_text(["say one", "say three", "say two"])
    answers.arrive(session)
    expect(words).to_have_text(["say one", "say three", "say two"])

    chip.filter(has_text="say two").get_by_role("button", name="Remove").click()
    expect(words).to_have_text(["say one", "say three"])
    answers.arrive(session)
    expect(words).to_have_text(["say one", "say three"])
    words.first.click()
    expect(chip.first.get_by_label("Queued message")).to_have_value("say one")


def test_the_menu_works_again_once_its_late_answer_has_come(olivia: Person) -> None:
    session = olivia.start_agent("say hello")
    session.ends_as("Completed")
    session.send("say more")
    session.ends_as("Completed", turns=2)
    answers = LateAnswers(session.page, "**/compact/")
    menu = session.page.get_by_label("Session menu")
    menu.click()

    session.button("Compact").click()
    expect(session.notices.last).to_contain_text("was summarised")
    session.ends_as("Completed", turns=3)
    answers.arrive(session)

    expect(session.button("Compact")).to_be_hidden()
    menu.click()
    expect(session.button("Compact")).to_be_visible()


def test_a_decided_card_stays_when_its_late_answer_comes(olivia: Person) -> None:
    session = olivia.start_agent("write the file late.txt with the text mine")
    answers = LateAnswers(session.page, "**/decide/")

    session.button("Approve").click()
    session.ends_as("Completed")
    expect(session.cards).to_contain_text("approved by olivia")
    answers.arrive(session)

    expect(session.cards).to_have_count(1)
    expect(session.cards).to_contain_text("approved by olivia")
    expect(session.cards.locator("form")).to_have_count(0)
