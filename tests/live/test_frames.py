"""For every event: the page before, plus the event's frame, is the page after."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from agents.domain import (
    blocks,
    branches,
    context,
    messages,
    metadata,
    notices,
    overspending,
    runs,
    sessions,
    steps,
    usage,
)
from agents.domain.approvals import Decision, decide_approval, open_approval
from agents.events.bus import publish_on_commit
from agents.events.vocabulary import EVENTS, Retrying, ToolDenied
from agents.live import frames
from agents.live.pages import LivePage
from agents.models import AgentSession, Run, SessionEvent, User
from agents.models.messages import MessageRole, ToolOutcome
from agents.policy.corrections import Corrections, FailedCall
from tests import factories
from tests.dom import Node, apply_frame, parse

pytestmark = pytest.mark.django_db


def snapshot(user: User, session: AgentSession) -> tuple[LivePage, Node]:
    page = LivePage(user=user, session_id=session.pk)
    dom = parse(frames.session_snapshot(page))
    for node in dom.walk():
        node.attributes.pop("hx-swap-oob", None)
    return page, dom


def forward(page: LivePage, dom: Node) -> set[str]:
    """Apply the frames of all newer events, as the consumer sends them."""
    events = SessionEvent.objects.filter(session_id=page.session_id, seq__gt=page.seq)
    wires = set()
    for event in events:
        missing = apply_frame(dom, frames.event_frame(page, event.type, event.data))
        assert missing == [], "every id of a frame is on the page it is made for"
        page.seq = event.seq
        wires.add(event.type)
    return wires


Act = Callable[[Run, User], Any]


def send_while_busy(run: Run, alice: User) -> None:
    messages.send_message(run.session, author=alice, text="And then stop")


def stream(run: Run, alice: User) -> None:
    message = blocks.start_stream(run, role=MessageRole.ASSISTANT)
    blocks.save_stream(message.pk, "Half a sent")


def answer_in_full(run: Run, alice: User) -> None:
    factories.say(run, "# Done\n\nAll **three**.")


def think(run: Run, alice: User) -> None:
    factories.say(run, "Bees are fine.", MessageRole.THINKING)


def use_tool(run: Run, alice: User) -> None:
    factories.call_tool(run)
    factories.return_result(run, elapsed_ms=120)


def use_sub_agent(run: Run, alice: User) -> None:
    factories.call_tool(run, "toolu_a", "Agent", {"prompt": "look", "description": "x"})
    factories.call_tool(run, "toolu_b", parent_tool_use_id="toolu_a")
    factories.return_result(run, "toolu_b")
    factories.return_result(run, "toolu_a", "It looked.")


def ask(run: Run, alice: User) -> None:
    factories.ask_approval(run)


def ask_before_the_call_has_a_row(run: Run, alice: User) -> None:
    open_approval(
        run, tool_use_id="toolu_x", tool_name="Bash", tool_input={"command": "ls"}
    )


def ask_late(run: Run, alice: User) -> None:
    ask_before_the_call_has_a_row(run, alice)
    factories.call_tool(run, "toolu_x", "Bash", {"command": "ls"})


def decide(run: Run, alice: User) -> None:
    approval = factories.ask_approval(run)
    decide_approval(approval, alice, Decision(is_approved=False, message="No."))


def deny(run: Run, alice: User) -> None:
    factories.call_tool(run)
    factories.return_result(run, text="Not here.", outcome=ToolOutcome.DENIED)
    publish_on_commit(
        ToolDenied(
            session_id=run.session_id,
            tool_use_id="toolu_1",
            tool_name="Bash",
            reason="Not here.",
        )
    )


def retry(run: Run, alice: User) -> None:
    notice = notices.add_notice(run, "retry", "Attempt 1 of 4")
    publish_on_commit(
        Retrying(
            session_id=run.session_id,
            run_id=run.pk,
            attempt=1,
            max_retries=4,
            delay_ms=500,
            error_status=529,
            error="overloaded",
        )
    )
    notices.update_notice(notice.pk, "Attempt 2 of 4")


def take_a_step(run: Run, alice: User) -> None:
    steps.begin_step(run, step=1, max_steps=20)
    steps.complete_step(
        run, step=1, status="ok", tool_calls=0, tokens=10, cost_usd_micros=None
    )
    steps.begin_step(run, step=2, max_steps=20)


def fail_until_the_circuit_opens(run: Run, alice: User) -> None:
    chains = Corrections()
    for number in range(4):
        name = f"toolu_{number}"
        factories.call_tool(run, name)
        factories.return_result(run, name, "Exit code 1", outcome=ToolOutcome.ERROR)
        judged = chains.failed(FailedCall("Bash", {"n": number}, "Exit code 1"))
        steps.record_failure(
            run, judged, step=1, tool_use_id=name, agent_id="", error="Exit code 1"
        )


def spend_most_of_a_budget(run: Run, alice: User) -> None:
    AgentSession.objects.filter(pk=run.session_id).update(max_budget_usd_micros=1_000)
    usage.record_usage(
        session_id=run.session_id,
        provider_id=None,
        message_id="msg_budget",
        model="claude-sonnet-5-5",
        usage=usage.Usage(output_tokens=60),
    )


def ask_to_exceed(run: Run, alice: User) -> None:
    spend_most_of_a_budget(run, alice)
    AgentSession.objects.filter(pk=run.session_id).update(max_budget_usd_micros=1)
    overspending.ask_to_exceed(run)


def spend(run: Run, alice: User) -> None:
    usage.record_usage(
        session_id=run.session_id,
        provider_id=None,
        message_id="msg_1",
        model="claude-sonnet-5-5",
        usage=usage.Usage(input_tokens=1000, output_tokens=200),
    )


def use_tools_in_a_row(run: Run, alice: User) -> None:
    for number in range(1, 5):
        factories.call_tool(run, f"toolu_{number}")
    factories.return_result(run, "toolu_2", outcome=ToolOutcome.DENIED)
    factories.return_result(run, "toolu_4")


def use_tools_and_name_them(run: Run, alice: User) -> None:
    use_tools_in_a_row(run, alice)
    first = run.session.messages.get(tool_use_id="toolu_1")
    metadata.save_group_meta(
        run.session_id,
        first.pk,
        name="listing many files",
        svg='<svg viewBox="0 0 24 24"><path d="M3 3h18"/></svg>',
    )


def ask_within_a_group(run: Run, alice: User) -> None:
    use_tools_in_a_row(run, alice)
    factories.ask_approval(run, "toolu_5")


def decide_within_a_group(run: Run, alice: User) -> None:
    use_tools_in_a_row(run, alice)
    approval = factories.ask_approval(run, "toolu_3")
    decide_approval(approval, alice, Decision(is_approved=False, message="No."))
    factories.call_tool(run, "toolu_9")


def talk_between_two_groups(run: Run, alice: User) -> None:
    use_tools_in_a_row(run, alice)
    factories.say(run, "And now the others.")
    factories.call_tool(run, "toolu_q", "AskUserQuestion", {"questions": []})
    for number in range(5, 9):
        factories.call_tool(run, f"toolu_{number}", "mcp__notes__read_note", {})


def rename(run: Run, alice: User) -> None:
    sessions.rename_session(run.session, "Bees & <b>honey</b>")


def change_settings(run: Run, alice: User) -> None:
    sessions.update_session(run.session, alice, network="open", model="claude-other")


def close(run: Run, alice: User) -> None:
    sessions.close_session(run.session, alice)


def resume(run: Run, alice: User) -> None:
    close(run, alice)
    sessions.resume_session(run.session, alice)


def pin(run: Run, alice: User) -> None:
    sessions.pin_session(run.session, pinned=True)


def stop(run: Run, alice: User) -> None:
    stream(run, alice)
    runs.stop_agent(run.session)
    factories.end_turn(run, stop_reason="cancelled")


def finish(run: Run, alice: User) -> None:
    factories.say(run, "Three.")
    factories.end_turn(run, steps=1)


def fail(run: Run, alice: User) -> None:
    notices.add_notice(run, "error", "The provider refused the key.")
    factories.end_turn(run, stop_reason="error", error_class="auth", error_text="401")


def deliver_queued(run: Run, alice: User) -> None:
    send_while_busy(run, alice)
    finish(run, alice)


def edit(run: Run, alice: User) -> None:
    finish(run, alice)
    branches.edit_message(run.trigger_message, author=alice, text="Count to four")


def switch_back(run: Run, alice: User) -> None:
    edit(run, alice)
    branches.switch_branch(run.session, run.branch)


def fill_the_context(run: Run, alice: User) -> None:
    context.record_context(run, 46_000, "claude-sonnet-5-5")


def compact_by_itself(run: Run, alice: User) -> None:
    fill_the_context(run, alice)
    context.record_compaction(
        run,
        trigger="auto",
        pre_tokens=170_000,
        post_tokens=4_600,
        model="claude-sonnet-5-5",
    )


def compact_by_hand(run: Run, alice: User) -> None:
    factories.remember(run)
    finish(run, alice)
    context.compact(run.session)
    summing = factories.start_turn(run.session)
    context.record_compaction(
        summing, trigger="manual", pre_tokens=9_000, post_tokens=900, model="other"
    )
    factories.end_turn(summing)


def compact_in_vain(run: Run, alice: User) -> None:
    send_compaction(run, alice)
    finish(run, alice)
    factories.end_turn(factories.start_turn(run.session), stop_reason="error")


def send_compaction(run: Run, alice: User) -> None:
    context.compact(run.session)


def clear(run: Run, alice: User) -> None:
    factories.remember(run)
    finish(run, alice)
    context.clear(run.session, alice)


ACTS: list[Act] = [
    *(fill_the_context, compact_by_itself, compact_by_hand, compact_in_vain),
    *(send_compaction, clear),
    *(send_while_busy, stream, answer_in_full, think, use_tool, use_sub_agent),
    *(ask, ask_before_the_call_has_a_row, ask_late, decide, deny, retry, spend),
    *(rename, change_settings, close, resume, pin, stop, finish, fail, deliver_queued),
    *(edit, switch_back, use_tools_in_a_row, use_tools_and_name_them),
    *(take_a_step, fail_until_the_circuit_opens, spend_most_of_a_budget, ask_to_exceed),
    *(ask_within_a_group, decide_within_a_group, talk_between_two_groups),
]


@pytest.mark.parametrize("act", ACTS, ids=lambda act: act.__name__)
def test_a_snapshot_and_its_frames_equal_a_fresh_snapshot(
    act: Act, run: Run, alice: User
) -> None:
    page, dom = snapshot(alice, run.session)

    act(run, alice)
    wires = forward(page, dom)

    assert wires
    _, expected = snapshot(alice, run.session)
    for part in ("title", "status", "facts", "actions", "items", "tail"):
        element_id = f"session-{run.session_id}-{part}"
        got, wanted = dom.find(element_id), expected.find(element_id)
        assert got.outline() == wanted.outline()
    for part in ("waiting", "queue", "closed", "menu"):
        element_id = f"session-{run.session_id}-{part}"
        assert dom.find(element_id).outline() == expected.find(element_id).outline()


def test_the_acts_above_cover_every_durable_event(
    run: Run, alice: User, bob: User
) -> None:
    for act in ACTS:
        act(factories.start_turn(factories.make_session(bob)), bob)

    seen = set(SessionEvent.objects.values_list("type", flat=True))

    assert seen == {event.wire for event in EVENTS.values() if event.is_durable}


def test_every_event_has_a_frame() -> None:
    assert frames.kinds_without_frame(EVENTS) == set()
    assert set(frames.FRAMES) == set(EVENTS)


def test_a_frame_that_comes_twice_changes_nothing(run: Run, alice: User) -> None:
    page, dom = snapshot(alice, run.session)
    answer_in_full(run, alice)
    use_tool(run, alice)

    forward(page, dom)
    page.seq = 0
    forward(page, dom)

    items = f"session-{run.session_id}-items"
    _, expected = snapshot(alice, run.session)
    assert dom.find(items).outline() == expected.find(items).outline()


def test_frames_hold_no_token_and_no_script(run: Run, alice: User) -> None:
    factories.say(run, "<script>alert(1)</script>")
    ask(run, alice)
    send_while_busy(run, alice)
    page = LivePage(user=alice, session_id=run.session_id)

    html = frames.session_snapshot(page)

    assert "csrf" not in html.lower()
    assert parse(html).find_all("script") == []


def test_hidden_messages_are_not_shown(run: Run, alice: User) -> None:
    factories.end_turn(run, stop_reason="cancelled")
    page, dom = snapshot(alice, run.session)

    runs.continue_session(run.session)
    forward(page, dom)

    assert runs.CONTINUE_PROMPT not in dom.text


def test_strangers_get_empty_frames(run: Run, charlie: User) -> None:
    page = LivePage(user=charlie, session_id=run.session_id)

    assert frames.session_snapshot(page) == ""
    assert frames.event_frame(page, "agent:status", {"status": "running"}) == ""


def test_a_delta_is_escaped_and_keeps_its_spaces() -> None:
    message_id = "0b7f7a4e-6f0e-4f2c-9a39-6b8a3f6a2f11"

    frame = frames.delta_frame(message_id, "  <b>bold</b> \n")  # type: ignore[arg-type]

    assert frame == (
        f'<div hx-swap-oob="beforeend:#message-{message_id}-text">'
        "  &lt;b&gt;bold&lt;/b&gt; \n</div>"
    )
