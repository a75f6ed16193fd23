"""HTML of somebody else's page in, readable plain text out, for a model to read."""

from __future__ import annotations

import re
from html.parser import HTMLParser

import nh3

_DROPPED = {"script", "style", "noscript", "template", "iframe", "object", "title"}
_HEADINGS = {f"h{level}": "#" * level for level in range(1, 7)}
_BLOCKS = {
    *("p", "div", "section", "article", "main", "header", "footer", "aside", "nav"),
    *("ul", "ol", "table", "tr", "blockquote", "pre", "dl", "dt", "dd", "figure"),
    *("form", "details", "summary", "hr", "address", *_HEADINGS),
}
_INLINE = {"a", "br", "li", "td", "th", "code", "img"}
_TITLE = re.compile(r"<title[^>]*>(.{0,1000}?)</title", re.IGNORECASE | re.DOTALL)
_SPACES = re.compile(r"[ \t\f\v\r\n]+")
_TITLE_LOOK_CHARS = 100_000


def html_to_text(html: str) -> str:
    """Headings, lists, tables' cells and links stay recognisable; scripts are gone."""
    clean = nh3.clean(
        html,
        tags=_BLOCKS | _INLINE,
        attributes={"a": {"href"}, "img": {"alt"}},
        clean_content_tags=_DROPPED,
        link_rel=None,
    )
    writer = _Writer()
    writer.feed(clean)
    writer.close()
    return writer.text()


def title_of(html: str) -> str:
    """The page's title on one line; empty if it has none."""
    found = _TITLE.search(html[:_TITLE_LOOK_CHARS])
    if found is None:
        return ""
    return _SPACES.sub(" ", html_to_text(found[1])).strip()


class _Writer(HTMLParser):
    """Writes sanitised HTML down as lines."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self._parts: list[str] = []
        self._links: list[str] = []
        self._is_preformatted = 0

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = dict(attrs)
        match tag:
            case "br":
                self._parts.append("\n")
            case "li":
                self._parts.append("\n- ")
            case "td" | "th":
                self._parts.append(" | ")
            case "a":
                self._links.append(values.get("href") or "")
            case "img":
                self._parts.append(values.get("alt") or "")
            case "pre":
                self._is_preformatted += 1
                self._parts.append("\n\n")
            case "tr":
                self._parts.append("\n")
            case _ if tag in _HEADINGS:
                self._parts.append(f"\n\n{_HEADINGS[tag]} ")
            case _ if tag in _BLOCKS:
                self._parts.append("\n\n")

    def handle_endtag(self, tag: str) -> None:
        if tag == "a" and self._links:
            target = self._links.pop()
            if target.startswith(("http://", "https://")):
                self._parts.append(f" ({target})")
        elif tag in _BLOCKS and tag != "tr":
            if tag == "pre":
                self._is_preformatted = max(0, self._is_preformatted - 1)
            self._parts.append("\n\n")

    def handle_data(self, data: str) -> None:
        self._parts.append(data if self._is_preformatted else _SPACES.sub(" ", data))

    def text(self) -> str:
        lines = [line.rstrip() for line in "".join(self._parts).split("\n")]
        kept: list[str] = []
        for line in lines:
            shown = line if line.startswith(("  ", "\t")) else line.lstrip(" ")
            if shown or (kept and kept[-1]):
                kept.append(shown)
        return "\n".join(kept).strip()
