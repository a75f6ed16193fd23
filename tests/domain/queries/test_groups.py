"""Tool calls in a row: which are folded together, and what the summary says."""

from __future__ import annotations

from collections.abc import Callable
from uuid import UUID

import pytest

from agents.domain import metadata
from agents.domain.queries.groups import (
    Place,
    ToolGroup,
    fold,
    foldable_name,
)
from agents.domain.queries.transcript import load_transcript
from agents.models import Run, User
from agents.models.messages import ToolOutcome
from agents.rendering.dom import dom_id
from tests import factories


def places(shape: str, state: str = "done") -> list[Place]:
    """A letter per item: lower case are tools' calls, anything else stands apart."""
    return [
        Place(
            message_id=UUID(int=number),
            seq=number,
            tool_name=letter if letter.islower() else "",
            label=letter.upper() if letter.islower() else "",
            state=state if letter.islower() else "",
        )
        for number, letter in enumerate(shape)
    ]


@pytest.mark.parametrize(
    ("shape", "folded"),
    [
        ("", []),
        ("U", [1]),
        ("b", [1]),
        ("bb", [1, 1]),
        ("bbb", [3]),
        ("brb", [3]),
        ("bbbbbb", [6]),
        ("UbbA", [1, 1, 1, 1]),
        ("UbbbA", [1, 3, 1]),
        ("UbbbAbbb", [1, 3, 1, 3]),
        ("bbAb", [1, 1, 1, 1]),
        ("bbbAbb", [3, 1, 1, 1]),
        ("AAA", [1, 1, 1]),
    ],
)
def test_more_than_two_calls_in_a_row_are_folded(shape: str, folded: list[int]) -> None:
    entries = fold(places(shape))

    assert [len(entry) for entry in entries] == folded
    assert [place for entry in entries for place in entry] == places(shape)


@pytest.mark.parametrize(
    ("tool_name", "name"),
    [
        ("Bash", "Bash"),
        ("mcp__notes__read", "mcp__notes__read"),
        ("AskUserQuestion", ""),
        ("ExitPlanMode", ""),
        ("Agent", ""),
        ("Task", ""),
        ("RenderOutput", ""),
        ("mcp__openswarm__RenderOutput", ""),
        ("mcp__openswarm-invoke-agent__InvokeAgent", ""),
    ],
)
def test_what_people_look_for_stands_apart(tool_name: str, name: str) -> None:
    assert foldable_name(tool_name) == name


def group(*states: str, tool: str = "b") -> ToolGroup:
    return ToolGroup(
        places=tuple(
            Place(
                message_id=UUID(int=number),
                seq=number,
                tool_name=tool,
                label="Bash",
                state=state,
            )
            for number, state in enumerate(states)
        )
    )


def test_the_summary_counts() -> None:
    counted = group("done", "denied", "denied", "error", "running", "waiting")

    assert (counted.count, counted.done_count) == (6, 4)
    assert (counted.denied_count, counted.failed_count) == (2, 1)
    assert counted.is_waiting
    assert counted.is_under_way


@pytest.mark.parametrize(
    ("states", "tool", "is_open"),
    [
        (("done", "done", "done"), "Bash", False),
        (("done", "running", "done"), "Bash", False),
        (("done", "waiting", "done"), "Bash", True),
        (("done", "done", "done"), "mcp__notes__read", True),
    ],
)
def test_a_group_is_open_where_somebody_must_look(
    states: tuple[str, ...], tool: str, is_open: bool
) -> None:
    assert group(*states, tool=tool).is_open is is_open


def test_without_a_model_a_group_is_called_by_its_tools() -> None:
    mixed = places("brb")

    assert group("done", "done", "done").name == "Bash"
    assert ToolGroup(places=tuple(mixed)).name == "Tool calls"


def test_the_place_of_a_name_is_kept_while_it_is_on_its_way(
    override_conf: Callable[..., None],
) -> None:
    override_conf(generate_titles=True)
    assert group("running", "done", "done").is_unnamed
    assert not group("done", "done", "done").is_unnamed

    override_conf(generate_titles=False)
    assert not group("running", "done", "done").is_unnamed


@pytest.mark.django_db
def test_a_transcript_has_groups_with_their_names(run: Run, alice: User) -> None:
    first = factories.call_tool(run, "toolu_1")
    factories.call_tool(run, "toolu_2")
    factories.return_result(run, "toolu_2", outcome=ToolOutcome.DENIED)
    factories.call_tool(run, "toolu_3")
    metadata.save_group_meta(run.session_id, first.pk, name="list the files")

    entries = load_transcript(run.session, alice).entries

    folded = entries[-1]
    assert isinstance(folded, ToolGroup)
    assert len(entries) == 2
    assert folded.element_id == dom_id("group", first.pk)
    assert folded.name == "List The Files"
    assert folded.denied_count == 1
    assert [item.message.tool_use_id for item in folded.items] == [
        "toolu_1",
        "toolu_2",
        "toolu_3",
    ]


@pytest.mark.django_db
def test_no_page_begins_in_the_middle_of_a_group(run: Run, alice: User) -> None:
    factories.say(run, "I look around.")
    for number in range(8):
        factories.call_tool(run, f"toolu_{number}")
    factories.say(run, "Done.")

    newest = load_transcript(run.session, alice, limit=3)

    assert [type(entry).__name__ for entry in newest.entries] == ["ToolGroup", "Single"]
    assert len(newest.items) == 9
    assert newest.has_older
    older = load_transcript(run.session, alice, before_seq=newest.oldest_seq, limit=3)
    assert [item.message.text for item in older.items] == [
        "Count to three",
        "I look around.",
    ]
    assert not older.has_older
