"""Tool calls in a row, folded: which belong together, and what their summary says.

One algorithm for pages, frames and the worker that names groups. It looks at `Place`s
only, so a socket that remembers those of its page knows the page's groups.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from uuid import UUID

from django.utils.safestring import SafeString

from agents.conf import conf
from agents.models import AgentSession, ToolGroupMeta
from agents.rendering.dom import dom_id
from agents.rendering.svg import icon_of

from .items import Item

SHOWN_SINGLY = 2
# What people look for or have to answer is never folded away.
_APART = {"Agent", "AskUserQuestion", "ExitPlanMode", "InvokeAgent", "RenderOutput"}
_UNDER_WAY = ("running", "waiting")


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """What grouping has to know of one item of a transcript."""

    message_id: UUID
    seq: int
    element_id: str = ""
    tool_name: str = ""
    """Of a call that may be folded; empty for everything else."""
    label: str = ""
    state: str = ""


def place_of(item: Item) -> Place:
    message = item.message
    name = foldable_name(message.tool_name) if item.tool is not None else ""
    return Place(
        message_id=message.pk,
        seq=message.seq,
        element_id=item.element_id,
        tool_name=name,
        label=str(item.tool.label) if item.tool is not None else "",
        state=item.state if name else "",
    )


def foldable_name(tool_name: str) -> str:
    """The tool's name, or "" when its calls stand apart."""
    is_apart = tool_name.rpartition("__")[2] in _APART or tool_name == "Task"
    return "" if is_apart else tool_name


Entry = tuple[Place, ...]
"""What stands in the transcript as one: an item, or a group of more than two calls."""


def fold(places: Iterable[Place]) -> list[Entry]:
    """The entries of a transcript, given its items in order."""
    entries: list[Entry] = []
    run: list[Place] = []
    for place in places:
        if place.tool_name:
            run.append(place)
            continue
        entries += _entries_of(run)
        entries.append((place,))
        run = []
    return entries + _entries_of(run)


def _entries_of(run: list[Place]) -> list[Entry]:
    if len(run) > SHOWN_SINGLY:
        return [tuple(run)]
    return [(place,) for place in run]


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolGroup:
    """A folded run of calls, ready for `agents/tools/_group.html`."""

    places: Entry
    meta: ToolGroupMeta | None = None
    items: tuple[Item, ...] = field(default=(), compare=False)

    @property
    def group_id(self) -> UUID:
        """The group's first call, which is what identifies it."""
        return self.places[0].message_id

    @property
    def element_id(self) -> str:
        return group_element_id(self.group_id)

    @property
    def summary_id(self) -> str:
        return dom_id("group", self.group_id, "summary")

    @property
    def items_id(self) -> str:
        return dom_id("group", self.group_id, "items")

    @property
    def count(self) -> int:
        return len(self.places)

    @property
    def done_count(self) -> int:
        return self.count - sum(place.state in _UNDER_WAY for place in self.places)

    @property
    def denied_count(self) -> int:
        return self._count("denied")

    @property
    def failed_count(self) -> int:
        return self._count("error")

    @property
    def is_waiting(self) -> bool:
        """Whether one of its calls waits for a person."""
        return self._count("waiting") > 0

    @property
    def is_under_way(self) -> bool:
        return self.done_count < self.count

    @property
    def is_open(self) -> bool:
        """A person must see what to decide; one server's calls read as one act."""
        return self.is_waiting or bool(mcp_server(self.places))

    @property
    def is_unnamed(self) -> bool:
        """Whether a name is on its way, so that the place for it is kept."""
        return self.meta is None and self.is_under_way and conf().generate_titles

    @property
    def name(self) -> str:
        return self.meta.name if self.meta is not None else plain_name(self.places)

    @property
    def icon(self) -> SafeString:
        """The drawn icon; empty where a stock one is to be shown."""
        return icon_of(self.meta.svg) if self.meta is not None else SafeString("")

    def _count(self, state: str) -> int:
        return sum(place.state == state for place in self.places)


def group_element_id(group_id: UUID) -> str:
    return dom_id("group", group_id)


def mcp_server(places: Entry) -> str:
    """The one MCP server that all calls went to, or ""."""
    servers = {_server_of(place.tool_name) for place in places}
    return servers.pop() if len(servers) == 1 else ""


def _server_of(tool_name: str) -> str:
    kind, _, rest = tool_name.partition("__")
    return rest.partition("__")[0] if kind == "mcp" else ""


def plain_name(places: Entry) -> str:
    """What a group is called without a model's help."""
    labels = Counter(place.label for place in places if place.label)
    if len(labels) == 1:
        return next(iter(labels))
    return mcp_server(places) or "Tool calls"


@dataclass(frozen=True, slots=True, kw_only=True)
class Single:
    """An item that stands for itself."""

    item: Item


def load_entries(
    session: AgentSession, items: Iterable[Item]
) -> list[Single | ToolGroup]:
    """The items folded, groups with their names; one query, if there are groups."""
    known = {item.message.pk: item for item in items}
    entries = fold(place_of(item) for item in known.values())
    metas = load_metas(session, [entry for entry in entries if len(entry) > 1])
    return [
        Single(item=known[entry[0].message_id])
        if len(entry) == 1
        else ToolGroup(
            places=entry,
            meta=metas.get(entry[0].message_id),
            items=tuple(known[place.message_id] for place in entry),
        )
        for entry in entries
    ]


def load_metas(session: AgentSession, groups: list[Entry]) -> dict[UUID, ToolGroupMeta]:
    """Names and icons by the groups' first calls."""
    if not groups:
        return {}
    first_ids = [entry[0].message_id for entry in groups]
    metas = ToolGroupMeta.objects.filter(
        session=session, first_message_id__in=first_ids
    )
    return {meta.first_message_id: meta for meta in metas}


def load_group(session: AgentSession, places: Entry) -> ToolGroup:
    """A group without its items, for a new summary; one query."""
    meta = load_metas(session, [places]).get(places[0].message_id)
    return ToolGroup(places=places, meta=meta)


def with_items(group: ToolGroup, items: Iterable[Item]) -> ToolGroup:
    return replace(group, items=tuple(items))
