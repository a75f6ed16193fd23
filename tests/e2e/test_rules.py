"""A standing rule from its card to its end."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect

from .people import Person

pytestmark = [pytest.mark.e2e, pytest.mark.cli]

LOOK = 'demo: tool Bash {"command": "git --version"}'


def test_a_rule_made_on_a_card_is_seen_counted_and_revoked(olivia: Person) -> None:
    session = olivia.start_agent(LOOK)
    card = session.pending
    card.get_by_text("More ways to answer").click()
    card.get_by_role("link", name="Past calls that this rule matches").click()
    expect(card.get_by_role("region", name="Past calls")).to_contain_text(
        "No past call would have matched Bash(git --version)"
    )
    session.button("Always allow").click()
    session.ends_as("Completed")

    session.send(LOOK)
    session.ends_as("Completed", turns=2)
    assert session.rows("1 = 1", "approvalrequest") == 1

    page = olivia.open("/settings/rules/")
    row = page.get_by_role("row").filter(has_text="Bash(git --version)")
    expect(row).to_contain_text("All my sessions")
    expect(row.get_by_role("cell").nth(2)).to_have_text("1")
    row.get_by_role("link", name="from an approval").click()
    expect(page.locator(".tool-card:target, .tool-item:target")).to_be_visible()

    page.goto(f"{olivia.address}/settings/rules/")
    row.get_by_role("button", name="Revoke").click()
    expect(page.get_by_text("The rule Bash(git --version) is revoked.")).to_be_visible()
    expect(row).to_have_count(0)

    session.send(LOOK)
    expect(session.pending).to_be_visible()
    session.pending.get_by_role("link", name="Why?").click()
    expect(session.page.get_by_role("region", name="Bash")).to_contain_text(
        "Running a command needs approval."
    )
