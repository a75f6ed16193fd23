"""Where an item goes on a page that is open: in its place, its group or a new group.

The page's items are folded by the same algorithm as a fresh page's, before and after
the change; what differs is what is sent.
"""

from __future__ import annotations

from collections.abc import Iterator
from uuid import UUID

from django.template.loader import render_to_string
from django.utils.html import format_html
from django.utils.safestring import SafeString

from agents.domain.queries.groups import (
    Entry,
    ToolGroup,
    group_element_id,
    load_group,
    with_items,
)
from agents.domain.queries.items import Item
from agents.domain.queries.transcript import load_items
from agents.models import AgentSession
from agents.rendering.dom import dom_id

from .pages import LivePage


def put(page: LivePage, session: AgentSession, item: Item | None) -> list[str]:
    """Replace the item where the page has it, else insert it in its place."""
    if item is None:
        return []
    moved = _take_out(page, session, item)
    return [*moved, *_put(page, session, item)]


def _take_out(page: LivePage, session: AgentSession, item: Item) -> list[str]:
    """Calls that stood by themselves and are part of `item`, now that it is known.

    A sub-agent's call may be heard of before it is known whose it is.
    """
    inside = {each.message.pk for each in _nested(item)} & page.shown.keys()
    if not inside:
        return []
    before = page.entries()
    for message_id in inside:
        del page.shown[message_id]
    return _Change(page, session, item).rearrange(before, page.entries())


def _nested(item: Item) -> Iterator[Item]:
    for child in item.children:
        yield child
        yield from _nested(child)


def _put(page: LivePage, session: AgentSession, item: Item) -> list[str]:
    if page.is_older(item):
        return [_item_html(item)]
    before = page.entries()
    page.remember(item)
    after = page.entries()
    if _shapes(before) == _shapes(after):
        return _Change(page, session, item).refresh(before, after)
    return _Change(page, session, item).rearrange(before, after)


def put_group_name(page: LivePage, session: AgentSession, group_id: UUID) -> list[str]:
    """A group got its name; a page that has no such group needs nothing."""
    for entry in page.entries():
        if len(entry) > 1 and entry[0].message_id == group_id:
            return [_summary_html(load_group(session, entry))]
    return []


def append(list_id: str, html: SafeString) -> SafeString:
    return _wrap("beforeend", list_id, html)


def _wrap(where: str, element_id: str, html: SafeString) -> SafeString:
    return format_html('<div hx-swap-oob="{}:#{}">{}</div>', where, element_id, html)


def _delete(element_id: str) -> SafeString:
    return format_html('<div id="{}" hx-swap-oob="delete"></div>', element_id)


def _item_html(item: Item) -> SafeString:
    return render_to_string(item.template, {"item": item})


def _summary_html(group: ToolGroup) -> SafeString:
    return render_to_string("agents/tools/_group_summary.html", {"group": group})


def _shape(entry: Entry) -> tuple[UUID, ...]:
    return tuple(place.message_id for place in entry)


def _shapes(entries: list[Entry]) -> list[tuple[UUID, ...]]:
    return [_shape(entry) for entry in entries]


def _element_id(entry: Entry) -> str:
    first = entry[0]
    is_group = len(entry) > 1
    return group_element_id(first.message_id) if is_group else first.element_id


def _is_open(entry: Entry) -> bool:
    return ToolGroup(places=entry).is_open


class _Change:
    """What one item's change does to a page."""

    def __init__(self, page: LivePage, session: AgentSession, item: Item) -> None:
        self._page = page
        self._session = session
        self._item = item

    def refresh(self, before: list[Entry], after: list[Entry]) -> list[str]:
        """The item stays where it is."""
        index = next(i for i, entry in enumerate(after) if self._is_in(entry))
        entry = after[index]
        if len(entry) == 1:
            return [_item_html(self._item)]
        if _is_open(before[index]) != _is_open(entry):
            return [self._html(entry)]
        summary = _summary_html(load_group(self._session, entry))
        return [_item_html(self._item), summary]

    def rearrange(self, before: list[Entry], after: list[Entry]) -> list[str]:
        """Take out what is grouped in another way now, and put in what replaces it."""
        kept = set(_shapes(before)) & set(_shapes(after))
        gone = [entry for entry in before if _shape(entry) not in kept]
        new = [entry for entry in after if _shape(entry) not in kept]
        if self._has_grown(gone, new):
            return self._grow(new[0])
        fragments: list[str] = [_delete(_element_id(entry)) for entry in gone]
        for index, entry in enumerate(after):
            if _shape(entry) not in kept:
                later = (e for e in after[index + 1 :] if _shape(e) in kept)
                fragments.append(self._insert(entry, next(later, None)))
        return fragments

    def _is_in(self, entry: Entry) -> bool:
        return any(place.message_id == self._item.message.pk for place in entry)

    def _has_grown(self, gone: list[Entry], new: list[Entry]) -> bool:
        """Whether all that happened is one more call at the end of a group."""
        if len(gone) != 1 or len(new) != 1 or len(gone[0]) == 1:
            return False
        return _shape(gone[0]) == _shape(new[0])[:-1] and (
            _is_open(gone[0]) == _is_open(new[0])
        )

    def _grow(self, entry: Entry) -> list[str]:
        group = load_group(self._session, entry)
        card = append(group.items_id, _item_html(self._item))
        return [card, _summary_html(group)]

    def _insert(self, entry: Entry, following: Entry | None) -> SafeString:
        html = self._html(entry)
        if following is None:
            return append(dom_id("session", self._session.pk, "items"), html)
        return _wrap("beforebegin", _element_id(following), html)

    def _html(self, entry: Entry) -> SafeString:
        """An entry from its rows as they are now; the page knows them so, too."""
        if len(entry) == 1 and self._is_in(entry):
            return _item_html(self._item)
        found = load_items(self._session, self._page.user, _shape(entry))
        items = [found[message_id] for message_id in _shape(entry)]
        for item in items:
            self._page.remember(item)
        if len(items) == 1:
            return _item_html(items[0])
        places = tuple(self._page.shown[item.message.pk] for item in items)
        group = with_items(load_group(self._session, places), items)
        return render_to_string("agents/tools/_group.html", {"group": group})
