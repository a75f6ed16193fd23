"""How each tool's calls are shown."""

from __future__ import annotations

import base64
from itertools import product
from typing import Any

import pytest

from agents.rendering.tool_bodies import strip_line_numbers
from agents.rendering.tool_calls import ToolResult, ToolView, tool_view
from tests.rendering.harmless import assert_harmless, text_of
from tests.rendering.hostile import BIG, HOSTILE

PNG = base64.b64encode(b"\x89PNG\r\n\x1a\n" + bytes(20)).decode()
_TOOLS = """
    Bash Read Edit MultiEdit Write NotebookEdit Glob Grep LS TodoWrite TaskCreate
    TaskUpdate TaskGet TaskList AskUserQuestion Agent Task ExitPlanMode WebFetch
    WebSearch Skill ToolSearch TaskStop mcp__files__read Unheard
"""
TOOLS = _TOOLS.split()
_FIELDS = """
    command description file_path path content old_string new_string edits todos
    questions pattern url prompt plan answers subject status query
"""
FIELDS = _FIELDS.split()


def view(name: str, tool_input: Any, result: ToolResult | None = None) -> Any:
    """A view whose context is loosely typed, so tests can look into any kind."""
    return tool_view(name, tool_input, result)


def html_parts(value: Any) -> list[str]:
    """Every string of a view that a template would print as HTML or as text."""
    match value:
        case ToolView():
            return [value.label, value.summary, *html_parts(value.context)]
        case str():
            return [value] if hasattr(value, "__html__") else []
        case dict():
            return [part for item in value.values() for part in html_parts(item)]
        case list():
            return [part for item in value for part in html_parts(item)]
        case _:
            return [value.html] if hasattr(value, "html") else []


def shown_rows(context: dict[str, Any]) -> list[tuple[str, str]]:
    return [(row.kind, text_of(row.html)) for row in context["rows"]]


def test_a_command_is_shown_as_a_terminal():
    shown = view(
        "Bash",
        {"command": "ls -l", "description": "List files"},
        ToolResult(
            text="a.txt\nwarned",
            structured={"stdout": "\x1b[31ma.txt\x1b[0m", "stderr": "warned"},
        ),
    )

    assert (shown.icon, shown.label) == ("square-terminal", "Bash")
    assert shown.summary == "List files"
    assert shown.template == "agents/tools/_terminal.html"
    assert text_of(shown.context["command"]) == "ls -l"
    assert shown.context["output"] == '<span class="ansi-fg-1">a.txt</span>\nwarned'
    assert shown.context["exit_code"] == 0


def test_a_failed_command_shows_its_exit_code_once():
    shown = view(
        "Bash",
        {"command": "false"},
        ToolResult(text="Exit code 127\nno such command", is_error=True),
    )

    assert shown.context["exit_code"] == 127
    assert shown.context["output"] == "no such command"
    assert shown.context["is_error"] is True


@pytest.mark.parametrize(
    ("tool_input", "result"),
    [
        ({"command": "x"}, None),
        ({"command": "x"}, ToolResult(text="denied", is_error=True)),
        ({"command": "x"}, ToolResult(structured={"interrupted": True})),
        ({"command": "x"}, ToolResult(structured={"backgroundTaskId": "b1"})),
    ],
)
def test_a_command_without_an_end_has_no_exit_code(tool_input, result):
    assert view("Bash", tool_input, result).context["exit_code"] is None


def test_an_edit_is_shown_as_a_diff():
    shown = view(
        "Edit", {"file_path": "/w/a.txt", "old_string": "one", "new_string": "two"}
    )

    assert (shown.kind, shown.summary) == ("diff", "/w/a.txt")
    assert shown_rows(shown.context) == [("del", "one"), ("add", "two")]
    assert (shown.context["added"], shown.context["removed"]) == (1, 1)


def test_a_finished_edit_shows_where_in_the_file_it_was():
    patch = [
        {"oldStart": 8, "oldLines": 1, "newStart": 8, "newLines": 1,
         "lines": ["-one", "+two"]}
    ]  # fmt: skip
    shown = view(
        "Edit",
        {"file_path": "a.txt", "old_string": "one", "new_string": "two"},
        ToolResult(text="updated", structured={"structuredPatch": patch}),
    )

    assert [row.old_no or row.new_no for row in shown.context["rows"]] == [None, 8, 8]


def test_several_edits_are_shown_one_after_the_other():
    edits = [
        {"old_string": "a", "new_string": "b"},
        "nonsense",
        {"old_string": "c", "new_string": "d"},
    ]

    shown = view("MultiEdit", {"file_path": "x", "edits": edits})

    assert [text for _, text in shown_rows(shown.context)] == ["a", "b", "c", "d"]


def test_a_new_file_is_all_added():
    shown = view("Write", {"file_path": "x.txt", "content": "a\nb\n"})

    assert shown_rows(shown.context) == [("add", "a"), ("add", "b")]


def test_overwriting_shows_what_changed():
    shown = view(
        "Write",
        {"file_path": "x.txt", "content": "a\nc\n"},
        ToolResult(structured={"type": "update", "originalFile": "a\nb\n"}),
    )

    assert shown_rows(shown.context) == [
        ("context", "a"),
        ("del", "b"),
        ("add", "c"),
    ]


def test_a_failed_edit_says_why():
    shown = view(
        "Edit",
        {"file_path": "x", "old_string": "a", "new_string": "b"},
        ToolResult(text="String to replace <not> found", is_error=True),
    )

    assert shown.context["notice"] == "String to replace &lt;not&gt; found"


def test_a_read_file_is_shown_as_code_in_its_language():
    shown = view(
        "Read",
        {"file_path": "/w/a.py", "offset": 3, "limit": 2},
        ToolResult(
            structured={
                "type": "text",
                "file": {"content": "return 1\n", "startLine": 3},
            }
        ),
    )

    assert (shown.kind, shown.summary) == ("code", "/w/a.py, lines 3 to 4")
    assert shown.context["language"] == "Python"
    assert shown.context["start_line"] == 3
    assert text_of(shown.context["html"]) == "return 1\n"


@pytest.mark.parametrize(
    ("text", "stripped"),
    [
        ("1\ta\n2\t\tb", ("a\n\tb", 1, "")),
        ("     7→a\n     8→", ("a\n", 7, "")),
        ("1:a: b\n2:c", ("a: b\nc", 1, "")),
        ("1\t5→five\n2\t6→six", ("5→five\n6→six", 1, "")),
        ("1\ta\n\n<system-reminder>x</system-reminder>",
         ("a", 1, "<system-reminder>x</system-reminder>")),
        ("1\ta\n7\tb", ("a", 1, "7\tb")),
        ("File is empty.", ("File is empty.", 1, "")),
        ("", ("", 1, "")),
    ],
)  # fmt: skip
def test_the_numbers_of_a_read_result_are_taken_off(text, stripped):
    assert strip_line_numbers(text) == stripped


def test_a_read_that_failed_says_why():
    shown = view(
        "Read", {"file_path": "x"}, ToolResult(text="No such file", is_error=True)
    )

    assert shown.context["notice"] == "No such file"


@pytest.mark.parametrize(
    "result",
    [
        ToolResult(text="Found 2 files", structured={"filenames": ["a", "b<"]}),
        ToolResult(text="a\nb<\n"),
        ToolResult(structured={"content": "a\nb<", "filenames": []}),
    ],
)
def test_found_files_are_a_list(result):
    shown = view("Grep", {"pattern": "x", "path": "src"}, result)

    assert (shown.kind, shown.summary) == ("list", "x in src")
    assert shown.context["items"] == ["a", "b&lt;"]
    assert shown.context["total"] == 2


def test_todos_are_a_checklist():
    todos = [
        {"content": "one", "status": "completed"},
        {"content": "two", "status": "in_progress"},
        {"content": "three", "status": "made up"},
    ]

    shown = view("TodoWrite", {"todos": todos})

    assert (shown.kind, shown.summary) == ("checklist", "1 of 3 done")
    assert [item["state"] for item in shown.context["items"]] == [
        "completed",
        "in_progress",
        "pending",
    ]


def test_a_task_is_a_checklist_of_one():
    shown = view("TaskUpdate", {"taskId": "4", "status": "completed"})

    assert shown.context["items"] == [{"text": "Task 4", "state": "completed"}]


def test_a_question_shows_options_and_the_answer():
    questions = [
        {
            "question": "Which <one>?",
            "header": "Choice",
            "multiSelect": True,
            "options": [{"label": "A", "description": "first"}, {"label": "B"}, "C"],
        }
    ]

    shown = view(
        "AskUserQuestion",
        {"questions": questions, "answers": {"Which <one>?": "A, C"}},
    )

    (question,) = shown.context["questions"]
    assert (question["key"], question["text"]) == ("Which <one>?", "Which &lt;one&gt;?")
    assert question["multi_select"] is True
    assert question["answer"] == "A, C"
    assert [(o["value"], o["chosen"]) for o in question["options"]] == [
        ("A", True),
        ("B", False),
        ("C", True),
    ]


@pytest.mark.parametrize("questions", [None, 3, "x", {}, [], [None, 3], {"a": 1}])
def test_a_malformed_question_is_shown_as_json(questions):
    assert view("AskUserQuestion", {"questions": questions}).kind == "json"


def test_a_questions_plain_strings_can_be_sent_to_a_browser():
    questions = [{"question": "half \ud83d", "options": ["\x00"]}]

    (question,) = view("AskUserQuestion", {"questions": questions}).context["questions"]

    assert question["key"] == "half \ufffd"
    assert question["options"][0]["value"] == "\ufffd"


@pytest.mark.parametrize(
    "image",
    [
        f"data:image/png;base64,{PNG}",
        {"source": {"type": "base64", "media_type": "image/png", "data": PNG}},
        {"type": "image", "mimeType": "image/png", "data": PNG},
    ],
)
def test_an_image_is_an_image(image):
    shown = view("mcp__shot__take", {}, ToolResult(images=[image]))

    assert shown.kind == "image"
    assert shown.context["sources"] == [f"data:image/png;base64,{PNG}"]


def test_a_read_image_is_found_in_the_structured_result():
    file = {"base64": PNG, "type": "image/png"}

    shown = view("Read", {}, ToolResult(structured={"type": "image", "file": file}))

    assert shown.context["sources"] == [f"data:image/png;base64,{PNG}"]


@pytest.mark.parametrize(
    "image",
    [
        "https://evil.example/x.png",
        "javascript:alert(1)",
        "data:image/svg+xml;base64,PHN2Zz4=",
        "data:text/html;base64,PHN2Zz4=",
        f'data:image/png;base64,{PNG}" onload="x',
        f"data:image/jpeg;base64,{PNG}",
        "data:image/png;base64,AAAA",
        {"type": "image/png", "base64": "%%%"},
        {"source": "x"},
        None,
        7,
        ["x"],
    ],
)
def test_what_only_claims_to_be_an_image_is_refused(image):
    shown = view("mcp__shot__take", {}, ToolResult(images=[image]))

    assert shown.kind == "json"


def test_an_mcp_tool_names_its_server_and_shows_json():
    shown = view(
        "mcp__github__create_issue", {"title": "Bug"}, ToolResult(text='{"id":1}')
    )

    assert (shown.icon, shown.label) == ("plug", "github: create_issue")
    assert shown.summary == "Bug"
    assert text_of(shown.context["input"]) == '{\n  "title": "Bug"\n}'
    assert text_of(shown.context["output"]) == '{\n  "id": 1\n}'


def test_an_agents_answer_is_rendered():
    shown = view(
        "Agent",
        {"description": "Look", "prompt": "Look for <b>"},
        ToolResult(text="**Found**"),
    )

    assert (shown.kind, shown.summary) == ("text", "Look")
    assert shown.context["prompt"] == "Look for &lt;b&gt;"
    assert shown.context["html"] == "<p><strong>Found</strong></p>\n"


def test_an_agents_report_is_shown_without_the_clis_frame():
    framed = (
        "[Subagent hand-back] The text below is … The report follows:\n"
        "  **Found**\n    two\nagentId: a01d9\n<usage>tool_uses: 0</usage>"
    )

    shown = view("Agent", {"prompt": "Look"}, ToolResult(text=framed))

    assert shown.context["html"] == "<p><strong>Found</strong>\ntwo</p>\n"


def test_a_plan_is_rendered():
    shown = view("ExitPlanMode", {"plan": "# Plan"})

    assert shown.context["html"] == "<h1>Plan</h1>\n"


@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE)
def test_hostile_calls_are_harmless(text):
    tool_input = {
        **dict.fromkeys(FIELDS, text),
        "todos": [{"content": text, "status": text}],
        "questions": [{"question": text, "header": text, "options": [text]}],
        "edits": [{"old_string": text, "new_string": ""}],
    }
    structured = {"stdout": text, "filenames": [text]}
    results = (
        None,
        ToolResult(text=text, structured=structured),
        ToolResult(text=text, is_error=True),
    )

    for name, result in product(TOOLS, results):
        parts = html_parts(view(name, tool_input, result))
        assert len(parts) >= 3, name
        for part in parts:
            assert_harmless(part)


@pytest.mark.parametrize("name", TOOLS)
@pytest.mark.parametrize("text", [BIG["5 MB of lines"], BIG["one line of 1 MB"]])
def test_big_calls_are_cut_and_say_so(name, text):
    tool_input = {**dict.fromkeys(FIELDS, text), "todos": 1, "questions": 1, "edits": 1}

    shown = view(name, tool_input, ToolResult(text=text))

    assert sum(map(len, html_parts(shown))) < 1_500_000
    assert shown.context["truncated"] is (shown.kind != "checklist")


def test_the_cap_can_be_raised_to_show_all():
    text = "line\n" * 40_000
    cut = tool_view("Bash", {"command": "x"}, ToolResult(text=text))

    whole = tool_view(
        "Bash", {"command": "x"}, ToolResult(text=text), max_bytes=len(text)
    )

    assert cut.context["truncated"] is True
    assert whole.context["truncated"] is False
