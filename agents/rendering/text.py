"""Cleaning text for storage, shortening it, and making hidden characters visible.

`clean_text` and `clean_json` run before anything is stored: PostgreSQL refuses NUL
and UTF-8 refuses lone surrogates. `reveal_invisible` runs when text is shown.
"""

from __future__ import annotations

import json
import math
import re
import unicodedata
from collections.abc import Callable
from typing import Any

from django.utils.html import escape
from django.utils.safestring import SafeString, mark_safe

REPLACEMENT = "\ufffd"
_MAX_DEPTH = 200  # json.loads accepts about 1,000 levels; templates and indents don't
_MAX_MARKS = 1000  # per text; a mark is ~90 bytes, so more would swell the page

# Written as escapes: these characters must not hide in our own source either.
_CONTROLS = "\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f"
_BIDI_FORCING = "\u202a-\u202e\u2066-\u2069"
_INVISIBLE_ANYWHERE = (
    _CONTROLS
    + _BIDI_FORCING
    + "\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b\u2028\u2029"
    + "\u2060-\u2065\u206a-\u206f\u3164\ufe00-\ufe0d\ufeff\uffa0\ufff0-\ufffb"
    + "\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff\ud800-\udfff"
)
# Joiners and marks that Persian, Hebrew and emoji need; hidden all the same.
_INVISIBLE_IN_CODE = _INVISIBLE_ANYWHERE + "\u00ad\u061c\u200c-\u200f"
_LONE_CR = r"\r(?!\n)"
# A variation selector is fine after a symbol (that is how emoji get their colour).
_STRAY_SELECTOR = "(?<![\u00a9\u00ae\u203c-\u3299\U0001f000-\U0001faff])[\ufe0e\ufe0f]"
_IN_PROSE = re.compile(rf"([{_INVISIBLE_ANYWHERE}]|{_LONE_CR})\1*")
_IN_CODE = re.compile(rf"([{_INVISIBLE_IN_CODE}]|{_LONE_CR}|{_STRAY_SELECTOR})\1*")
_BLANK = re.compile(rf"[{_INVISIBLE_IN_CODE}{REPLACEMENT}\s]*")
_SURROGATES = re.compile("[\ud800-\udfff]")
_CONTROL_NAMES = {
    0x00: "NULL",
    0x07: "BELL",
    0x08: "BACKSPACE",
    0x0B: "VERTICAL TAB",
    0x0C: "FORM FEED",
    0x0D: "CARRIAGE RETURN",
    0x1B: "ESCAPE",
    0x7F: "DELETE",
    0x85: "NEXT LINE",
}


def clean_text(value: str) -> str:
    """The same text in a form that any database and any socket accepts.

    NUL and lone surrogates become U+FFFD; a split surrogate pair is put together.
    """
    if _SURROGATES.search(value):
        pairs = value.encode("utf-16", "surrogatepass")
        value = pairs.decode("utf-16", "replace")
    return value.replace("\x00", REPLACEMENT)


def is_blank(value: str) -> bool:
    """Whether there is nothing in it that a person could read."""
    return _BLANK.fullmatch(value) is not None


def clean_json(value: Any) -> Any:
    """The same data as plain JSON with every string cleaned, keys included.

    NaN and the infinities, which jsonb refuses, become None; what is nested deeper
    than 200 levels becomes "…"; an object JSON doesn't know becomes its `str`.
    """
    return _clean_json(value, 0)


def _clean_json(value: Any, depth: int) -> Any:
    match value:
        case str():
            return clean_text(value)
        case None | bool() | int():
            return value
        case float():
            return value if math.isfinite(value) else None
        case dict() | list() | tuple() if depth >= _MAX_DEPTH:
            return "…"
        case dict():
            return {
                clean_text(str(key)): _clean_json(item, depth + 1)
                for key, item in value.items()
            }
        case list() | tuple():
            return [_clean_json(item, depth + 1) for item in value]
        case _:
            return clean_text(str(value))


def json_text(value: Any) -> str:
    """Indented JSON of anything; strings keep their letters."""
    return json.dumps(clean_json(value), indent=2, ensure_ascii=False)


def editable_json_text(value: Any) -> str:
    """`json_text` that shows hidden characters as escapes a person can edit.

    Unlike a mark this stays valid JSON with the same meaning.
    """
    return _IN_CODE.sub(
        lambda match: json.dumps(match[0])[1:-1],
        json_text(value),
    )


def has_invisible(value: str) -> bool:
    return _IN_CODE.search(value) is not None


def reveal_invisible(value: str, *, in_prose: bool = False) -> SafeString:
    """Escape the text and put a visible, named mark in place of hidden characters.

    The characters themselves are not emitted, so a bidi override can't reorder what
    stands beside it. Newlines and tabs stay. In prose, joiners and direction marks
    that ordinary writing needs stay too.
    """
    return reveal_in_html(escape(value), in_prose=in_prose)


def reveal_in_html(html: str, *, in_prose: bool = False) -> SafeString:
    """`reveal_invisible` for HTML that is safe already, attributes ours."""
    pattern = _IN_PROSE if in_prose else _IN_CODE
    # Every source is escaped text or a formatter's output over escaped text.
    return mark_safe(pattern.sub(_marker(), html))  # noqa: S308 - see above


def _marker() -> Callable[[re.Match[str]], str]:
    marks = 0

    def mark(match: re.Match[str]) -> str:
        nonlocal marks
        marks += 1
        code = ord(match[1])
        shown, count = _shown(code), len(match[0])
        if count > 1:
            shown += f"×{count}"
        if marks > _MAX_MARKS:
            return f"[{shown}]"
        title = f"U+{code:04X} {_name(code)}"
        return f'<span class="invisible-char" title="{title}">{shown}</span>'

    return mark


def _shown(code: int) -> str:
    if code < 0x20:
        return chr(0x2400 + code)  # the "control pictures" block mirrors ASCII
    return "\u2421" if code == 0x7F else f"U+{code:04X}"


def _name(code: int) -> str:
    if 0xD800 <= code <= 0xDFFF:
        return "LONE SURROGATE"
    fallback = _CONTROL_NAMES.get(code, "INVISIBLE CHARACTER")
    return unicodedata.name(chr(code), fallback)


def preview(text: str, limit: int) -> str:
    """The beginning of the text on one line, at most `limit` characters."""
    head = text[: limit * 8]  # whitespace may collapse, but a 5 MB text isn't split
    line = " ".join(clean_text(head).split())
    if len(line) <= limit and len(head) == len(text):
        return line
    return line[: max(limit - 1, 0)].rstrip() + "…"


def truncate_bytes(text: str, limit: int) -> tuple[str, bool]:
    """The text's first `limit` UTF-8 bytes, cut between characters; was it cut?"""
    head = clean_text(text[:limit])
    encoded = head.encode()
    if len(encoded) <= limit and len(text) <= limit:
        return text, False
    return encoded[:limit].decode(errors="ignore"), True
