"""What goes wrong at the provider is said in a sentence, and "Try again" works."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
from playwright.sync_api import Page, expect

from agents.demo.server import DemoServer
from agents.demo.state import DemoState
from tests.server import Server

from .conftest import cookies_of_owner
from .people import Person, Session, Window

pytestmark = [pytest.mark.e2e, pytest.mark.cli]

KEY = "sk-test-the-right-one"


@pytest.fixture(scope="module")
def provider() -> Iterator[DemoServer]:
    """A gateway on another port that wants a key."""
    with DemoServer(DemoState(required_key=KEY)) as provider:
        yield provider


@pytest.fixture(scope="module")
def other_server(make_server: Callable[..., Server]) -> Server:
    """Its agents talk to the provider; the CLI itself tries only once more."""
    return make_server(OPENSWARM_CLI_MAX_RETRIES="1")


@pytest.fixture(scope="module")
def cookies(other_server: Server) -> dict[str, str]:
    return cookies_of_owner(other_server)


@pytest.fixture
def person(
    other_server: Server,
    cookies: dict[str, str],
    open_window: Callable[..., Window],
    provider: DemoServer,
) -> Person:
    person = Person(open_window(), other_server, provider)
    person.remember(cookies)
    return person


def test_a_wrong_key_is_explained_and_the_right_one_goes_on(person: Person) -> None:
    page = _add_provider(person, key="sk-wrong")
    page.get_by_role("button", name="Test", exact=True).click()
    expect(page.get_by_text("Test failed")).to_be_visible()
    session = person.start_agent("say hello there")
    _fails_with(session, "The provider refuses the key")

    page.get_by_role("link", name="Edit Paid").click()
    page.get_by_label("Key", exact=True).fill(KEY)
    page.get_by_role("button", name="Save").click()
    page.get_by_role("button", name="Test", exact=True).click()
    expect(page.get_by_text("Works", exact=True)).to_be_visible()
    _goes_on(session, "hello there")

    keys = {request.key for request in person.demo.state.requests}
    assert keys == {"sk-wrong", KEY}
    assert KEY not in page.content()


def test_an_unreachable_provider_is_explained_and_goes_on_later(
    person: Person, provider: DemoServer
) -> None:
    with provider.refusing():
        session = person.start_agent("say we are back")
        _fails_with(session, "refused the connection")

    _goes_on(session, "we are back")


def test_a_rate_limit_is_told_while_it_lasts_and_passes(person: Person) -> None:
    session = person.start_agent(
        "demo: error 429 retry-after 1 times 1\ndemo: say Better now."
    )
    expect(session.notices).to_contain_text("Trying again")
    session.ends_as("Completed")

    expect(session.reply).to_have_text("Better now.")


def test_a_failing_provider_is_explained_and_tried_again(person: Person) -> None:
    session = person.start_agent("say fine so far")
    session.ends_as("Completed")
    session.send("demo: error 500 times 2\ndemo: say Repaired.")
    _fails_with(session, "The provider reported an error of its own", turns=2)

    _goes_on(session, "Repaired.", turns=3)


def _add_provider(person: Person, *, key: str) -> Page:
    page = person.open("/settings/providers/")
    page.get_by_role("link", name="Add provider").first.click()
    page.get_by_label("Name", exact=True).fill("Paid")
    page.get_by_label("Kind").select_option("gateway")
    page.get_by_label("Base URL").fill(person.demo.url)
    page.get_by_label("Key", exact=True).fill(key)
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_role("heading", name="Paid")).to_be_visible()
    return page


def _fails_with(session: Session, sentence: str, *, turns: int = 1) -> None:
    session.ends_as("Error", turns=turns)
    expect(session.notices.last).to_contain_text(sentence)
    expect(session.page.locator(".working")).to_have_count(0)
    expect(session.button("Try again")).to_be_visible()


def _goes_on(session: Session, words: str, *, turns: int = 2) -> None:
    session.button("Try again").click()
    session.ends_as("Completed", turns=turns)

    expect(session.reply).to_have_text(words)
    prompt = session.texts("user")[-1].splitlines()[0]
    assert session.last_call.count(prompt) == 1
    expect(session.button("Try again")).to_have_count(0)
