"""The one maker of DOM ids, so that frames and pages can't disagree on them."""

from __future__ import annotations

import re

_UNSAFE = re.compile(r"[^A-Za-z0-9_-]")


def dom_id(noun: str, object_id: object, part: str = "") -> str:
    """`noun-<id>[-part]`, usable in `#id` selectors whatever the id contains.

    Tool use ids come from the model, so other characters are replaced, each by its
    own code: two ids never become the same.
    """
    safe_id = _UNSAFE.sub(lambda match: f"_{ord(match[0]):x}_", str(object_id))
    return f"{noun}-{safe_id}-{part}" if part else f"{noun}-{safe_id}"
