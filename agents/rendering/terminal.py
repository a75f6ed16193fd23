"""What a terminal would show, as HTML: colours as classes, everything else plain.

Colours (SGR) become `ansi-*` classes; carriage returns, backspaces and line erasing
take effect, as progress bars need. All other escapes (links, titles, cursor moves,
clipboard) are dropped: none may reach the page. Concealed text is shown. In a text of
more than a million characters all of them are dropped: playing them takes seconds.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import groupby

from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString

from .text import clean_text, reveal_invisible

# Each alternative consumes what it starts, so the scan is linear in any input. An
# unfinished string sequence ends with its line, lest it swallow the rest of the text.
_CONTROL = re.compile(
    r"""
      (?:\x1b\[|\x9b)(?P<params>[0-?]*)[ -/]*(?P<final>[@-~]?)    # CSI
    | (?:\x1b[\]PX^_]|[\x90\x98\x9d-\x9f])[^\x07\x1b\x9c\n]*(?:\x07|\x1b\\|\x9c)?
    | \x1b[ -/]*[0-~]?                                            # two characters
    | (?P<move>[\r\b]+)
    """,
    re.VERBOSE,
)
_BASIC_RGB = (
    (0, 0, 0), (205, 0, 0), (0, 205, 0), (205, 205, 0),
    (0, 0, 238), (205, 0, 205), (0, 205, 205), (229, 229, 229),
    (127, 127, 127), (255, 0, 0), (0, 255, 0), (255, 255, 0),
    (92, 92, 255), (255, 0, 255), (0, 255, 255), (255, 255, 255),
)  # fmt: skip
_MAX_PLAYED_CHARACTERS = 1_000_000
_CUBE_STEPS = (0, 95, 135, 175, 215, 255)


@dataclass(frozen=True, slots=True)
class _Style:
    fg: int | None = None
    bg: int | None = None
    flags: frozenset[str] = frozenset()

    @property
    def classes(self) -> str:
        names = sorted(f"ansi-{flag}" for flag in self.flags)
        if self.fg is not None:
            names.append(f"ansi-fg-{self.fg}")
        if self.bg is not None and self.bg != self.fg:  # else the text would hide
            names.append(f"ansi-bg-{self.bg}")
        return " ".join(names)


_PLAIN = _Style()
_FLAGS = {1: "bold", 2: "dim", 3: "italic", 4: "underline", 7: "inverse", 9: "strike"}
_FLAG_ENDS = {
    22: {"bold", "dim"},
    23: {"italic"},
    24: {"underline"},
    27: {"inverse"},
    29: {"strike"},
}
_Cell = tuple[str, _Style]


def render_terminal(text: str) -> SafeString:
    """The text as a terminal would leave it, in `ansi-*` spans; newlines kept."""
    text = clean_text(text).replace("\r\n", "\n")
    if len(text) > _MAX_PLAYED_CHARACTERS:
        text = _CONTROL.sub("", text)
    if _CONTROL.search(text) is None:
        return reveal_invisible(text)
    return format_html_join("\n", "{}", ((part,) for part in _parts(text)))


def _parts(text: str) -> Iterator[SafeString]:
    """Each line that has a style; those between them together, as most are plain."""
    style = _PLAIN
    plain: list[str] = []
    for line in text.split("\n"):
        if style == _PLAIN and _CONTROL.search(line) is None:
            plain.append(line)
            continue
        if plain:
            yield reveal_invisible("\n".join(plain))
            plain = []
        html, style = _render_line(line, style)
        yield html
    if plain:
        yield reveal_invisible("\n".join(plain))


def _render_line(line: str, style: _Style) -> tuple[SafeString, _Style]:
    if _CONTROL.search(line) is None:
        return _span(line, style), style
    written = _Line(style)
    position = 0
    for match in _CONTROL.finditer(line):
        written.write(line[position : match.start()])
        written.control(match)
        position = match.end()
    written.write(line[position:])
    return written.html(), written.style


class _Line:
    """One line being written: cells, a cursor and the style of what comes next."""

    def __init__(self, style: _Style) -> None:
        self.style = style
        self._cells: list[_Cell] = []
        self._cursor = 0

    def write(self, text: str) -> None:
        end = self._cursor + len(text)
        self._cells[self._cursor : end] = [(char, self.style) for char in text]
        self._cursor = end

    def control(self, match: re.Match[str]) -> None:
        if move := match["move"]:
            start = 0 if "\r" in move else self._cursor
            backspaces = len(move) - move.rfind("\r") - 1
            self._cursor = max(start - backspaces, 0)
        elif match["final"] == "m":
            self.style = _apply_sgr(self.style, match["params"])
        elif match["final"] == "K":
            self._erase(match["params"])

    def _erase(self, mode: str) -> None:
        if mode in {"", "0"}:
            del self._cells[self._cursor :]
        elif mode in {"1", "2"}:
            blank = [(" ", _PLAIN)] * self._cursor
            rest = self._cells[self._cursor :] if mode == "1" else []
            self._cells = blank + rest

    def html(self) -> SafeString:
        runs = groupby(self._cells, key=lambda cell: cell[1])
        return format_html_join(
            "",
            "{}",
            ((_span("".join(char for char, _ in run), style),) for style, run in runs),
        )


def _span(text: str, style: _Style) -> SafeString:
    shown = reveal_invisible(text)
    if not text or style == _PLAIN:
        return shown
    return format_html('<span class="{}">{}</span>', style.classes, shown)


def _apply_sgr(style: _Style, params: str) -> _Style:
    codes = [int(code) if code.isdigit() else 0 for code in _split_params(params)]
    index = 0
    while index < len(codes):
        code = codes[index]
        if code in {38, 48}:
            colour, used = _extended_colour(codes[index + 1 :])
            style = (
                replace(style, fg=colour) if code == 38 else replace(style, bg=colour)
            )
            index += used
        else:
            style = _apply_code(style, code)
        index += 1
    return style


def _split_params(params: str) -> list[str]:
    # "4:3" (curly underline) is one code with a detail; "38:5:9" is several codes.
    parts = params[:200].split(";")
    return [
        piece
        for part in parts
        for piece in (part.split(":") if part[:2] in {"38", "48"} else [part[:3]])
    ]


def _apply_code(style: _Style, code: int) -> _Style:
    match code:
        case 0:
            return _PLAIN
        case _ if code in _FLAGS:
            return replace(style, flags=style.flags | {_FLAGS[code]})
        case _ if code in _FLAG_ENDS:
            return replace(style, flags=style.flags - _FLAG_ENDS[code])
        case _ if 30 <= code <= 37 or 90 <= code <= 97:
            return replace(style, fg=code - 30 if code < 90 else code - 82)
        case _ if 40 <= code <= 47 or 100 <= code <= 107:
            return replace(style, bg=code - 40 if code < 100 else code - 92)
        case 39:
            return replace(style, fg=None)
        case 49:
            return replace(style, bg=None)
        case _:
            return style


def _extended_colour(codes: list[int]) -> tuple[int | None, int]:
    """The nearest of the 16 basic colours, and how many codes said so."""
    match codes:
        case [5, number, *_]:
            return _from_palette(number), 2
        case [2, red, green, blue, *_]:
            return _nearest((red, green, blue)), 4
        case _:
            return None, len(codes)


def _from_palette(number: int) -> int | None:
    if number < 16 or number > 255:
        return number if number < 16 else None
    if number >= 232:
        return _nearest((8 + (number - 232) * 10,) * 3)
    number -= 16
    steps = number // 36, number // 6 % 6, number % 6
    red, green, blue = (_CUBE_STEPS[step] for step in steps)
    return _nearest((red, green, blue))


def _nearest(colour: tuple[int, int, int]) -> int:
    def distance(index: int) -> int:
        basic = _BASIC_RGB[index]
        return sum((a - b) ** 2 for a, b in zip(basic, colour, strict=True))

    return min(range(len(_BASIC_RGB)), key=distance)
