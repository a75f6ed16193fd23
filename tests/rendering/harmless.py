"""A browser's view of some HTML: which tags and attributes would really exist.

Substring checks can't tell escaped text from markup; a parser can.
"""

from __future__ import annotations

from html.parser import HTMLParser

_TAGS = """
    a blockquote br button code del div em h1 h2 h3 h4 h5 h6 hr li ol p pre s span
    strong table tbody td th thead time tr ul
"""
TAGS = set(_TAGS.split())
ATTRIBUTES = {
    "class",
    "data-copy",
    "datetime",
    "href",
    "rel",
    "start",
    "tabindex",
    "title",
    "type",
}
LINKS = ("http:", "https:", "mailto:")
VOID = {"br", "hr"}


class _Reader(HTMLParser):
    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.open: list[str] = []
        self.text = ""

    def handle_starttag(self, tag, attrs):
        self.found.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open[-1:] == [tag], f"stray </{tag}>"
        self.open.pop()

    def handle_data(self, data):
        self.text += data

    def handle_comment(self, data):
        raise AssertionError(f"a comment: {data!r}")


def read(html: str) -> _Reader:
    reader = _Reader()
    reader.feed(html)
    reader.close()
    return reader


def text_of(html: str) -> str:
    return read(html).text


def assert_harmless(html: str) -> None:
    """Only tags and attributes we make, only web links, balanced, encodable."""
    html.encode()
    assert "\x00" not in html
    assert "\u202e" not in html
    reader = read(html)
    assert reader.open == []
    for tag, attributes in reader.found:
        assert tag in TAGS, tag
        assert set(attributes) <= ATTRIBUTES, attributes
        href = attributes.get("href")
        assert href is None or href.startswith(LINKS), href
