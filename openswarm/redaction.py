"""Keeps links that let somebody in out of the log."""

from __future__ import annotations

import logging
import re

_LINK = re.compile(r"(/(?:setup|invite)/)[^/\s?\"']+")


class HideTokens(logging.Filter):
    """A setup or an invite link in a message loses its token, which may still work."""

    def filter(self, record: logging.LogRecord) -> bool:
        message = record.getMessage()
        shown = _LINK.sub(r"\1…", message)
        if shown != message:
            record.msg, record.args = shown, ()
        return True
