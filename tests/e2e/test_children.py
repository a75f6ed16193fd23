"""Agents that start agents: each has a page, and its parent's page shows them all."""

from __future__ import annotations

import json
import re

import pytest
from playwright.sync_api import Locator, expect

from agents.rendering.figures import usd

from .people import Person, Session

pytestmark = [pytest.mark.e2e, pytest.mark.cli]

INVOKE = "mcp__openswarm-invoke-agent__InvokeAgent"


def script(*lines: str) -> str:
    return "\n".join(f"demo: {line}" for line in lines)


def bash(command: str) -> str:
    return f"tool Bash {json.dumps({'command': command})}"


def enter_child(parent: Session) -> Session:
    """Follow the link below the call in another tab."""
    link = parent.transcript.locator(".child-link a").first
    path = link.get_attribute("href")
    assert path is not None
    return Session(parent.person, parent.person.open(path))


def facts(session: Session) -> Locator:
    return session.page.locator(f"#session-{session.id}-facts")


def spent(session: Session, where: str) -> int:
    total = f"SELECT sum(usd_micros) FROM agents_costentry WHERE {where}"  # noqa: S608  the tests' own words
    found = session.server.rows(f"{total} AND session_id = ?", session.id.hex)
    return int(found[0][0] or 0)


def test_a_sub_agent_lives_on_its_own_page_and_in_its_parents(olivia: Person) -> None:
    inner = script(
        "usage input 30000 output 3000",
        "say I look around in here.",
        bash("touch child.txt"),
        "hold sub-agent-page",
        "say All is well in here.",
    )
    session = olivia.start_agent(
        script(
            "usage input 10000 output 1000",
            f"agent {json.dumps(inner)}",
            "say It reported.",
        )
    )
    session.pending.get_by_role("button", name="Approve", exact=True).click()
    nested = session.transcript.get_by_label("Sub-agent", exact=True)
    expect(nested).to_contain_text("I look around in here.")
    child = enter_child(session)

    expect(child.transcript).to_contain_text("I look around in here.")
    expect(child.transcript.locator("[data-role='user']")).to_contain_text("touch")
    expect(child.status).to_have_text("Needs you")
    expect(child.page.get_by_label("Message", exact=True)).to_have_count(0)
    expect(child.button("Stop")).to_have_count(0)
    expect(child.page.get_by_text("Started by")).to_be_visible()
    expect(child.pending).to_have_count(1)
    expect(nested.locator(".approval-card")).to_have_count(1)
    expect(session.page.locator(".waiting-line")).to_contain_text("1 approval waits")
    expect(session.transcript.locator(".child-link .chip")).to_have_text("Needs you")

    session.pending.get_by_role("button", name="Approve", exact=True).click()

    for page in (session, child):
        expect(page.cards.last).to_contain_text("approved by olivia")
        expect(page.pending).to_have_count(0)
    expect(child.status).to_have_text("Running")
    expect(session.transcript.locator(".child-link .chip")).to_have_text("Running")
    session.demo.state.release("sub-agent-page")
    expect(child.transcript).to_contain_text("All is well in here.")
    expect(nested).to_contain_text("All is well in here.")
    session.ends_as("Completed")
    expect(child.status).to_have_text("Completed")
    assert (session.folder / "child.txt").exists()

    own, part = spent(session, "agent_id = ''"), spent(session, "agent_id <> ''")
    assert own
    assert part > own
    expect(facts(session)).to_contain_text(f"incl. children {usd(own + part)}")
    expect(facts(session)).to_contain_text(usd(own))
    expect(facts(child)).to_contain_text(usd(part))
    expect(session.transcript.locator(".child-link")).to_contain_text(usd(part))
    before = child.transcript.inner_text()
    child.reload()
    expect(child.transcript).to_have_text(re.compile("All is well in here."))
    assert child.transcript.inner_text() == before


def test_what_an_invoked_session_asks_is_decided_on_its_parents_page(
    olivia: Person,
) -> None:
    source = olivia.start_agent("say I am the source.")
    source.ends_as("Completed")
    arguments = {"session_id": str(source.id), "message": bash_task("touch asked.txt")}
    session = olivia.start_agent(f"demo: tool {INVOKE} {json.dumps(arguments)}")
    session.pending.get_by_role("button", name="Approve", exact=True).click()
    of_child = session.page.locator(".approval-card__session")
    asked = session.pending.filter(has=of_child)
    expect(asked).to_contain_text("touch asked.txt")
    expect(session.page.locator(".waiting-line")).to_contain_text("1 approval waits")
    child = enter_child(session)
    expect(child.pending).to_have_count(1)
    expect(child.page.get_by_text("Started by")).to_be_visible()

    asked.get_by_role("button", name="Approve", exact=True).click()

    expect(child.pending).to_have_count(0)
    expect(session.pending).to_have_count(0)
    session.ends_as("Completed")
    child.ends_as("Completed")
    expect(session.transcript.locator(".child-link .chip")).to_have_text("Completed")
    own, below = spent(session, "1"), spent(child, "1")
    expect(facts(session)).to_contain_text(f"incl. children {usd(own + below)}")
    session.page.get_by_label("Sub-agents", exact=True).click()
    listed = session.page.locator(".child-list").get_by_role("link")
    expect(listed).to_have_count(1)
    expect(listed).to_have_attribute("href", child.path)


def bash_task(command: str) -> str:
    return script(bash(command), "say done")
