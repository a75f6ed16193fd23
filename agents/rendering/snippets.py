"""A line of a text around what was searched for, its matches marked."""

from __future__ import annotations

import re

from django.utils.html import format_html
from django.utils.safestring import SafeString, mark_safe

from .text import reveal_invisible

_BEFORE = 60
_SPACES = re.compile(r"\s+")


def snippet(text: str, query: str, *, width: int = 200) -> SafeString:
    """Safe HTML: some `width` characters with each match in a `<mark>`.

    Without a match it is the text's beginning.
    """
    pattern = re.compile(re.escape(query), re.IGNORECASE)
    found = pattern.search(text) if query else None
    start = _word_start(text, max(0, found.start() - _BEFORE)) if found else 0
    end = max(start + width, found.end() if found else 0)
    return format_html(
        "{}{}{}",
        "…" if start else "",
        mark_matches(text[start:end], query),
        "…" if end < len(text) else "",
    )


def mark_matches(text: str, query: str) -> SafeString:
    """All of the text on one line, hidden characters shown, each match marked."""
    if not query:
        return _line(text)
    pieces = re.split(f"({re.escape(query)})", text, flags=re.IGNORECASE)
    return mark_safe(  # noqa: S308  every piece is escaped
        "".join(
            f"<mark>{_line(piece)}</mark>" if at % 2 else _line(piece)
            for at, piece in enumerate(pieces)
        )
    )


def _line(text: str) -> SafeString:
    return reveal_invisible(_SPACES.sub(" ", text), in_prose=True)


def _word_start(text: str, at: int) -> int:
    """Not in the middle of a word, where one begins soon after."""
    if at == 0:
        return 0
    space = text.find(" ", at, at + _BEFORE // 2)
    return space + 1 if space >= 0 else at
