from __future__ import annotations

from typing import Any
from uuid import uuid4

import pytest

from agents.domain.usage import Usage, price_of, price_table, record_usage
from agents.models import AgentSession, CostEntry, Run
from tests import factories
from tests.threads import at_once

USAGE = Usage(
    input_tokens=100, output_tokens=10, cache_read_tokens=1000, cache_write_tokens=40
)
SONNET = "claude-sonnet-5-5"


def record(session: AgentSession, message_id: str = "msg_1", **changes: Any) -> bool:
    return record_usage(
        session_id=session.pk,
        **{
            "provider_id": None,
            "message_id": message_id,
            "model": SONNET,
            "usage": USAGE,
            **changes,
        },
    )


def cost_of(usage: Usage, model: str = SONNET) -> int:
    price = price_of(model)
    assert price is not None
    return price.cost_usd_micros(usage)


def test_an_answered_call_is_entered_and_summed(run: Run) -> None:
    assert record(run.session, agent_id="agent-1")

    entry = CostEntry.objects.get()
    assert (entry.session, entry.run, entry.user) == (
        run.session,
        run,
        run.session.owner,
    )
    assert entry.usd_micros == cost_of(USAGE) == 300 + 150 + 300 + 150
    session = AgentSession.objects.get()
    assert session.cost_usd_micros == entry.usd_micros
    assert (session.input_tokens, session.output_tokens) == (1140, 10)
    assert not session.cost_is_partial
    stored = Run.objects.get()
    assert stored.cost_usd_micros == entry.usd_micros
    assert (stored.input_tokens, stored.output_tokens) == (100, 10)
    assert (stored.cache_read_tokens, stored.cache_write_tokens) == (1000, 40)
    event = session.events.get(type="agent:cost_update")
    assert event.data["cost_usd_micros"] == entry.usd_micros


def test_the_same_answer_counts_once(run: Run) -> None:
    record(run.session)

    assert not record(run.session, usage=Usage(output_tokens=999))

    assert CostEntry.objects.count() == 1
    assert AgentSession.objects.get().cost_usd_micros == cost_of(USAGE)
    assert run.session.events.filter(type="agent:cost_update").count() == 1


def test_what_was_entered_at_its_beginning_grows(run: Run) -> None:
    record(run.session, usage=Usage(input_tokens=100, output_tokens=1))
    factories.end_turn(run)

    assert record(run.session, usage=Usage(input_tokens=100, output_tokens=50))

    entry = CostEntry.objects.get()
    assert (entry.run, entry.input_tokens, entry.output_tokens) == (run, 100, 50)
    assert AgentSession.objects.get().cost_usd_micros == entry.usd_micros
    assert Run.objects.get().cost_usd_micros == entry.usd_micros == 300 + 750


def test_the_same_id_from_another_sessions_provider_counts_too(run: Run) -> None:
    other = factories.make_session(run.session.owner, "Another task")
    record(run.session)

    assert record(other)

    for session in AgentSession.objects.all():
        assert session.cost_usd_micros == cost_of(USAGE)


def test_totals_are_sums_of_the_ledger(run: Run) -> None:
    AgentSession.objects.update(cost_usd_micros=12345, output_tokens=99)

    record(run.session, "msg_1")
    record(run.session, "msg_2", usage=Usage(output_tokens=1))

    session = AgentSession.objects.get()
    assert session.cost_usd_micros == cost_of(USAGE) + 15
    assert session.output_tokens == 11


def test_an_unknown_price_is_partial_not_zero(run: Run) -> None:
    record(run.session, "msg_1")
    record(run.session, "msg_2", model="some-local-model")

    assert CostEntry.objects.get(message_id="msg_2").usd_micros is None
    session = AgentSession.objects.get()
    assert session.cost_is_partial
    assert session.cost_usd_micros == cost_of(USAGE)
    assert session.output_tokens == 20


def test_a_late_answer_counts_for_the_session(run: Run) -> None:
    factories.end_turn(run)

    record(run.session)

    assert CostEntry.objects.get().run is None
    assert AgentSession.objects.get().cost_usd_micros == cost_of(USAGE)
    assert Run.objects.get().cost_usd_micros == 0


def test_a_session_that_is_gone_is_no_error(db: None) -> None:
    assert not record_usage(
        session_id=uuid4(),
        provider_id=None,
        message_id="msg_1",
        model=SONNET,
        usage=USAGE,
    )


def test_what_an_upstream_calls_things_is_cleaned_and_cut(run: Run) -> None:
    record(run.session, "id\x00" + "x" * 300, model="m\ud800" + "y" * 300)

    entry = CostEntry.objects.get()
    assert entry.message_id == ("id\ufffd" + "x" * 300)[:200]
    assert entry.model == ("m\ufffd" + "y" * 300)[:200]
    assert not record(run.session, "id\x00" + "x" * 300, model="m\ud800" + "y" * 300)


@pytest.mark.django_db(transaction=True)
def test_entries_at_once_lose_nothing_and_count_nothing_twice() -> None:
    run = factories.start_turn(factories.make_session(factories.make_user("alice")))

    results = at_once(
        *[
            lambda number=number: record(run.session, f"msg_{number % 4}")
            for number in range(8)
        ]
    )

    assert (results.count(True), results.count(False)) == (4, 4)
    session = AgentSession.objects.get()
    assert session.cost_usd_micros == 4 * cost_of(USAGE)
    assert session.output_tokens == 40


def test_the_ledger_outlives_the_session(run: Run) -> None:
    record(run.session)
    owner = run.session.owner

    run.session.delete()

    assert owner.cost_entries.get().session is None


@pytest.mark.parametrize(
    ("model", "prefix"),
    [
        ("claude-opus-4-1-20250805", "claude-opus-4-1"),
        ("claude-opus-4-5", "claude-opus"),
        ("cc/claude-sonnet-4-5", "claude-sonnet"),
        ("anthropic/router/claude-sonnet-9", "claude-sonnet"),
    ],
)
def test_the_longest_beginning_gives_the_price(model: str, prefix: str) -> None:
    assert price_of(model) == price_table()[prefix]


@pytest.mark.parametrize("model", ["", "gpt-5", "my-claude-sonnet", "claude"])
def test_other_models_have_no_price(model: str) -> None:
    assert price_of(model) is None
