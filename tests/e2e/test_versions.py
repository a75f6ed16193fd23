"""Versions of a conversation, as somebody makes and walks through them."""

from __future__ import annotations

import pytest
from playwright.sync_api import Locator, expect

from .people import Person, Session

pytestmark = [pytest.mark.e2e, pytest.mark.cli]


def navigator(session: Session) -> Locator:
    return session.transcript.locator(".branch-navigator")


def edit(session: Session, text: str, *, restore: bool = False) -> None:
    """Put other words in place of the newest message."""
    session.button("Edit message").last.click()
    session.transcript.get_by_label("Message", exact=True).fill(text)
    if restore:
        session.page.get_by_label("Also restore files").check()
    session.button("Send edited message").click()


def bodies(session: Session) -> Locator:
    return session.transcript.locator("article .message__body")


def test_an_edit_makes_a_version_and_the_navigator_leads_back_and_forth(
    olivia: Person,
) -> None:
    session = olivia.start_agent("say the first way")
    session.ends_as("Completed")

    edit(session, "say the second way")
    expect(bodies(session)).to_have_text(["say the second way", "the second way"])
    session.ends_as("Completed", turns=2)

    assert "the second way" in session.last_call
    assert "the first way" not in session.last_call
    expect(navigator(session)).to_contain_text("2 / 2")
    session.button("Previous version").click()
    expect(bodies(session)).to_have_text(["say the first way", "the first way"])
    expect(navigator(session)).to_contain_text("1 / 2")
    expect(session.button("Previous version")).to_be_disabled()
    session.button("Next version").click()
    expect(bodies(session)).to_have_text(["say the second way", "the second way"])
    expect(navigator(session)).to_contain_text("2 / 2")


def test_an_answer_is_written_again_as_a_version(olivia: Person) -> None:
    session = olivia.start_agent("say tails")
    session.ends_as("Completed")

    session.button("Regenerate").click()

    expect(navigator(session)).to_contain_text("2 / 2")
    session.ends_as("Completed", turns=2)
    expect(bodies(session)).to_have_text(["say tails", "tails"])
    first, again = session.calls
    assert again.messages == first.messages


def test_two_versions_are_compared(olivia: Person) -> None:
    session = olivia.start_agent(
        "write the file left.txt with the text 1", security_mode="full"
    )
    session.ends_as("Completed")
    edit(session, "write the file right.txt with the text 2")
    session.ends_as("Completed", turns=2)
    page = session.page

    page.get_by_role("link", name="Compare").click()

    sides = page.locator(".comparison__side")
    for side, name in ((sides.first, "right.txt"), (sides.last, "left.txt")):
        expect(side.locator(".comparison__header")).to_contain_text("1 turn")
        side.get_by_text("1 file changed").first.click()
        expect(side.locator(".changes__file")).to_have_count(1)
        expect(side.locator(".changes__file")).to_contain_text(name)
    sides.last.get_by_role("button", name="Go on with this").click()
    expect(navigator(session)).to_contain_text("1 / 2")


def test_files_are_put_back_as_they_were_then(olivia: Person) -> None:
    session = olivia.start_agent(
        "write the file plan.txt with the text old", security_mode="full"
    )
    session.ends_as("Completed")
    session.send("edit plan.txt replace old with new then run touch extra.txt")
    session.ends_as("Completed", turns=2)
    lines = session.transcript.locator(".turn-changes")
    expect(lines).to_have_count(2)
    expect(lines.last).to_contain_text("2 files changed")

    edit(session, "say back then", restore=True)
    expect(session.notices).to_contain_text("2 files are again as they were")
    session.ends_as("Completed", turns=3)

    expect(session.page.locator(".turn-end")).to_be_in_viewport()
    assert (session.folder / "plan.txt").read_text().strip() == "old"
    assert not (session.folder / "extra.txt").exists()


def test_what_an_edit_would_change_is_listed_before(olivia: Person) -> None:
    session = olivia.start_agent(
        "write the file plan.txt with the text old", security_mode="full"
    )
    session.ends_as("Completed")

    session.button("Edit message").click()
    expect(session.page.get_by_text("This would change 1 file")).to_be_visible()
    listed = session.page.locator(".restore__files")
    expect(listed).to_contain_text("Is removed")
    expect(listed).to_contain_text("plan.txt")
    expect(session.page.get_by_text("is taken back")).to_be_visible()
    session.page.get_by_role("link", name="Cancel").click()
    expect(bodies(session).first).to_be_visible()
    assert (session.folder / "plan.txt").exists()


def test_a_turns_changes_are_one_press_away(olivia: Person) -> None:
    session = olivia.start_agent(
        "write the file plan.txt with the text sage", security_mode="full"
    )
    session.ends_as("Completed")
    page = session.page

    session.transcript.get_by_role("link", name="1 file changed").click()
    expect(page.locator(".changes__file")).to_contain_text("plan.txt")
    expect(page.locator(".diff__row[data-kind='add']")).to_contain_text("sage")
    page.get_by_role("link", name="All changes of this version").click()
    expect(page.get_by_role("heading", name="Turn by turn")).to_be_visible()
    expect(page.locator(".changes__file")).to_contain_text("plan.txt")


def test_a_message_is_branched_into_a_session_that_remembers_it(
    olivia: Person,
) -> None:
    session = olivia.start_agent("say heads")
    session.ends_as("Completed")
    session.send("say tails")
    session.ends_as("Completed", turns=2)
    page = session.page
    first_reply = session.replies.first
    first_reply.hover()

    first_reply.get_by_role("button", name="Branch to new session").click()
    page.wait_for_url(lambda url: str(session.id) not in url)
    copy = Session(olivia, page)
    expect(bodies(copy)).to_have_text(["say heads", "heads"])
    copy.send("say and on")
    copy.ends_as("Completed")

    assert "say heads" in copy.last_call
    assert "say tails" not in copy.last_call


def test_a_session_is_duplicated_from_its_menu(olivia: Person) -> None:
    session = olivia.start_agent("say heads")
    session.ends_as("Completed")
    page = session.page

    page.get_by_label("Session menu").click()
    session.button("Duplicate").click()
    page.wait_for_url(lambda url: str(session.id) not in url)

    copy = Session(olivia, page)
    expect(bodies(copy)).to_have_text(["say heads", "heads"])
    expect(page.get_by_label("Name", exact=True)).to_have_value("say heads (copy)")


def test_a_hit_on_another_version_is_shown_and_marked_there(olivia: Person) -> None:
    session = olivia.start_agent("say an Okapi stands here")
    session.ends_as("Completed")
    edit(session, "say something else")
    session.ends_as("Completed", turns=2)
    page = session.page

    page.goto(f"{olivia.address}/history/?q=okapi")
    page.locator(".history-hit").first.click()

    expect(page.get_by_text("Another version of this conversation")).to_be_visible()
    marked = session.transcript.locator("[data-marked]")
    expect(marked).to_contain_text("Okapi")
    expect(marked).to_be_in_viewport()
    session.button("Switch to this version").click()
    expect(session.page.get_by_label("Message", exact=True)).to_be_visible()
    expect(navigator(session)).to_contain_text("1 / 2")
