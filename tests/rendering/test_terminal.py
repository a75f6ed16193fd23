"""Terminal output."""

from __future__ import annotations

import pytest

from agents.rendering.terminal import render_terminal
from tests.rendering.harmless import assert_harmless, text_of
from tests.rendering.hostile import BIG, HOSTILE


@pytest.mark.parametrize(
    ("text", "html"),
    [
        ("plain <b>\n", "plain &lt;b&gt;\n"),
        ("\x1b[31mred\x1b[0m x", '<span class="ansi-fg-1">red</span> x'),
        ("\x1b[1;4mx", '<span class="ansi-bold ansi-underline">x</span>'),
        ("\x1b[1;31mx\x1b[22my", None),
        ("\x1b[97;100mx", '<span class="ansi-fg-15 ansi-bg-8">x</span>'),
        ("\x1b[38;5;196mx", '<span class="ansi-fg-9">x</span>'),
        ("\x1b[38;2;0;200;0mx", '<span class="ansi-fg-2">x</span>'),
        ("\x1b[38:5:3mx", '<span class="ansi-fg-3">x</span>'),
        ("\x1b[48;5;250mx", '<span class="ansi-bg-7">x</span>'),
        ("\x1b[8mhidden", "hidden"),
        ("\x1b[30;40mx", '<span class="ansi-fg-0">x</span>'),
        (
            "\x1b[31ma\nb",
            '<span class="ansi-fg-1">a</span>\n<span class="ansi-fg-1">b</span>',
        ),
    ],
)
def test_colours_become_classes(text, html):
    expected = html or (
        '<span class="ansi-bold ansi-fg-1">x</span><span class="ansi-fg-1">y</span>'
    )
    assert render_terminal(text) == expected


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("10%\r20%\rdone", "done"),
        ("100%\r5", "500%"),
        ("long line\r\x1b[Kshort", "short"),
        ("abc\x1b[2Kd", "   d"),
        ("abc\b\bX", "aXc"),
        ("a\r\nb\r\n", "a\nb\n"),
        ("x\x1b[2J\x1b[1;1Hy", "xy"),
        ("\x1b]0;title\x07x", "x"),
        ("\x1b]8;;https://e.example\x1b\\link\x1b]8;;\x1b\\", "link"),
        ("\x1bPdevice\x1b\\x", "x"),
        ("\x1b]unfinished\nnext", "\nnext"),
        ("\x9b31mx", "x"),
        ("\x1b(Bx\x1b", "x"),
        ("bell\x07", "bell␇"),
    ],
)
def test_other_escapes_act_as_in_a_terminal_or_vanish(text, shown):
    assert text_of(render_terminal(text)) == shown


@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE)
def test_hostile_output_is_harmless(text):
    assert_harmless(render_terminal(text))


@pytest.mark.parametrize("text", BIG.values(), ids=BIG)
def test_big_output_is_rendered(text):
    html = render_terminal(text)

    assert len(html) < 20 * len(text)
    assert html.count("\n") == text.count("\n")


def test_plain_lines_around_styled_ones_stay_as_they_are():
    html = render_terminal("a\n\nb<\n\x1b[31mred\nstill\x1b[0m\nc\u200b\n\nd\n")

    assert html.split("\n")[:3] == ["a", "", "b&lt;"]
    assert html.split("\n")[3:5] == [
        '<span class="ansi-fg-1">red</span>',
        '<span class="ansi-fg-1">still</span>',
    ]
    assert html.endswith("</span>\n\nd\n")


def test_a_huge_text_loses_its_colours_and_no_letter():
    line = "\x1b[31mred\x1b[0m & \x1b]0;title\x07plain\n"

    html = render_terminal(line * 50_000)

    assert html == "red &amp; plain\n" * 50_000
