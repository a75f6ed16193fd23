"""Icons drawn by a model: an allow-list parser, and nothing it doesn't know gets out.

A model writes them after reading what tools returned, so they count as hostile. They
are not filtered but read and written anew: a few shapes, their geometry, and the
colours `currentColor` and `none`. Whatever else stands in the text makes it no icon.
"""

from __future__ import annotations

import re
from typing import Final

from django.utils.safestring import SafeString, mark_safe

MAX_SVG_CHARACTERS: Final = 400

_NUMBER = r"-?(?:\d+(?:\.\d*)?|\.\d+)"
_LENGTH = re.compile(rf"{_NUMBER}(?:px)?")
_PATH = re.compile(r"[MmLlHhVvCcSsQqTtAaZz0-9eE.,\s+-]+")
_POINTS = re.compile(r"[0-9eE.,\s+-]+")
_PAINT = re.compile(r"currentColor|none")
_CAP = re.compile(r"butt|round|square")
_JOIN = re.compile(r"miter|round|bevel")
_RULE = re.compile(r"nonzero|evenodd")

_STYLE: Final = {
    "fill": _PAINT,
    "stroke": _PAINT,
    "stroke-width": _LENGTH,
    "stroke-linecap": _CAP,
    "stroke-linejoin": _JOIN,
    "fill-rule": _RULE,
    "clip-rule": _RULE,
    "opacity": _LENGTH,
}
_GEOMETRY: Final = {
    "path": {"d": _PATH},
    "circle": dict.fromkeys(("cx", "cy", "r"), _LENGTH),
    "ellipse": dict.fromkeys(("cx", "cy", "rx", "ry"), _LENGTH),
    "rect": dict.fromkeys(("x", "y", "width", "height", "rx", "ry"), _LENGTH),
    "line": dict.fromkeys(("x1", "y1", "x2", "y2"), _LENGTH),
    "polyline": {"points": _POINTS},
    "polygon": {"points": _POINTS},
    "g": {},
}
# Of the root: read, checked and left out, since what is written has its own.
_ROOT_ONLY: Final = {
    "xmlns": re.compile(re.escape("http://www.w3.org/2000/svg")),
    "viewbox": re.compile(r"0[ ,]+0[ ,]+24[ ,]+24"),
    "width": _LENGTH,
    "height": _LENGTH,
}
_TAG = re.compile(
    r"\s*<(?P<close>/?)(?P<name>[a-zA-Z]+)"
    r"(?P<attributes>(?:\s+[a-zA-Z][a-zA-Z0-9-]*\s*=\s*(?:\"[^\"<>&]*\"|'[^'<>&]*'))*)"
    r"\s*(?P<empty>/?)>\s*"
)
_ATTRIBUTE = re.compile(r"([a-zA-Z][a-zA-Z0-9-]*)\s*=\s*(?:\"([^\"]*)\"|'([^']*)')")


def clean_svg(text: str) -> str:
    """The icon written anew, or "" when it is anything but a plain 24x24 drawing.

    Cleaning what was cleaned changes nothing.
    """
    if len(text) > 2 * MAX_SVG_CHARACTERS:
        return ""
    try:
        clean = _rewrite(_tags(text.strip()))
    except _NotAnIconError:
        return ""
    return clean if len(clean) <= MAX_SVG_CHARACTERS else ""


def icon_of(svg: str) -> SafeString:
    """A stored icon for the page; checked again, as the database is no sanitiser."""
    inside = clean_svg(svg).removeprefix("<svg")
    shown = f'<svg class="icon" aria-hidden="true"{inside}' if inside else ""
    return mark_safe(shown)  # noqa: S308  all of it was written by `_rewrite`


class _NotAnIconError(Exception):
    pass


def _tags(text: str) -> list[re.Match[str]]:
    """The text as tags without a gap; words between them are no drawing."""
    tags = []
    position = 0
    while position < len(text):
        tag = _TAG.match(text, position)
        if tag is None:
            raise _NotAnIconError
        tags.append(tag)
        position = tag.end()
    return tags


def _rewrite(tags: list[re.Match[str]]) -> str:
    if len(tags) < 3:
        raise _NotAnIconError
    root, *drawing, end = tags
    if _kind(root) != ("", "svg", "") or _kind(end) != ("/", "svg", ""):
        raise _NotAnIconError
    attributes = _attributes(root, _STYLE | _ROOT_ONLY)
    kept = {name: attributes[name] for name in attributes if name in _STYLE}
    opening = _written("svg", {"viewBox": "0 0 24 24", **kept})
    return f"<{opening}>{_drawing(drawing)}</svg>"


def _kind(tag: re.Match[str]) -> tuple[str, str, str]:
    return tag["close"], tag["name"].lower(), tag["empty"]


def _drawing(tags: list[re.Match[str]]) -> str:
    written: list[str] = []
    is_open: list[str] = []
    for tag in tags:
        close, name, empty = _kind(tag)
        if close:
            if not is_open or is_open.pop() != name or tag["attributes"] or empty:
                raise _NotAnIconError
            written.append("</g>" if name == "g" else "")
        elif name not in _GEOMETRY or (is_open and is_open[-1] != "g"):
            raise _NotAnIconError  # only groups hold something
        else:
            attributes = _attributes(tag, _STYLE | _GEOMETRY[name])
            end = "" if name == "g" and not empty else "/"
            written.append(f"<{_written(name, attributes)}{end}>")
            if not empty:
                is_open.append(name)
    if is_open:
        raise _NotAnIconError
    return "".join(written)


def _attributes(
    tag: re.Match[str], allowed: dict[str, re.Pattern[str]]
) -> dict[str, str]:
    """What the tag says, each value checked by its own rule."""
    found: dict[str, str] = {}
    for name, double, single in _ATTRIBUTE.findall(tag["attributes"]):
        value = " ".join((double or single).split())
        rule = allowed.get(name.lower())
        if rule is None or name.lower() in found or not rule.fullmatch(value):
            raise _NotAnIconError
        found[name.lower()] = value
    return found


def _written(name: str, attributes: dict[str, str]) -> str:
    return name + "".join(f' {key}="{value}"' for key, value in attributes.items())
