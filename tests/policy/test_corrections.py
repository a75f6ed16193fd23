"""Chains of failures: cycles, the circuit, identical calls, and what ends them."""

from __future__ import annotations

import pytest

from agents.policy.corrections import (
    Correction,
    Corrections,
    FailedCall,
    Refusal,
    StepFailure,
)


def fail(
    chains: Corrections,
    command: str = "",
    *,
    tool: str = "Bash",
    agent: str = "",
    error: str = "Exit code 1",
) -> Correction | StepFailure:
    return chains.failed(FailedCall(tool, {"command": command}, error, agent))


def review(
    chains: Corrections, command: str = "new", *, tool: str = "Bash", agent: str = ""
) -> Refusal | None:
    return chains.review(tool, {"command": command}, agent)


def test_three_failures_are_corrected_and_the_fourth_fails_the_step() -> None:
    chains = Corrections()

    judged = [fail(chains, str(number)) for number in range(4)]

    assert [each.cycle for each in judged[:3] if isinstance(each, Correction)] == [
        1,
        2,
        3,
    ]
    assert isinstance(judged[3], StepFailure)
    assert judged[3].failures == 4
    assert "Stop retrying" in judged[3].text
    assert chains.has_unresolved_failure


def test_the_circuit_opens_with_the_failed_step() -> None:
    chains = Corrections()
    for number in range(3):
        fail(chains, str(number))
        assert review(chains) is None

    fail(chains, "3")

    refusal = review(chains)
    assert refusal is not None
    assert refusal.may_be_approved
    assert not refusal.ends_turn
    assert review(chains, tool="Read") is None


def test_who_insists_against_an_open_circuit_ends_the_turn() -> None:
    chains = Corrections()
    for number in range(4):
        fail(chains, str(number))

    ends = []
    for number in range(3):
        refusal = review(chains, f"again {number}")
        assert refusal is not None
        ends.append(refusal.ends_turn)
        chains.refused("Bash")

    assert ends == [False, False, True]


def test_a_success_ends_the_chain_and_makes_the_failed_step_good() -> None:
    chains = Corrections()
    for number in range(4):
        fail(chains, str(number))

    chains.succeeded("Bash")

    assert review(chains) is None
    assert not chains.has_unresolved_failure
    first = fail(chains, "5")
    assert isinstance(first, Correction)
    assert first.cycle == 1


def test_a_success_of_another_tool_leaves_the_chain_but_counts_for_the_run() -> None:
    chains = Corrections()
    for number in range(4):
        fail(chains, str(number))

    chains.succeeded("Read")

    assert review(chains) is not None
    assert not chains.has_unresolved_failure


def test_tools_and_agents_are_counted_apart() -> None:
    chains = Corrections()
    for number in range(3):
        fail(chains, str(number))

    others = [fail(chains, "x", tool="Edit"), fail(chains, "x", agent="agent-1")]

    assert [each.cycle for each in others if isinstance(each, Correction)] == [1, 1]
    chains.succeeded("Bash", "agent-1")
    assert isinstance(fail(chains, "4"), StepFailure)


def test_a_call_that_failed_three_times_to_the_letter_is_refused_then_ends_it() -> None:
    chains = Corrections()
    for _ in range(3):
        assert review(chains, "same") is None
        fail(chains, "same")

    warned = review(chains, "same")
    assert warned is not None
    assert (warned.ends_turn, warned.may_be_approved) == (False, False)
    assert "3 times in a row" in warned.text
    chains.refused("Bash")
    ended = review(chains, "same")

    assert ended is not None
    assert ended.ends_turn
    assert review(chains, "other") is None


def test_another_failure_between_breaks_the_row() -> None:
    chains = Corrections()
    for command in ("same", "same", "other"):
        fail(chains, command)

    assert review(chains, "same") is None


def test_the_order_of_an_inputs_fields_makes_no_difference() -> None:
    chains = Corrections()
    inputs: list[dict[str, int]] = [
        {"a": 1, "b": 2},
        {"b": 2, "a": 1},
        {"a": 1, "b": 2},
    ]
    for each in inputs:
        chains.failed(FailedCall("Edit", each, "no"))

    assert chains.review("Edit", {"b": 2, "a": 1}) is not None


@pytest.mark.parametrize("command", ["\ud83d", "\x00", "é" * 10_000])
def test_any_input_can_be_compared(command: str) -> None:
    chains = Corrections()
    fail(chains, command)

    assert review(chains, command) is None
