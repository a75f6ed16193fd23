"""Syntax highlighting: Pygments on the server, classes `tok-*`, no inline styles.

Lexers are regular expressions over hostile text, and many are quadratic (64 kB of
"a." in JavaScript took minutes). So only texts of a sane length, without endless
lines or gaps, are highlighted, and only as long as the time allows; others are shown
plain, complete and escaped.
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterable, Iterator
from functools import lru_cache

import pygments
from django.utils.safestring import SafeString
from pygments.formatters import HtmlFormatter
from pygments.lexer import Lexer
from pygments.lexers import find_lexer_class_by_name, find_lexer_class_for_filename
from pygments.token import _TokenType
from pygments.util import ClassNotFound

from .text import clean_text, reveal_in_html, reveal_invisible

MAX_HIGHLIGHT_CHARS = 100_000
_MAX_LINE_CHARS = 1000
_MAX_CPU_SECONDS = 1.0
_LONG_BLANK = re.compile(r"\s{300}")
# What third-party parsers raise on input their authors didn't think of. One message
# that can't be coloured must not take its whole page down; real errors of ours
# (OSError, database errors) are none of these.
PARSER_FAULTS = (
    ArithmeticError,
    AssertionError,
    AttributeError,
    LookupError,
    RecursionError,
    TypeError,
    ValueError,
)
_Token = tuple[_TokenType, str]
_FORMATTER: HtmlFormatter[str] = HtmlFormatter(nowrap=True, classprefix="tok-")


@lru_cache(maxsize=256)
def _lexer_class(filename: str | None, language: str | None) -> type[Lexer] | None:
    try:
        if language:
            return find_lexer_class_by_name(language)
        return find_lexer_class_for_filename(filename) if filename else None
    except ClassNotFound:
        return None


def language_name(*, filename: str | None = None, language: str | None = None) -> str:
    """What to call the language in a heading; empty when it is not known."""
    lexer_class = _lexer_class(filename, language)
    return str(lexer_class.name) if lexer_class else ""


def highlight_code(
    text: str, *, filename: str | None = None, language: str | None = None
) -> SafeString:
    """The text as HTML, in `tok-*` spans where its language is known.

    Keeps every line as it is (spans never cross a newline), so the result may be
    split into lines. Hidden characters are revealed.
    """
    lexer_class = _lexer_class(filename, language)
    if lexer_class is None or not _is_cheap(text):
        return reveal_invisible(text)
    try:
        lexer = lexer_class(stripnl=False, ensurenl=False)
        tokens = _in_time(lexer.get_tokens(clean_text(text)))
        html = pygments.format(tokens, _FORMATTER)
    except (TimeoutError, *PARSER_FAULTS):
        return reveal_invisible(text)
    # The formatter ends every text with a newline, ours or not.
    return reveal_in_html(html if text.endswith("\n") else html.removesuffix("\n"))


def highlight_lines(
    text: str, *, filename: str | None = None, language: str | None = None
) -> list[SafeString]:
    """`highlight_code` line by line; as many lines as `text.split("\\n")`."""
    html = highlight_code(text, filename=filename, language=language)
    lines = html.split("\n")
    if len(lines) != text.count("\n") + 1:  # a lexer that rewrites its input
        lines = reveal_invisible(text).split("\n")
    return [reveal_in_html(line) for line in lines]


def _in_time(tokens: Iterable[_Token]) -> Iterator[_Token]:
    """The same tokens, until the lexer has used up its time.

    CPU time of this thread, so that a busy machine changes nothing.
    """
    deadline = time.thread_time() + _MAX_CPU_SECONDS
    for token in tokens:
        if time.thread_time() > deadline:
            raise TimeoutError
        yield token


def _is_cheap(text: str) -> bool:
    if len(text) > MAX_HIGHLIGHT_CHARS or _LONG_BLANK.search(text):
        return False
    return max(map(len, text.split("\n"))) <= _MAX_LINE_CHARS
