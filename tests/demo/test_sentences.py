"""Plain sentences, read without any server."""

from __future__ import annotations

import pytest

from agents.demo.script import Call, Reply, Say, Step, Think
from agents.demo.sentences import EXAMPLES, HELLO, Context, steps_of

TOOLS = frozenset(
    {
        *("Read", "Write", "Edit", "Glob", "Grep", "Bash", "Agent", "TodoWrite"),
        *("AskUserQuestion", "EnterPlanMode", "ExitPlanMode"),
    }
)


def read(text: str, *earlier: str, tools: frozenset[str] = TOOLS) -> tuple[Step, ...]:
    return steps_of(text, Context(tools=tools, earlier=earlier))


def calls(steps: tuple[Step, ...]) -> list[Call]:
    return [call for step in steps if isinstance(step, Reply) for call in step.calls]


def words(steps: tuple[Step, ...]) -> list[str]:
    pieces = [p for step in steps if isinstance(step, Reply) for p in step.pieces]
    return [piece.text for piece in pieces if isinstance(piece, Say)]


@pytest.mark.parametrize(
    ("sentence", "tool", "tool_input"),
    [
        (
            "write the file notes.txt with the text Hello, world.",
            "Write",
            {"file_path": "$CWD/notes.txt", "content": "Hello, world."},
        ),
        (
            'Please create a file called "my notes.md" containing "# Title\n\ntext"',
            "Write",
            {"file_path": "$CWD/my notes.md", "content": "# Title\n\ntext"},
        ),
        (
            "write the file /tmp/x with the text y",
            "Write",
            {"file_path": "/tmp/x", "content": "y"},
        ),
        (
            "run `ls -l && pwd`",
            "Bash",
            {"command": "ls -l && pwd", "description": "Run a command"},
        ),
        ("read the file ./a/b.txt", "Read", {"file_path": "$CWD/a/b.txt"}),
        ("Read notes.txt.", "Read", {"file_path": "$CWD/notes.txt"}),
        ("list the files", "Glob", {"pattern": "**/*"}),
        ("find files *.py", "Glob", {"pattern": "*.py"}),
        (
            "search for needle",
            "Grep",
            {"pattern": "needle", "output_mode": "content"},
        ),
    ],
)
def test_a_sentence_becomes_a_tool_call(sentence, tool, tool_input):
    assert calls(read(sentence)) == [Call(tool, tool_input)]


def test_two_files_are_read_in_one_message():
    (step,) = read("read a.txt and b.txt")

    assert isinstance(step, Reply)
    paths = [call.input for call in step.calls]
    assert paths == [{"file_path": "$CWD/a.txt"}, {"file_path": "$CWD/b.txt"}]


def test_a_file_is_read_before_it_is_edited():
    steps = read("edit a.txt replace one two with three")

    change = {
        "file_path": "$CWD/a.txt",
        "old_string": "one two",
        "new_string": "three",
    }
    look = Call("Read", {"file_path": "$CWD/a.txt"})
    assert calls(steps) == [look, Call("Edit", change)]


def test_then_joins_sentences_but_not_inside_quotes():
    steps = read('write the file a with the text "now then go", then run cat a')

    assert [call.tool for call in calls(steps)] == ["Write", "Bash"]
    assert calls(steps)[0].input == {"file_path": "$CWD/a", "content": "now then go"}


def test_texts_are_joined_with_what_follows():
    (step,) = read("think about tea then count to 3 then run date")

    assert isinstance(step, Reply)
    assert [type(piece) for piece in step.pieces] == [Think, Say, Say, Say, Call]


def test_counting_names_each_number():
    assert words(read("count to 4")) == ["1 2 3 4"]


def test_a_sub_agent_gets_its_task():
    (call,) = calls(read("start a sub-agent to read a.txt"))

    assert call.tool == "Agent"
    assert isinstance(call.input, dict)
    assert call.input["prompt"] == "read a.txt"


def test_a_todo_list_shows_each_state():
    (call,) = calls(read("make a todo list: tea, water and cups"))

    assert isinstance(call.input, dict)
    states = [(todo["content"], todo["status"]) for todo in call.input["todos"]]
    assert states == [
        ("tea", "completed"),
        ("water", "in_progress"),
        ("cups", "pending"),
    ]


def test_a_session_that_only_plans_does_not_enter_plan_mode():
    tools = Context(tools=frozenset({"Write", "ExitPlanMode"}))
    steps = calls(steps_of("plan a garden", tools))

    assert [call.tool for call in steps] == ["Write", "ExitPlanMode"]


def test_an_approved_plan_is_heard_of():
    (said,) = words(read("The plan is approved. Carry it out now."))

    assert "carry the plan out" in said


def test_a_plan_is_entered_written_and_handed_in():
    steps = calls(read("plan a garden"))

    assert [call.tool for call in steps] == ["EnterPlanMode", "Write", "ExitPlanMode"]


@pytest.mark.parametrize("sentence", ["hello", "Hi!", "help", "hello there"])
def test_a_greeting_explains_what_can_be_tried(sentence):
    assert words(read(sentence)) == [HELLO]
    assert "scripted" in HELLO


def test_memory_is_listed_to_the_letter():
    assert words(read("What did I say before?", "one\n  two", "three")) == [
        "Before this you sent me 2 messages:\n\n1. one\n  two\n2. three"
    ]


def test_an_empty_memory_is_admitted():
    expected = ["This is the first message that you sent me."]
    assert words(read("what did I say before?")) == expected


def test_a_tool_that_is_not_offered_is_not_called():
    steps = read(
        "run ls then write the file a with the text b", tools=TOOLS - {"Write"}
    )

    assert [call.tool for call in calls(steps)] == ["Bash"]
    expected = "I would use Write for this, but it is not offered to me here."
    assert words(steps)[-1] == expected


def test_an_unknown_sentence_is_quoted():
    (answer,) = words(read("fly to the moon"))

    assert answer.startswith("I don't know how to do this: fly to the moon")


def test_notes_in_front_of_the_sentence_are_passed_over():
    assert words(read("Context: a folder\n\ncount to 2")) == ["1 2"]


def test_a_blank_prompt_is_answered():
    assert len(read("")) == 1


@pytest.mark.parametrize("example", EXAMPLES)
def test_each_example_is_understood(example):
    assert not any("I don't know" in text for text in words(read(example)))
