"""Hostile and huge content stays text, and the page stays usable."""

from __future__ import annotations

import json

import pytest
from playwright.sync_api import expect

from .people import Person, Session, seed

pytestmark = [pytest.mark.e2e, pytest.mark.cli]

MEGABYTE = 1024 * 1024
# NUL and half an emoji can't be stored; all else must come out as it went in.
EVIL = (
    '<script>alert(1)</script> <img src=x onerror="alert(2)"> '
    "[click](javascript:alert(3)) <b onmouseover=alert(4)>bold</b> "
    "user\u202egnp.exe\u202c zero\u200bwidth nul\x00here lone\ud83dhere end"
)


def test_hostile_words_of_the_model_do_nothing(olivia: Person) -> None:
    session = olivia.start_agent(
        f"demo: text {json.dumps(EVIL)}\n"
        f'demo: tool Bash {{"command": {json.dumps("echo " + EVIL[:56])}}}'
    )
    expect(session.pending).to_contain_text("<script>alert(1)</script>")
    expect(session.reply).to_contain_text("<script>alert(1)</script>")
    expect(session.reply).to_contain_text("end")
    session.button("Deny").click()
    session.ends_as("Completed")

    for live in (True, False):
        _is_harmless(session)
        if live:
            session.reload()
    assert "\x00" not in "".join(session.texts("assistant"))


def _is_harmless(session: Session) -> None:
    expect(session.transcript.locator("script, img, b, [onerror]")).to_have_count(0)
    expect(session.page.locator("a[href^='javascript']")).to_have_count(0)
    marks = session.transcript.locator(".invisible-char")
    expect(marks.filter(has_text="U+202E").first).to_be_visible()
    words = session.page.inner_text("main")
    assert "\u202e" not in words
    assert "\x00" not in words


def test_an_endless_line_of_the_model_is_shown_in_part(olivia: Person) -> None:
    session = olivia.start_agent(f'demo: text "ab" times {MEGABYTE // 2}')
    session.ends_as("Completed")

    assert len(session.stored_reply) == MEGABYTE
    expect(session.reply).to_contain_text("abababab")
    assert len(session.reply.inner_text()) < 100_000
    _answers_to_keys(session)
    session.replies.get_by_role("link", name="Show all").click()
    expect(session.replies.get_by_role("link", name="Show all")).to_have_count(0)
    assert len(session.reply.inner_text()) >= MEGABYTE


def test_a_huge_result_is_cut_until_it_is_asked_for(olivia: Person) -> None:
    session = _seeded(olivia, "add_big_result", 5 * MEGABYTE)
    card = session.transcript.locator(".tool-card", has_text="Bash")
    card.locator("summary").click()
    expect(card).to_contain_text("<script>alert(1)</script>")
    assert len(card.inner_text()) < 100_000
    _answers_to_keys(session)

    card.get_by_role("link", name="Show all").click()
    expect(session.transcript).to_contain_text("END-OF-RESULT")
    expect(session.transcript.locator("script, img")).to_have_count(0)


def test_two_thousand_messages_open_at_the_newest_and_load_as_one_scrolls(
    olivia: Person,
) -> None:
    session = _seeded(olivia, "add_messages", 2000)
    newest = session.transcript.get_by_text("message number 2000 of")
    expect(newest).to_be_in_viewport()
    first_page = session.transcript.locator("article").count()
    assert first_page < 100
    reader = session.transcript.locator(
        f"#{session.transcript.locator('article').first.get_attribute('id')}"
    )

    session.page.evaluate("scrollTo(0, 0)")
    expect(session.transcript.locator("article")).not_to_have_count(first_page)

    expect(reader).to_be_in_viewport()
    expect(newest).not_to_be_in_viewport()
    numbers = session.transcript.locator("article").all_inner_texts()
    found = [int(text.split("number ")[1].split()[0]) for text in numbers]
    assert found == list(range(2001 - len(found), 2001))
    _answers_to_keys(session)


def _seeded(olivia: Person, function: str, amount: int) -> Session:
    session = olivia.start_agent("say begin")
    session.ends_as("Completed")
    seed(session, function, amount)
    session.reload()
    return session


def _answers_to_keys(session: Session) -> None:
    field = session.page.get_by_label("Message", exact=True)
    field.press_sequentially("still awake", timeout=5_000)
    expect(field).to_have_value("still awake", timeout=5_000)
    field.fill("")
