"""What a tree of conversations is, as plain Python: the property test's yardstick.

A node is something that was said, and knows what was said before it. A line (our
`MessageBranch`) is the node that it ends with. No number, no order of rows and no
transcript plays a part here, so nothing can be wrong in the same way twice.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import takewhile
from uuid import UUID

USER = "user"
ASSISTANT = "assistant"


@dataclass(eq=False)
class Node:
    """`key` is the row's id; None for what only the model remembers."""

    role: str
    text: str
    line: Line
    before: Node | None
    key: UUID | None
    is_hidden: bool = False
    is_heard: bool = False
    """Whether it stands in the model's memory by itself."""

    @property
    def is_shown(self) -> bool:
        return self.key is not None and not self.is_hidden

    @property
    def is_editable(self) -> bool:
        return self.role == USER and self.is_shown


@dataclass(eq=False)
class Line:
    key: UUID
    tip: Node | None = None


@dataclass(eq=False)
class Waiting:
    """A message in the queue."""

    text: str
    line: Line
    key: UUID
    is_urgent: bool


def way_to(node: Node | None) -> list[Node]:
    """Everything up to the node, oldest first."""
    way: list[Node] = []
    while node is not None:
        way.append(node)
        node = node.before
    return way[::-1]


def memory_of(way: list[Node]) -> list[str]:
    """What the model remembers: all of it, up to the last that it heard.

    What it missed it is told with the next message, but for hidden prompts.
    """
    while way and not way[-1].is_heard:
        way = way[:-1]
    return [node.text for node in way if node.is_heard or node.is_shown]


@dataclass(eq=False)
class Tree:
    """One session. Its run is the node that is being answered."""

    lines: list[Line]
    active: Line
    nodes: list[Node] = field(default_factory=list)
    queue: list[Waiting] = field(default_factory=list)
    is_paused: bool = False
    run: Node | None = None
    is_claimed: bool = False
    is_stopping: bool = False

    @classmethod
    def begin(cls, line_key: UUID) -> Tree:
        line = Line(line_key)
        return cls(lines=[line], active=line)

    # What people do

    def send(self, text: str, key: UUID) -> None:
        self.is_paused = False
        if self.run is not None or self.queue:
            self.queue.append(Waiting(text, self.active, key, is_urgent=False))
            self._deliver()
        else:
            self._start(self._append(self.active, USER, text, key))

    def edit(self, node: Node, text: str, line_key: UUID, key: UUID) -> None:
        line = Line(line_key, tip=node.before)
        self.lines.append(line)
        self.active = line
        if self.run is not None:
            self.queue.append(Waiting(text, line, key, is_urgent=True))
            self.stop()
        else:
            self._start(self._append(line, USER, text, key))

    def go_on(self, text: str, key: UUID) -> None:
        self._start(self._append(self.active, USER, text, key, is_hidden=True))

    def stop(self) -> None:
        self.is_stopping = True
        if not self.is_claimed:
            self.end(is_success=False)

    def release_queue(self) -> None:
        self.is_paused = False
        self._deliver()

    def prompt_of(self, answer: Node) -> Node | None:
        asked = [node for node in way_to(answer) if node.is_editable]
        return asked[-1] if asked else None

    def copy(
        self, up_to: Node | None, line_key: UUID, new_keys: Callable[[Node], UUID]
    ) -> Tree:
        """A session of its own with the active line, or with that up to a node."""
        tree = Tree.begin(line_key)
        whole = way_to(self.active.tip)
        end = len(whole) if up_to is None else whole.index(up_to) + 1
        for node in whole[:end]:
            key = new_keys(node) if node.key is not None else None
            tree._append(tree.active, node.role, node.text, key, node.is_hidden)
            tree.nodes[-1].is_heard = node.is_heard and not (
                node is up_to and node.role == USER
            )
        if up_to is not None and up_to.role == ASSISTANT:
            # The memory ends with the turn that the last message is part of.
            for node in takewhile(lambda each: each.role == ASSISTANT, whole[end:]):
                tree._append(tree.active, node.role, node.text, None)
                tree.nodes[-1].is_heard = True
        return tree

    # What the engine does

    def claim(self) -> list[str]:
        """Returns: what the model is sent, the new prompt last."""
        assert self.run is not None
        self.is_claimed = True
        self.run.is_heard = True
        return memory_of(way_to(self.run))

    def say(self, text: str, key: UUID) -> None:
        assert self.run is not None
        self._append(self.run.line, ASSISTANT, text, key).is_heard = True

    def end(self, *, is_success: bool) -> None:
        ordinary = [waiting for waiting in self.queue if not waiting.is_urgent]
        if ordinary and (self.is_stopping or not is_success):
            self.is_paused = True
        self.run, self.is_claimed, self.is_stopping = None, False, False
        self._deliver()

    # What follows

    def _append(
        self,
        line: Line,
        role: str,
        text: str,
        key: UUID | None,
        is_hidden: bool = False,
    ) -> Node:
        node = Node(role, text, line, line.tip, key, is_hidden)
        self.nodes.append(node)
        line.tip = node
        return node

    def _start(self, prompt: Node) -> None:
        assert self.run is None
        self.run = prompt

    def _deliver(self) -> None:
        in_order = sorted(self.queue, key=lambda each: not each.is_urgent)
        if not in_order or self.run is not None:
            return
        first = in_order[0]
        if self.is_paused and not first.is_urgent:
            return
        self.queue.remove(first)
        self._start(self._append(first.line, USER, first.text, first.key))

    # What is to be seen

    def shown(self, line: Line) -> list[str]:
        return [node.text for node in way_to(line.tip) if node.is_shown]

    def memory(self, line: Line) -> list[str]:
        return memory_of(way_to(line.tip))

    def alternatives(self) -> dict[UUID, tuple[UUID, ...]]:
        """By message: the lines of all that was said in its place, the oldest first.

        Messages of a person that follow on the same one are alternatives.
        """
        families: dict[Node | None, list[Node]] = {}
        for node in self.nodes:
            if node.is_editable:
                families.setdefault(_last_shown(node.before), []).append(node)
        found: dict[UUID, tuple[UUID, ...]] = {}
        for family in families.values():
            family.sort(key=lambda node: self.lines.index(node.line))
            for node in family:
                assert node.key is not None
                found[node.key] = tuple(each.line.key for each in family)
        return {key: lines for key, lines in found.items() if len(lines) > 1}


def _last_shown(node: Node | None) -> Node | None:
    """Hidden prompts stand in nobody's way."""
    while node is not None and not node.is_shown:
        node = node.before
    return node
