"""Pages of sub-agents and of sessions that have some: both keep up with the rows."""

from __future__ import annotations

import pytest

from agents.domain import invocation
from agents.domain.approvals import Decision, decide_approval
from agents.domain.subagents import start_sub_agent
from agents.domain.usage import Usage, record_usage
from agents.live import frames, replay
from agents.live.pages import LivePage
from agents.models import AgentSession, Run, User
from tests import factories
from tests.dom import Node, apply_frame, parse

from .conftest import OpenPage, in_thread

pytestmark = pytest.mark.django_db(transaction=True)

PARTS = ("title", "status", "facts", "actions", "items", "tail", "waiting", "children")
INVOKE = "mcp__openswarm-invoke-agent__InvokeAgent"


def start(
    run: Run, tool_use_id: str = "toolu_a", agent_id: str = "a1", parent: str = ""
) -> AgentSession:
    tool_input = {"description": "Count", "prompt": "Please count the bees."}
    factories.call_tool(
        run, tool_use_id, "Agent", tool_input, parent_tool_use_id=parent
    )
    return start_sub_agent(run, tool_use_id=tool_use_id, agent_id=agent_id)


def invoke(run: Run, alice: User) -> tuple[AgentSession, Run]:
    """A session that works for the run's one, and its turn."""
    source = factories.make_session(alice, "I am the source")
    asked = {"session_id": str(source.pk), "message": "What now?"}
    factories.call_tool(run, "toolu_i", INVOKE, asked)
    child = invocation.invoke_agent(run.session_id, source.pk, "What now?")
    return child, factories.start_turn(child)


def opened(user: User, session: AgentSession) -> tuple[LivePage, Node]:
    page = LivePage(
        user=user, session_id=session.pk, host_id=session.host_session_id or session.pk
    )
    dom = parse(frames.session_snapshot(page))
    for node in dom.walk():
        node.attributes.pop("hx-swap-oob", None)
    return page, dom


def keep_up(page: LivePage, dom: Node) -> None:
    """What its socket would send: its source's news, and those of its family."""
    assert apply_frame(dom, replay.news(page)) in ([], [position(page)])
    assert apply_frame(dom, frames.family_frame(page)) == []


def position(page: LivePage) -> str:
    """Stands on the page itself, not in what the socket sends first."""
    return f"session-{page.session_id}-position"


def assert_is_fresh(dom: Node, user: User, session: AgentSession) -> None:
    _, expected = opened(user, session)
    for name in PARTS:
        element_id = f"session-{session.pk}-{name}"
        assert dom.find(element_id).outline() == expected.find(element_id).outline()


def spend(run: Run, agent_id: str = "a1") -> None:
    record_usage(
        session_id=run.session_id,
        provider_id=None,
        message_id=f"msg_{agent_id}",
        model="claude-sonnet-5-5",
        usage=Usage(input_tokens=100_000),
        agent_id=agent_id,
    )


def test_both_pages_follow_a_sub_agent_to_its_end(run: Run, alice: User) -> None:
    host_page, host_dom = opened(alice, run.session)
    child = start(run)
    child_page, child_dom = opened(alice, child)
    pages = [(host_page, host_dom, run.session), (child_page, child_dom, child)]

    steps = [
        lambda: factories.call_tool(run, "toolu_b", parent_tool_use_id="toolu_a"),
        lambda: factories.return_result(run, "toolu_b", "four"),
        lambda: start(run, "toolu_n", "a2", parent="toolu_a"),
        lambda: spend(run),
        lambda: spend(run, "a2"),
        lambda: factories.return_result(run, "toolu_n", "Nested."),
        lambda: factories.say(run, "Something on the main thread."),
        lambda: factories.return_result(run, "toolu_a", "Four bees."),
        lambda: factories.end_turn(run),
    ]
    for step in steps:
        step()
        for page, dom, session in pages:
            keep_up(page, dom)
            session.refresh_from_db()
            assert_is_fresh(dom, alice, session)

    words = child_dom.find(f"session-{child.pk}-items").words
    assert "Please count the bees." in words
    assert "Nested." in words
    assert "main thread" not in words
    assert child_dom.find(f"session-{child.pk}-status").words == "Completed"


def test_a_decision_on_one_page_settles_both(run: Run, alice: User) -> None:
    child = start(run)
    factories.call_tool(run, "toolu_w", "Write", parent_tool_use_id="toolu_a")
    approval = factories.ask_approval(run, "toolu_w", agent_id="a1")
    pages = [(*opened(alice, each), each) for each in (run.session, child)]
    for _, dom, session in pages:
        assert "1 approval waits" in dom.find(f"session-{session.pk}-waiting").words
        assert dom.find(f"approval-{approval.pk}").attributes["data-state"] == "pending"

    decide_approval(approval, alice, Decision(is_approved=True))

    for page, dom, session in pages:
        keep_up(page, dom)
        assert dom.find(f"session-{session.pk}-waiting").words == ""
        card = dom.find(f"approval-{approval.pk}")
        assert card.attributes["data-state"] == "approved"


def test_other_sub_agents_requests_are_not_on_its_page(run: Run, alice: User) -> None:
    child = start(run)
    other = start(run, "toolu_o", "a2")
    factories.call_tool(run, "toolu_w", "Write", parent_tool_use_id="toolu_o")
    approval = factories.ask_approval(run, "toolu_w", agent_id="a2")

    assert not opened(alice, child)[1].has(f"approval-{approval.pk}")
    assert opened(alice, other)[1].has(f"approval-{approval.pk}")


def test_a_call_that_was_heard_of_too_early_moves_to_its_agent(
    run: Run, alice: User
) -> None:
    page, dom = opened(alice, run.session)
    factories.call_tool(run, "toolu_b")
    keep_up(page, dom)
    start(run)
    factories.call_tool(run, "toolu_b", parent_tool_use_id="toolu_a")

    keep_up(page, dom)

    assert_is_fresh(dom, alice, run.session)


def test_what_an_invoked_session_asks_comes_to_its_parents_page(
    run: Run, alice: User
) -> None:
    page, dom = opened(alice, run.session)
    child, child_run = invoke(run, alice)
    keep_up(page, dom)
    approval = factories.ask_approval(child_run, "toolu_c")

    keep_up(page, dom)

    tail = dom.find(f"session-{run.session_id}-tail")
    assert tail.has(f"approval-{approval.pk}")
    assert "1 approval waits" in dom.find(f"session-{run.session_id}-waiting").words
    assert "Needs you" in dom.find(f"session-{child.pk}-link").words
    assert_is_fresh(dom, alice, run.session)

    decide_approval(approval, alice, Decision(is_approved=True))
    spend(child_run, "")
    keep_up(page, dom)

    assert not dom.has(f"approval-{approval.pk}")
    assert_is_fresh(dom, alice, run.session)


def test_a_page_with_nothing_new_below_it_is_sent_nothing(
    run: Run, alice: User
) -> None:
    start(run)
    page, _ = opened(alice, run.session)
    frames.family_frame(page)

    assert frames.family_frame(page) == ""


def test_a_page_that_comes_back_is_sent_what_its_host_did(
    run: Run, alice: User
) -> None:
    child = start(run)
    page, dom = opened(alice, child)
    since = page.seq
    factories.call_tool(run, "toolu_b", parent_tool_use_id="toolu_a")

    again = LivePage(user=alice, session_id=child.pk, host_id=run.session_id)
    apply_frame(dom, replay.first_frame(again, since))

    assert_is_fresh(dom, alice, child)


async def test_a_sub_agents_socket_hears_its_host(
    run: Run, alice: User, open_page: OpenPage
) -> None:
    child = await in_thread(start, run)
    page = await open_page(f"/ws/session/{child.pk}/", alice)

    await in_thread(factories.call_tool, run, "toolu_b", parent_tool_use_id="toolu_a")

    await page.until(lambda dom: "ls -la" in dom.text)
    await in_thread(factories.return_result, run, "toolu_a", "Four bees.")
    await page.until(
        lambda dom: dom.find(f"session-{child.pk}-status").words == "Completed"
    )


async def test_a_parents_socket_hears_what_its_invoked_session_asks(
    run: Run, alice: User, open_page: OpenPage
) -> None:
    page = await open_page(f"/ws/session/{run.session_id}/", alice)
    _, child_run = await in_thread(invoke, run, alice)

    approval = await in_thread(factories.ask_approval, child_run, "toolu_c")

    await page.until(lambda dom: dom.has(f"approval-{approval.pk}"))
