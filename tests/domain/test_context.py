"""What the model holds: windows, and the rows that Compact and Clear leave."""

from __future__ import annotations

from uuid import UUID

import pytest

from agents.domain import branches, context, messages, notices, runs, sessions
from agents.domain.context import Window, window_of
from agents.domain.queries.branches import load_navigators
from agents.domain.queries.context import load_meter
from agents.domain.queries.sessions import load_page
from agents.domain.queries.transcript import load_transcript
from agents.domain.transcripts import is_summarised_after
from agents.errors import InvalidInputError, RunActiveError, SessionClosedError
from agents.models import AgentSession, Run, TranscriptEntry, User
from agents.models.messages import MessageRole
from agents.models.runs import RunKind
from tests import factories

pytestmark = pytest.mark.django_db


@pytest.mark.parametrize(
    ("model", "window"),
    [
        ("claude-haiku-4-5", Window(200_000)),
        ("anthropic/claude-opus-5-5", Window(1_000_000)),
        ("claude-sonnet-4-5[1m]", Window(1_000_000)),
        ("llama-9", Window(200_000, is_known=False)),
        ("", Window(200_000, is_known=False)),
    ],
)
def test_how_much_a_model_holds(model: str, window: Window) -> None:
    assert window_of(model) == window


@pytest.mark.parametrize(
    ("tokens", "text", "level"),
    [
        (0, "0% of 200k", ""),
        (46_000, "23% of 200k", ""),
        (140_000, "70% of 200k", "high"),
        (180_000, "90% of 200k", "full"),
        (250_000, "100% of 200k", "full"),
    ],
)
def test_the_meter_says_how_full_it_is(
    tokens: int, text: str, level: str, run: Run
) -> None:
    context.record_context(run, tokens, "claude-haiku-4-5")
    run.model_actual = "claude-haiku-4-5"

    meter = load_meter(fresh(run.session), run)

    assert meter is not None
    assert (meter.text, meter.level) == (text, level)
    assert "guess" not in meter.title


def test_there_is_no_meter_before_the_first_answer(run: Run) -> None:
    assert load_meter(fresh(run.session), run) is None


def test_the_meter_of_an_unknown_model_says_that_it_guesses(run: Run) -> None:
    context.record_context(run, 10, "")
    run.model_actual = "llama-9"

    meter = load_meter(fresh(run.session), run)

    assert meter is not None
    assert "guess" in meter.title


def fresh(session: AgentSession) -> AgentSession:
    return AgentSession.objects.get(pk=session.pk)


def finish(run: Run) -> AgentSession:
    """A turn that the model remembers."""
    factories.remember(run)
    factories.say(run, "Three.")
    factories.end_turn(run)
    return fresh(run.session)


def shown(session: AgentSession, user: User) -> list[str]:
    items = load_transcript(fresh(session), user).items
    return [item.message.text or item.message.content["kind"] for item in items]


def test_nothing_can_be_compacted_or_cleared_before_something_was_said(
    session: AgentSession, alice: User
) -> None:
    runs.stop_agent(session)

    for act in (
        lambda: context.compact(session),
        lambda: context.clear(session, alice),
    ):
        with pytest.raises(InvalidInputError):
            act()


def test_a_compaction_is_a_run_of_its_own_kind(run: Run) -> None:
    session = finish(run)

    row = context.compact(session)

    summing = session.runs.unfinished().get()
    assert (summing.kind, summing.trigger_message) == (RunKind.COMPACT, row)


def test_a_compaction_that_waits_can_be_taken_out_but_not_rewritten(run: Run) -> None:
    row = context.compact(run.session)

    assert context.compact(run.session) == row
    assert not messages.edit_queued_message(row, "rm -rf /")
    assert messages.remove_queued_message(row)
    factories.end_turn(run)
    assert not run.session.runs.unfinished().exists()


def test_a_compaction_without_a_summary_says_so(run: Run) -> None:
    session = finish(run)
    row = context.compact(session)

    factories.end_turn(factories.start_turn(session), stop_reason="cancelled")

    row.refresh_from_db()
    assert row.text == notices.NOT_COMPACTED


def test_clear_waits_for_nobody(run: Run, alice: User) -> None:
    with pytest.raises(RunActiveError):
        context.clear(run.session, alice)


def test_a_closed_session_is_left_as_it_is(run: Run, alice: User) -> None:
    session = finish(run)
    sessions.close_session(session, alice)

    with pytest.raises(SessionClosedError):
        context.clear(session, alice)
    with pytest.raises(SessionClosedError):
        context.compact(session)


def test_clear_keeps_the_page_and_takes_the_memory(run: Run, alice: User) -> None:
    session = finish(run)

    context.clear(session, alice)

    branch = fresh(session).active_branch
    assert branch is not None
    assert shown(session, alice) == ["Count to three", "Three.", context.CLEARED]
    assert branch.parent_branch == run.branch
    assert branch.sdk_session_id != run.branch.sdk_session_id
    assert (branch.sdk_fork_session_id, branch.sdk_fork_uuid) == (None, None)
    assert load_navigators(session.pk) == {}
    with pytest.raises(InvalidInputError):
        context.clear(session, alice)


def test_what_waited_is_said_after_the_divider(run: Run, alice: User) -> None:
    messages.send_message(run.session, author=alice, text="Later")
    factories.remember(run)
    factories.end_turn(run, stop_reason="error")
    session = fresh(run.session)

    context.clear(session, alice)
    messages.resume_queue(session)

    later = session.messages.get(text="Later")
    assert later.branch_id == fresh(session).active_branch_id
    assert shown(session, alice)[-2:] == [context.CLEARED, "Later"]


def test_an_edit_of_the_first_message_after_the_divider_stays_below_it(
    run: Run, alice: User
) -> None:
    session = finish(run)
    context.clear(session, alice)
    first = messages.send_message(session, author=alice, text="Afresh")
    finish(factories.start_turn(fresh(session)))

    branches.edit_message(first, author=alice, text="Anew")

    assert shown(session, alice) == [
        *("Count to three", "Three.", context.CLEARED, "Anew")
    ]


def test_a_failed_turn_from_before_the_divider_is_not_offered_again(
    run: Run, alice: User
) -> None:
    factories.remember(run)
    factories.end_turn(run, stop_reason="context_limit", error_class="context_limit")
    assert load_page(fresh(run.session), alice).is_context_full

    context.clear(fresh(run.session), alice)

    page = load_page(fresh(run.session), alice)
    assert (page.is_context_full, page.can_retry) == (False, False)


def test_a_summary_later_than_an_entry_is_found(run: Run) -> None:
    factories.remember(run)
    entries = TranscriptEntry.objects.order_by("pk")
    first, last = entries[0], entries[1]
    conversation = run.branch.sdk_session_id
    assert not is_summarised_after(conversation, UUID(first.uuid))

    TranscriptEntry.objects.create(
        project_key="test",
        sdk_session_id=str(conversation),
        uuid="b",
        type="system",
        entry='{"type": "system", "subtype": "compact_boundary"}',
    )

    assert is_summarised_after(conversation, UUID(last.uuid))


def test_a_summary_by_hand_fills_its_own_row(run: Run) -> None:
    session = finish(run)
    row = context.compact(session)
    summing = factories.start_turn(session)

    context.record_compaction(
        summing, trigger="manual", pre_tokens=150_000, post_tokens=933, model="m"
    )
    factories.end_turn(summing)

    row.refresh_from_db()
    assert row.text.startswith("The conversation was summarised: 150k → 933 tokens.")
    assert session.messages.filter(role=MessageRole.SYSTEM).count() == 1
    summing.branch.refresh_from_db()
    assert summing.branch.context_tokens == 933
