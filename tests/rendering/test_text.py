"""What is stored, cut and revealed."""

from __future__ import annotations

import json

import pytest

from agents.rendering.text import (
    clean_json,
    clean_text,
    editable_json_text,
    has_invisible,
    json_text,
    preview,
    reveal_invisible,
    truncate_bytes,
)
from tests.rendering.harmless import assert_harmless, text_of
from tests.rendering.hostile import HOSTILE


@pytest.mark.parametrize(
    ("dirty", "clean"),
    [
        ("plain", "plain"),
        ("a\x00b", "a\ufffdb"),
        ("half \ud83d", "half \ufffd"),
        ("\udc00 low first \ud83d", "\ufffd low first \ufffd"),
        ("\ud83d\ude00", "😀"),
        ("\ufeffmark \ud83d", "\ufeffmark \ufffd"),
        ("\x1b[31m\ttab\n", "\x1b[31m\ttab\n"),
    ],
)
def test_text_is_cleaned_of_what_databases_refuse(dirty, clean):
    assert clean_text(dirty) == clean


def test_json_is_cleaned_all_the_way_down():
    dirty = {"a\x00": ["\ud83d", {"b": ("x\x00", 1, 1.5, True, None)}], 3: b"raw"}

    assert clean_json(dirty) == {
        "a\ufffd": ["\ufffd", {"b": ["x\ufffd", 1, 1.5, True, None]}],
        "3": "b'raw'",
    }


def test_numbers_that_json_does_not_know_become_null():
    assert clean_json([float("nan"), float("inf"), 2.0]) == [None, None, 2.0]


def test_json_of_any_depth_is_cut_instead_of_failing():
    deep: object = "end"
    for _ in range(5000):
        deep = [deep]

    assert "…" in json_text(deep)


def test_a_bidi_override_is_named_and_not_emitted():
    html = reveal_invisible("a\u202eb")

    assert html == (
        'a<span class="invisible-char" title="U+202E RIGHT-TO-LEFT OVERRIDE">'
        "U+202E</span>b"
    )


@pytest.mark.parametrize(
    ("char", "shown"),
    [
        ("\x00", "␀"),
        ("\x1b", "␛"),
        ("\x7f", "␡"),
        ("\x85", "U+0085"),
        ("\u00ad", "U+00AD"),
        ("\u200b", "U+200B"),
        ("\u200d", "U+200D"),
        ("\u2028", "U+2028"),
        ("\u2066", "U+2066"),
        ("\u3164", "U+3164"),
        ("\ufeff", "U+FEFF"),
        ("\U000e0041", "U+E0041"),
        ("\ud83d", "U+D83D"),
    ],
)
def test_every_kind_of_hidden_character_is_shown(char, shown):
    assert text_of(reveal_invisible(f"a{char}b")) == f"a{shown}b"
    assert has_invisible(f"a{char}b")


def test_ordinary_text_is_only_escaped():
    text = "tab\t newline\n crlf\r\n 日本語 עברית ❤️ <b>"

    assert reveal_invisible(text) == text.replace("<", "&lt;").replace(">", "&gt;")
    assert not has_invisible(text)


def test_a_lone_carriage_return_is_shown():
    assert text_of(reveal_invisible("safe\rrm")) == "safe␍rm"


def test_prose_keeps_the_joiners_that_writing_needs():
    assert reveal_invisible("می\u200cخواهم", in_prose=True) == "می\u200cخواهم"
    assert text_of(reveal_invisible("\u202ex", in_prose=True)) == "U+202Ex"


def test_repeats_are_counted_and_the_page_stays_small():
    assert text_of(reveal_invisible("\u200b" * 900)) == "U+200B×900"

    assert len(reveal_invisible("\u202e\u2066" * 30_000)) < 700_000


@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE)
def test_revealed_hostile_text_is_harmless(text):
    assert_harmless(reveal_invisible(text))


def test_editable_json_shows_hidden_characters_and_means_the_same():
    data = {"command": "echo \u202e\u200b \U000e0041 é", "n": [1]}

    text = editable_json_text(data)

    assert not has_invisible(text)
    assert "\\u202e\\u200b" in text
    assert "é" in text
    assert json.loads(text) == data


@pytest.mark.parametrize(
    ("text", "limit", "line"),
    [
        (" one\n two\t three ", 40, "one two three"),
        ("abcdef", 6, "abcdef"),
        ("abcdefg", 6, "abcde…"),
        ("x" * 1_000_000, 5, "xxxx…"),
        ("", 5, ""),
    ],
)
def test_a_preview_is_one_short_line(text, limit, line):
    assert preview(text, limit) == line


@pytest.mark.parametrize(
    ("text", "limit", "result"),
    [
        ("abc", 3, ("abc", False)),
        ("abcd", 3, ("abc", True)),
        ("éé", 3, ("é", True)),
        ("😀", 3, ("", True)),
        ("", 0, ("", False)),
    ],
)
def test_text_is_cut_between_characters(text, limit, result):
    assert truncate_bytes(text, limit) == result
