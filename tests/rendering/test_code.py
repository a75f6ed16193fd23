"""Syntax highlighting."""

from __future__ import annotations

import pytest

from agents.rendering.code import highlight_code, highlight_lines, language_name
from tests.rendering.harmless import assert_harmless, text_of
from tests.rendering.hostile import BIG, HOSTILE


def test_code_is_coloured_by_classes_alone():
    html = highlight_code("x = 'a'", language="python")

    assert html == (
        '<span class="tok-n">x</span> <span class="tok-o">=</span>'
        " <span class=\"tok-s1\">'a'</span>"
    )


def test_the_file_name_tells_the_language():
    assert language_name(filename="/a/b/app.tsx") == "TSX"
    assert language_name(filename="/a/unknown.zzz") == ""
    assert "tok-k" in highlight_code("return", filename="x.py")


@pytest.mark.parametrize("text", ["", "\n", "\n\na\n\n", "a", "a\n", "  a  \n "])
def test_no_line_is_added_or_lost(text):
    assert text_of(highlight_code(text, language="python")) == text


def test_lines_can_be_taken_apart():
    lines = highlight_lines('"""a\nb"""\nc', language="python")

    assert [text_of(line) for line in lines] == ['"""a', 'b"""', "c"]
    for line in lines:
        assert_harmless(line)


@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE)
def test_hostile_code_is_harmless_in_every_language(text):
    for language in ("python", "html", "bash", "json", "markdown", ""):
        assert_harmless(highlight_code(text, language=language))


@pytest.mark.parametrize("text", BIG.values(), ids=BIG)
def test_big_code_is_shown_plain(text):
    html = highlight_code(text, language="python")

    assert "tok-" not in html


@pytest.mark.parametrize(
    ("language", "text"),
    [("csharp", ("a" * 60 + "\n") * 1600), ("javascript", ("a." * 300 + "\n") * 160)],
)
def test_a_slow_lexer_is_given_up(language, text):
    assert text_of(highlight_code(text, language=language)) == text
