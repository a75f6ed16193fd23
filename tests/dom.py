"""A little DOM for tests: parse a page, find by id, apply frames as htmx does.

Only what the frames use: replace by id, append to a list or a text, insert before.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from html.parser import HTMLParser

_VOID = {
    *("area", "base", "br", "col", "embed", "hr", "img", "input"),
    *("link", "meta", "source", "track", "wbr"),
}


@dataclass
class Node:
    tag: str
    attributes: dict[str, str] = field(default_factory=dict)
    children: list[Node | str] = field(default_factory=list)

    @property
    def id(self) -> str:
        return self.attributes.get("id", "")

    @property
    def text(self) -> str:
        return "".join(
            child if isinstance(child, str) else child.text for child in self.children
        )

    @property
    def words(self) -> str:
        """The text as a reader sees it, spaces folded."""
        return " ".join(self.text.split())

    def walk(self) -> Iterator[Node]:
        yield self
        for child in self.children:
            if isinstance(child, Node):
                yield from child.walk()

    def find(self, element_id: str) -> Node:
        found = self.find_all(id=element_id)
        assert len(found) == 1, f"{len(found)} elements have the id {element_id}"
        return found[0]

    def has(self, element_id: str) -> bool:
        return any(node.id == element_id for node in self.walk())

    def find_all(self, tag: str = "", **attributes: str) -> list[Node]:
        wanted = {name.replace("_", "-"): value for name, value in attributes.items()}
        return [
            node
            for node in self.walk()
            if (not tag or node.tag == tag)
            and wanted.items() <= node.attributes.items()
        ]

    def parent_of(self, target: Node) -> Node:
        return next(
            node
            for node in self.walk()
            if any(child is target for child in node.children)
        )

    def outline(self) -> str:
        """A form in which two equal trees are equal strings; whitespace is folded."""
        names = sorted(self.attributes.items())
        inside = [
            " ".join(child.split()) if isinstance(child, str) else child.outline()
            for child in _joined(self.children)
        ]
        attributes = "".join(f' {name}="{value}"' for name, value in names)
        return f"<{self.tag}{attributes}>{'|'.join(filter(None, inside))}</{self.tag}>"


def _joined(children: list[Node | str]) -> list[Node | str]:
    """Neighbouring texts as one, as a browser's normalised DOM has them."""
    joined: list[Node | str] = []
    for child in children:
        if isinstance(child, str) and joined and isinstance(joined[-1], str):
            joined[-1] += child
        else:
            joined.append(child)
    return joined


class _Builder(HTMLParser):
    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.root = Node("#root")
        self._open = [self.root]

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        node = Node(tag, {name: value or "" for name, value in attrs})
        self._open[-1].children.append(node)
        if tag not in _VOID:
            self._open.append(node)

    def handle_endtag(self, tag: str) -> None:
        if tag in _VOID:
            return
        assert self._open[-1].tag == tag, f"</{tag}> closes <{self._open[-1].tag}>"
        self._open.pop()

    def handle_data(self, data: str) -> None:
        self._open[-1].children.append(data)


def parse(html: str) -> Node:
    """Parse a page or a fragment; every element must be closed properly."""
    builder = _Builder()
    builder.feed(html)
    builder.close()
    assert len(builder._open) == 1, "an element is not closed"
    return builder.root


def apply_frame(page: Node, frame: str) -> list[str]:
    """Swap a frame into the page. Returns: the ids that were not on the page."""
    missing = []
    for root in parse(frame).children:
        if isinstance(root, str):
            assert not root.strip(), f"text outside of an element: {root!r}"
            continue
        swap = root.attributes.pop("hx-swap-oob", "true")
        style, _, selector = swap.partition(":")
        target_id = selector.removeprefix("#") or root.id
        assert target_id, "a root of a frame needs an id"
        if not page.has(target_id):
            missing.append(target_id)
        elif style == "beforeend":
            page.find(target_id).children.extend(root.children)
        elif style == "innerHTML":
            page.find(target_id).children[:] = root.children
        else:
            target = page.find(target_id)
            siblings = page.parent_of(target).children
            index = next(i for i, child in enumerate(siblings) if child is target)
            if style == "beforebegin":
                siblings[index:index] = root.children
            elif style == "delete":
                del siblings[index]
            else:
                siblings[index] = root
    return missing
