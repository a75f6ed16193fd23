"""What people decide in the page is what happens, and what the model is told."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest
from playwright.sync_api import Route, expect

from .people import Person, Session

pytestmark = [pytest.mark.e2e, pytest.mark.cli]

QUESTIONS = {
    "questions": [
        {
            "question": "Which colour?",
            "header": "Colour",
            "multiSelect": False,
            "options": [
                {"label": "Green", "description": "Calm"},
                {"label": "Red", "description": "Loud"},
            ],
        },
        {
            "question": "Which fruits?",
            "header": "Fruits",
            "multiSelect": True,
            "options": [
                {"label": "Apple", "description": "Round"},
                {"label": "Pear", "description": "Longer"},
                {"label": "Plum", "description": "Small"},
            ],
        },
        {
            "question": "Which name?",
            "header": "Name",
            "multiSelect": False,
            "options": [
                {"label": "Ada", "description": "First"},
                {"label": "Bea", "description": "Second"},
            ],
        },
    ]
}


def test_a_denial_reaches_the_model_in_the_persons_words(olivia: Person) -> None:
    session = olivia.start_agent("write the file secret.txt with the text x")
    session.pending.get_by_text("More ways to answer").click()
    session.page.get_by_label("Message to the agent").fill("Not here, “please”.")
    session.button("Deny").click()
    session.ends_as("Completed")

    assert "Not here, “please”." in session.last_call
    assert not (session.folder / "secret.txt").exists()
    expect(session.cards).to_contain_text("denied by olivia")
    expect(session.cards).to_contain_text("Not here, “please”.")
    expect(session.transcript.locator(".tool-card")).to_contain_text("Denied")


def test_an_edited_input_is_what_runs_and_broken_json_stays_to_be_mended(
    olivia: Person,
) -> None:
    olivia.window.allow("422")
    session = olivia.start_agent("write the file note.txt with the text before")
    card = session.pending
    card.get_by_text("Edit input").click()
    field = session.page.get_by_label("Input as JSON")
    original = field.input_value()
    broken = original.replace("before", "after").rstrip().removesuffix("}")

    field.fill(broken)
    session.button("Approve edited input").click()
    expect(card.get_by_role("alert")).to_contain_text("JSON")
    expect(field).to_have_value(broken)
    assert not (session.folder / "note.txt").exists()

    field.fill(broken + "}")
    session.button("Approve edited input").click()
    session.ends_as("Completed")

    assert (session.folder / "note.txt").read_text().strip() == "after"
    assert "edited the input" in session.last_call
    expect(session.cards).to_contain_text("The input was edited")
    call = session.transcript.locator(".tool-card")
    expect(call.locator(".diff")).to_contain_text("after")
    expect(call.get_by_text("The input was edited by olivia")).to_be_visible()
    expect(call.get_by_text("What the model wrote")).to_be_hidden()


def test_a_question_form_takes_one_choice_several_and_words_of_ones_own(
    olivia: Person,
) -> None:
    session = olivia.start_agent(f"demo: ask {json.dumps(QUESTIONS)}")
    card = session.pending
    card.get_by_role("radio", name="Green").check()
    card.get_by_role("checkbox", name="Apple").check()
    card.get_by_role("checkbox", name="Plum").check()
    card.get_by_role("textbox", name="Other").last.fill("Zoë")
    session.button("Answer").click()
    session.ends_as("Completed")

    answer = json.dumps(session.tool_results(), ensure_ascii=False)
    for given in ("Green", "Apple", "Plum", "Zoë"):
        assert given in answer
    for refused in ("Red", "Pear", "Bea"):
        assert refused not in answer.replace(json.dumps(QUESTIONS), "")
    expect(session.cards).to_contain_text("answered by olivia")


@pytest.mark.parametrize(
    ("button", "outcome"), [("Approve plan", "approved"), ("Reject plan", "denied")]
)
def test_a_plan_can_be_approved_and_rejected(
    olivia: Person, button: str, outcome: str
) -> None:
    session = olivia.start_agent("plan a picnic")
    plan = session.pending.filter(has=session.button(button))
    expect(plan).to_contain_text("picnic")
    plan.get_by_label("Message to the agent").fill("Bring an umbrella.")
    session.button(button).click()
    session.ends_as("Completed")

    expect(session.cards.last).to_contain_text(f"{outcome} by olivia")
    assert ("Bring an umbrella." in session.last_call) == (outcome == "denied")


def test_two_tabs_answer_at_once_and_one_wins(sign_in: Callable[..., Person]) -> None:
    person = sign_in()
    person.window.allow("409")
    first = person.start_agent("run echo once >> once.txt")
    second = person.enter(first)
    held = _hold_decisions(second)

    second.button("Deny").click()
    second.until(lambda: held, "the second tab's decision")
    first.button("Approve").click()
    first.ends_as("Completed")
    held[0].continue_()

    for tab in (first, second):
        expect(tab.cards).to_contain_text("approved by olivia")
    toast = second.page.locator("#toasts")
    expect(toast).to_contain_text("olivia approved this request already")
    assert (first.folder / "once.txt").read_text() == "once\n"
    assert first.rows("role = 'tool_result'", "message") == 1
    assert len(first.tool_results()) == 1


def _hold_decisions(session: Session) -> list[Route]:
    """Keep what this tab sends in the air until the test lets it go."""
    held: list[Route] = []
    session.page.route("**/decide/", lambda route: held.append(route))
    return held
