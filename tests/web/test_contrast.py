"""Every pair of text and ground that components put together, in both themes."""

from __future__ import annotations

import re
from itertools import product
from pathlib import Path

import pytest

STYLES = Path(__file__).resolve().parents[2] / "static/css"
TOKENS = (STYLES / "tokens.css").read_text()
DECLARATION = re.compile(
    r"--([a-z0-9-]+): light-dark\((#[0-9a-f]{6}), (#[0-9a-f]{6})\);"
)
COLOURS = {name: (light, dark) for name, light, dark in DECLARATION.findall(TOKENS)}
THEMES = ("light", "dark")

GROUNDS = ("bg", "bg-sunken", "bg-raised", "bg-hover")
CODE_COLOURS = sorted(name for name in COLOURS if name.startswith("tok-"))
TERMINAL_COLOURS = [f"ansi-{number}" for number in range(16)]
PAIRS = [
    *product(("fg", "fg-muted", "accent-text"), (*GROUNDS, "bg-selected")),
    *product(("fg-faint",), GROUNDS),
    *product(("ok", "warn", "danger"), ("bg", "bg-sunken", "bg-raised", "code-bg")),
    *((text, f"{text}-soft") for text in ("ok", "warn", "danger")),
    ("accent-text", "accent-soft"),
    *product(("fg", "fg-muted"), ("ok-soft", "warn-soft", "danger-soft")),
    *product(("fg", "fg-muted"), ("accent-soft", "bubble")),
    ("accent-fg", "accent"),
    ("accent-fg", "accent-hover"),
    ("danger-fg", "danger-fill"),
    ("danger-fg", "danger-fill-hover"),
    ("warn-fg", "warn-fill"),
    ("invisible-text", "invisible-surface"),
    *product((*CODE_COLOURS, "code-fg", "fg-faint", "fg-muted"), ("code-bg",)),
    *product(CODE_COLOURS, ("diff-insert-bg", "diff-delete-bg")),
    *product(("code-fg", "fg-muted"), ("diff-insert-bg", "diff-delete-bg")),
    ("code-fg", "diff-insert-mark"),
    ("code-fg", "diff-delete-mark"),
    ("ok", "diff-insert-bg"),
    ("danger", "diff-delete-bg"),
    *product((*TERMINAL_COLOURS, "ansi-text"), ("ansi-surface",)),
]


def luminance(colour: str) -> float:
    channels = (int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5))
    red, green, blue = (
        value / 12.92 if value <= 0.04045 else ((value + 0.055) / 1.055) ** 2.4
        for value in channels
    )
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(one: str, other: str) -> float:
    lighter, darker = sorted((luminance(one), luminance(other)), reverse=True)
    return (lighter + 0.05) / (darker + 0.05)


def test_the_measure_agrees_with_the_known_extremes():
    assert round(contrast("#000000", "#ffffff"), 2) == 21
    assert round(contrast("#777777", "#ffffff"), 2) == 4.48


@pytest.mark.parametrize("theme", THEMES)
def test_text_keeps_a_contrast_of_4_5_to_its_ground(theme):
    index = THEMES.index(theme)

    measured = {
        (text, ground): contrast(COLOURS[text][index], COLOURS[ground][index])
        for text, ground in PAIRS
    }

    assert {pair: ratio for pair, ratio in measured.items() if ratio < 4.5} == {}


@pytest.mark.parametrize("theme", THEMES)
def test_controls_and_focus_keep_a_contrast_of_3_to_the_canvas(theme):
    index = THEMES.index(theme)
    grounds = [COLOURS[name][index] for name in ("bg", "bg-sunken", "bg-raised")]

    weakest = {
        name: min(contrast(COLOURS[name][index], ground) for ground in grounds)
        for name in ("border-control", "focus")
    }

    assert {name: ratio for name, ratio in weakest.items() if ratio < 3} == {}


def test_no_component_holds_a_colour_of_its_own():
    comment = re.compile(r"/\*.*?\*/", re.DOTALL)
    literal = re.compile(r"#[0-9a-fA-F]{3,8}\b(?=[^{]*;)|\b(?:rgb|hsl|oklch)a?\(")
    sheets = [path for path in STYLES.rglob("*.css") if path.name != "tokens.css"]

    found = {
        path.name: literal.findall(comment.sub("", path.read_text())) for path in sheets
    }

    assert {name: colours for name, colours in found.items() if colours} == {}
