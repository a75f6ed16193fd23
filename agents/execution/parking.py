"""Which calls may be put aside: what the CLI can take up again in another process.

`defer` ends the turn and keeps the call, but only a call of the main conversation
whose message has ended and whose sibling calls are all answered: of two open calls
the CLI would keep the last one, and a sub-agent would be ended instead. Whether a call
is alone is known only after its message ended, so it is asked at the end of the wait.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field

ENDING_SECONDS = 1.0


@dataclass(slots=True)
class CallBoard:
    """The calls of the main conversation in one turn, by the message they came in."""

    _message_of: dict[str, str] = field(default_factory=dict)
    _ended_messages: set[str] = field(default_factory=set)
    _answered: set[str] = field(default_factory=set)
    _changed: asyncio.Event = field(default_factory=asyncio.Event)

    def call_began(self, message_id: str, tool_use_id: str) -> None:
        self._message_of[tool_use_id] = message_id

    def message_ended(self, message_id: str) -> None:
        self._ended_messages.add(message_id)
        self._changed.set()

    def call_answered(self, tool_use_id: str) -> None:
        self._answered.add(tool_use_id)
        self._changed.set()

    async def becomes_alone(self, tool_use_id: str) -> bool:
        """As `is_alone`; a message that is just ending is given a moment to end."""
        try:
            async with asyncio.timeout(ENDING_SECONDS):
                while not self.is_alone(tool_use_id):
                    self._changed.clear()
                    await self._changed.wait()
        except TimeoutError:
            return False
        return True

    def is_alone(self, tool_use_id: str) -> bool:
        """Whether the call is the only open one of a message that has ended."""
        message_id = self._message_of.get(tool_use_id)
        if message_id is None or message_id not in self._ended_messages:
            return False
        siblings = {
            call for call, message in self._message_of.items() if message == message_id
        }
        return siblings - self._answered == {tool_use_id}
