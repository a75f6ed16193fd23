"""Fences around text of people and files that a model reads: data, not instructions.

No text can close the fence that it stands in, nor the marks that the CLI puts around
notes of its own.
"""

from __future__ import annotations

import re

from .text import clean_text

_BACKTICKS = re.compile(r"`+")
_REMINDER = re.compile(r"<(?=\s*/?\s*system-reminder)", re.IGNORECASE)
SHORTEST_FENCE = 3
CUT = "\n[cut here: too long]"


def fence(text: str, *, limit: int | None = None) -> str:
    """The text between two lines of backticks, more of them than it has in a row.

    Args:
        limit: characters that are kept; what is longer ends with a note.
    """
    inner = clean_text(text).strip("\r\n")
    if limit is not None and len(inner) > limit:
        inner = inner[:limit].rstrip() + CUT
    inner = _REMINDER.sub("&lt;", inner)
    longest = max(map(len, _BACKTICKS.findall(inner)), default=0)
    line = "`" * max(SHORTEST_FENCE, longest + 1)
    return f"{line}text\n{inner}\n{line}"
