"""Sub-agents as child sessions: made once, following their host, costing their part."""

from __future__ import annotations

import pytest

from agents.domain import blocks, invocation, lifecycle, messages, runs, sessions
from agents.domain.approvals import Decision, decide_approval
from agents.domain.history import get_history
from agents.domain.runs import stop_agent
from agents.domain.subagents import rows_of, start_sub_agent, sub_agents_below
from agents.domain.usage import Usage, record_usage
from agents.errors import InvalidInputError, SubAgentError
from agents.models import AgentSession, AnalyticsEvent, CostEntry, SessionEvent
from agents.models.messages import MessageRole, ToolOutcome
from agents.models.sessions import SessionKind, SessionStatus, ShareRight
from tests import factories

pytestmark = pytest.mark.django_db


@pytest.fixture
def alice():
    return factories.make_user("alice")


@pytest.fixture
def run(alice):
    return factories.start_turn(factories.make_session(alice))


def start(run, tool_use_id="toolu_a", agent_id="a1", **call):
    """An Agent call, and the word of the CLI that its agent has begun."""
    tool_input = {"description": "Count the bees", "prompt": "Please count the bees."}
    factories.call_tool(run, tool_use_id, "Agent", tool_input, **call)
    return start_sub_agent(run, tool_use_id=tool_use_id, agent_id=agent_id)


def spend(run, message_id, agent_id="", tokens=1000):
    record_usage(
        session_id=run.session_id,
        provider_id=None,
        message_id=message_id,
        model="claude-sonnet-5-5",
        usage=Usage(input_tokens=tokens),
        agent_id=agent_id,
    )


def status_of(session):
    return AgentSession.objects.values_list("status", flat=True).get(pk=session.pk)


def test_a_call_that_begins_makes_a_child_session(run):
    child = start(run)

    host = run.session
    assert (child.kind, child.name) == (SessionKind.SUB_AGENT, "Count the bees")
    assert (child.parent_session, child.host_session) == (host, host)
    assert (child.parent_tool_use_id, child.agent_id) == ("toolu_a", "a1")
    assert (child.owner, child.depth, child.status) == (host.owner, 1, "running")
    assert (child.cwd, child.owns_cwd) == (host.cwd, False)


def test_it_is_made_once(run):
    child = start(run)

    assert start(run) == child
    assert run.session.guests.count() == 1


def test_a_sub_agents_sub_agent_is_its_child(run):
    child = start(run)
    grandchild = start(run, "toolu_b", "a2", parent_tool_use_id="toolu_a")

    assert grandchild.parent_session == child
    assert (grandchild.host_session, grandchild.depth) == (run.session, 2)
    assert sub_agents_below(run.session) == [child, grandchild]
    assert sub_agents_below(child) == [grandchild]


@pytest.mark.parametrize(
    ("outcome", "status"),
    [
        (ToolOutcome.OK, SessionStatus.COMPLETED),
        (ToolOutcome.ERROR, SessionStatus.ERROR),
        (ToolOutcome.CANCELLED, SessionStatus.STOPPED),
    ],
)
def test_it_ends_as_its_call_ends(run, outcome, status):
    child = start(run)

    factories.return_result(run, "toolu_a", "Four bees.", outcome=outcome)

    assert status_of(child) == status
    assert SessionEvent.objects.filter(
        session=child, type="agent:status", data__status=status
    ).exists()


def test_lists_show_what_it_said_last(run):
    child = start(run)
    blocks.add_message(
        run.session_id,
        branch_id=run.branch_id,
        role=MessageRole.ASSISTANT,
        text="Four bees.",
        run=run,
        parent_tool_use_id="toolu_a",
    )

    factories.return_result(run, "toolu_a", "Four bees.")

    child.refresh_from_db()
    assert (child.message_count, child.last_preview) == (1, "Four bees.")


def test_a_setting_that_changes_binds_it_too(run, alice):
    child = start(run)

    sessions.update_session(run.session, alice, security_mode="deny")

    child.refresh_from_db()
    assert child.security_mode == "deny"


def test_a_search_leads_to_its_words_in_the_hosts_page(run, alice):
    start(run)
    inner = factories.call_tool(
        run,
        "toolu_i",
        tool_input={"command": "grep -r narwhal"},
        parent_tool_use_id="toolu_a",
    )

    [entry] = get_history(alice, "narwhal").sessions

    assert entry.session == run.session
    [hit] = entry.hits
    assert hit.message == inner
    assert hit.url.startswith(f"/sessions/{run.session_id}/?")


def test_a_stop_withdraws_what_it_asks(run):
    child = start(run)
    approval = factories.ask_approval(run, "toolu_w", agent_id="a1")
    stop_agent(run.session)

    factories.end_turn(run, stop_reason="cancelled")

    approval.refresh_from_db()
    assert approval.status == "cancelled"
    assert status_of(child) == SessionStatus.STOPPED


def test_it_waits_while_one_of_its_own_calls_is_asked_about(run, alice):
    child = start(run)
    other = start(run, "toolu_b", "a2")
    approval = factories.ask_approval(run, "toolu_w", agent_id="a1")

    assert status_of(child) == SessionStatus.WAITING_APPROVAL
    assert status_of(other) == SessionStatus.RUNNING

    decide_approval(approval, alice, Decision(is_approved=True))

    assert status_of(child) == SessionStatus.RUNNING


def test_a_stopped_turn_leaves_no_sub_agent_at_work(run):
    child = start(run)
    stop_agent(run.session)

    factories.end_turn(run, stop_reason="cancelled")

    assert status_of(child) == SessionStatus.STOPPED


def test_a_crash_leaves_no_sub_agent_at_work(run):
    child = start(run)
    grandchild = start(run, "toolu_b", "a2", parent_tool_use_id="toolu_a")

    runs.reconcile_on_startup()

    assert status_of(child) == SessionStatus.STOPPED
    assert status_of(grandchild) == SessionStatus.STOPPED


def test_a_sub_agent_whose_call_outlives_a_crash_waits_on(run, alice):
    child = start(run)
    approval = factories.ask_approval(run, "toolu_w", agent_id="a1")

    runs.reconcile_on_startup()

    assert status_of(child) == SessionStatus.WAITING_APPROVAL
    decide_approval(approval, alice, Decision(is_approved=True))
    assert status_of(child) == SessionStatus.STOPPED  # it went with its process


def test_its_rows_are_the_hosts_rows_below_its_call(run):
    child = start(run)
    inner = factories.call_tool(run, "toolu_i", parent_tool_use_id="toolu_a")
    factories.call_tool(run, "toolu_o")

    assert [row.pk for row in rows_of(child)] == [inner.pk]


def test_it_shows_its_own_part_of_the_cost_and_its_host_the_whole(run):
    spend(run, "msg_1")
    child = start(run)
    spend(run, "msg_2", agent_id="a1", tokens=2000)
    spend(run, "msg_3", agent_id="a1", tokens=3000)
    spend(run, "msg_4", agent_id="a2", tokens=70)
    spend(run, "msg_3", agent_id="a1", tokens=3000)  # told twice
    child.refresh_from_db()
    host = run.session
    host.refresh_from_db()

    prices = CostEntry.objects.filter(agent_id="a1").values_list(
        "usd_micros", flat=True
    )
    assert child.cost_usd_micros == sum(price or 0 for price in prices)
    assert child.input_tokens == 5000
    assert host.input_tokens == 6070
    assert CostEntry.objects.filter(user=host.owner).count() == 4


def test_what_was_counted_before_it_was_known_is_its_part_too(run):
    spend(run, "msg_1", agent_id="a1", tokens=2000)

    child = start(run)

    assert child.input_tokens == 2000


def test_it_can_be_neither_sent_to_nor_closed_nor_deleted(run, alice):
    child = start(run)

    with pytest.raises(SubAgentError):
        messages.send_message(child, author=alice, text="And then?")
    with pytest.raises(SubAgentError):
        lifecycle.close_session(child, alice)
    with pytest.raises(SubAgentError):
        lifecycle.resume_session(child, alice)
    with pytest.raises(SubAgentError):
        lifecycle.delete_session(child, alice)


def test_it_can_not_be_asked_by_other_sessions(run, alice):
    child = start(run)
    other = factories.make_session(alice)

    with pytest.raises(InvalidInputError, match="There is no session"):
        invocation.invoke_agent(other.pk, child.pk, "Are you there?")


def test_sub_agents_take_no_place_of_invoked_sessions(run, alice, override_conf):
    override_conf(max_children=1)
    start(run)
    source = factories.make_session(alice)

    child = invocation.invoke_agent(run.session_id, source.pk, "Are you there?")

    assert child.parent_session_id == run.session_id


def test_an_invoked_session_knows_the_call_that_it_answers(run, alice):
    source = factories.make_session(alice)
    tool = "mcp__openswarm-invoke-agent__InvokeAgent"
    for tool_use_id, message in [("toolu_x", "One?"), ("toolu_y", "Two?")]:
        asked = {"session_id": str(source.pk), "message": message}
        factories.call_tool(run, tool_use_id, tool, asked)

    second = invocation.invoke_agent(run.session_id, source.pk, "Two?")
    edited = invocation.invoke_agent(run.session_id, source.pk, "What a person wrote")

    assert second.parent_tool_use_id == "toolu_y"
    assert edited.parent_tool_use_id == "toolu_x"


def test_it_is_closed_opened_and_deleted_with_its_host(run, alice):
    child = start(run)
    factories.return_result(run, "toolu_a", "Four bees.")
    factories.end_turn(run)

    lifecycle.close_session(run.session, alice)
    child.refresh_from_db()
    assert child.closed_at is not None
    lifecycle.resume_session(run.session, alice)
    child.refresh_from_db()
    assert (child.closed_at, child.status) == (None, SessionStatus.COMPLETED)
    lifecycle.delete_session(run.session, alice)
    assert not AgentSession.objects.filter(pk=child.pk).exists()


def test_analytics_name_it_and_count_what_it_did(run, alice):
    child = start(run)
    factories.call_tool(run, "toolu_i", parent_tool_use_id="toolu_a")
    factories.return_result(run, "toolu_a", "Four bees.")
    factories.end_turn(run)

    lifecycle.close_session(run.session, alice)

    completed = {
        event.session_id: event.data
        for event in AnalyticsEvent.objects.filter(type="session.completed")
    }
    assert completed[run.session_id]["sub_agent_ids"] == [str(child.pk)]
    assert completed[run.session_id]["sub_agent_count"] == 1
    assert completed[child.pk]["is_sub_agent"] is True
    assert completed[child.pk]["tool_counts"] == {"Bash": 1}
    assert completed[child.pk]["parent_session_id"] == str(run.session_id)


def test_whoever_may_see_or_operate_the_host_may_its_sub_agents(run):
    child = start(run)
    bob, charlie = factories.make_user("bob"), factories.make_user("charlie")
    bob.shares.create(session=run.session, right=ShareRight.VIEW)

    assert child in AgentSession.objects.visible_to(bob)
    assert child not in AgentSession.objects.operable_by(bob)
    assert child not in AgentSession.objects.visible_to(charlie)
    bob.shares.update(right=ShareRight.OPERATE)
    assert child in AgentSession.objects.operable_by(bob)


def test_without_a_description_its_prompt_names_it(run):
    factories.call_tool(run, "toolu_p", "Agent", {"prompt": "Count\n  the bees"})

    child = start_sub_agent(run, tool_use_id="toolu_p", agent_id="a9")
    nameless = start_sub_agent(run, tool_use_id="toolu_unknown", agent_id="a8")

    assert child.name == "Count the bees"
    assert nameless.name == "Sub-agent"
    assert not nameless.messages.filter(role=MessageRole.TOOL_CALL).exists()
