"""Streamed text on its way to the pages: joined, published, saved now and then.

Each delta event carries all text since the length that is surely in the row, so no
buffer is needed anywhere: who missed some re-reads the row. The rows are saved beside
that: only after a burst do words wait for the database.
"""

from __future__ import annotations

import asyncio
import logging
from dataclasses import dataclass
from uuid import UUID

from django.db import DatabaseError

from agents.conf import conf
from agents.domain import blocks
from agents.events.bus import publish_delta
from agents.events.vocabulary import StreamDelta
from agents.rendering.text import clean_text
from agents.tasks import spawn

from .database import in_database

logger = logging.getLogger(__name__)

# Each delta event repeats what is not in the row yet, so that is kept short.
MAX_UNSAVED_CHARACTERS = 16_384


@dataclass(slots=True)
class Pace:
    """At most one each interval on average, two in a row after a pause.

    With one only, words that come as often as they may leave would wait half an
    interval on average: each that comes a little early delays all that follow.
    """

    _due_at: float = 0.0  # when the next one would come at an even pace

    def wait_seconds(self, now: float, interval: float) -> float:
        return max(0.0, self._due_at - interval - now)

    def take(self, now: float, interval: float) -> None:
        self._due_at = max(self._due_at, now) + interval


class BlockStream:
    """The text of one message row that is being written."""

    def __init__(
        self, session_id: UUID, message_id: UUID, has_grown: asyncio.Event
    ) -> None:
        self.session_id = session_id
        self.message_id = message_id
        self._has_grown = has_grown
        self._text = ""
        self._saved = 0  # characters surely in the row
        self._published = 0

    @property
    def text(self) -> str:
        return self._text

    @property
    def unsaved_characters(self) -> int:
        return len(self._text) - self._saved

    def append(self, delta: str) -> None:
        if delta:
            self._text += clean_text(delta)
            self._has_grown.set()

    async def publish(self) -> None:
        text = self._text
        if self._published == len(text):
            return
        self._published = len(text)
        await publish_delta(
            StreamDelta(
                session_id=self.session_id,
                message_id=self.message_id,
                offset=self._saved,
                text=text[self._saved :],
            )
        )

    async def save(self) -> None:
        text = self._text
        await in_database(blocks.save_stream, self.message_id, text)
        self._saved = len(text)


class DeltaWriter:
    """All open streams of one turn.

    What is new is published at once, up to 20 times a second, and saved once a second.
    """

    def __init__(self) -> None:
        self._streams: dict[UUID, BlockStream] = {}
        self._has_grown = asyncio.Event()
        self._pace = Pace()

    def open(self, session_id: UUID, message_id: UUID) -> BlockStream:
        stream = BlockStream(session_id, message_id, self._has_grown)
        self._streams[message_id] = stream
        return stream

    def close(self, stream: BlockStream) -> None:
        self._streams.pop(stream.message_id, None)

    async def run(self) -> None:
        """Publish and save until cancelled."""
        saving = spawn(self._save_forever(), name="deltas-saving")
        try:
            await self._publish_forever()
        finally:
            saving.cancel()
            await asyncio.wait({saving})

    async def _publish_forever(self) -> None:
        loop = asyncio.get_running_loop()
        while True:
            await self._has_grown.wait()
            interval = conf().delta_join_seconds
            await asyncio.sleep(self._pace.wait_seconds(loop.time(), interval))
            self._pace.take(loop.time(), interval)
            self._has_grown.clear()
            await self._publish()

    async def _publish(self) -> None:
        for stream in list(self._streams.values()):
            await stream.publish()
            if stream.unsaved_characters > MAX_UNSAVED_CHARACTERS:
                await self._save(stream)

    async def _save_forever(self) -> None:
        """Also when nothing follows: a model that pauses must not hide its words."""
        while True:
            await asyncio.sleep(conf().delta_save_seconds)
            for stream in list(self._streams.values()):
                if stream.unsaved_characters:
                    await self._save(stream)

    async def _save(self, stream: BlockStream) -> None:
        try:
            await stream.save()
        except DatabaseError:
            logger.warning(
                "message %s is saved a second later", stream.message_id, exc_info=True
            )

    async def save_all(self) -> None:
        """Put every half text into its row: the turn ends early."""
        for stream in list(self._streams.values()):
            await stream.publish()
            await stream.save()
