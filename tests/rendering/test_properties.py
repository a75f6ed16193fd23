"""Arbitrary text and data: nothing raises, nothing harmful comes out."""

from __future__ import annotations

from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from agents.rendering.approvals import approval_view
from agents.rendering.code import highlight_code
from agents.rendering.markdown import render_markdown
from agents.rendering.terminal import render_terminal
from agents.rendering.text import clean_json, clean_text, reveal_invisible
from agents.rendering.tool_calls import ToolResult, tool_view
from tests.rendering.harmless import assert_harmless
from tests.rendering.hostile import HOSTILE
from tests.rendering.test_tool_calls import FIELDS, TOOLS, html_parts

# Plain text, surrogates and controls included, and mixtures of what is known to hurt.
MARKS = "- * _ ` ``` ~~~ | [ ] ( ) ![ ]( <a href= \" ' & # \\ \x1b[ \x1b] ; m : //"
PIECES = [
    *HOSTILE.values(),
    *MARKS.split(" "),
    "javascript:",
    " onerror=",
    "<script",
    "> ",
    "\n\n",
    "\n",
    "\t",
    "\r",
    "    ",
]
TEXT = st.one_of(
    st.text(st.characters(exclude_categories=[]), max_size=200),
    st.lists(st.sampled_from(PIECES), max_size=12).map("".join),
)
JSON: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | TEXT,
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(st.sampled_from(FIELDS) | TEXT, inner, max_size=5)
    ),
    max_leaves=12,
)
INPUTS = st.dictionaries(st.sampled_from(FIELDS), JSON, max_size=6) | JSON
STRUCTURED_FIELDS = """
    stdout stderr interrupted file type content filenames structuredPatch originalFile
    tasks task newTodos answers isImage
"""
STRUCTURED = st.dictionaries(
    st.sampled_from(STRUCTURED_FIELDS.split()), JSON, max_size=4
)
RESULTS = st.none() | st.builds(
    ToolResult,
    text=TEXT | JSON,
    is_error=st.booleans(),
    structured=STRUCTURED | JSON,
    images=st.lists(JSON, max_size=2) | JSON,
)
LANGUAGES = ["python", "html", "bash", "json", "yaml", "diff", "nope"]
unhurried = settings(
    deadline=None, max_examples=150, suppress_health_check=[HealthCheck.too_slow]
)


@unhurried
@given(TEXT)
def test_any_text_renders_harmless(text):
    assert_harmless(render_markdown(text))
    assert_harmless(render_terminal(text))
    assert_harmless(reveal_invisible(text))


@unhurried
@given(TEXT, st.sampled_from(LANGUAGES))
def test_any_code_renders_harmless(text, language):
    assert_harmless(highlight_code(text, language=language))


@unhurried
@given(st.sampled_from(TOOLS) | TEXT, INPUTS, RESULTS)
def test_any_tool_call_renders_harmless(name, tool_input, result):
    for part in html_parts(tool_view(name, tool_input, result)):
        assert_harmless(part)


@unhurried
@given(st.sampled_from(TOOLS) | TEXT, INPUTS)
def test_any_approval_renders_harmless(name, tool_input):
    card = approval_view(name, tool_input)

    assert_harmless(card.target)
    assert card.target
    card.editable_json.encode()


@unhurried
@given(TEXT)
def test_cleaning_is_idempotent_and_encodable(text):
    clean = clean_text(text)

    assert clean_text(clean) == clean
    assert "\x00" not in clean
    clean.encode()


@unhurried
@given(JSON)
def test_cleaned_data_stays_the_same_when_cleaned_again(data):
    clean = clean_json(data)

    assert clean_json(clean) == clean
