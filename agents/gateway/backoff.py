"""Back-off shared by all lines of one key.

Once a provider said "not before", every call with that key would only be refused and
lengthen the wait, so the others wait as well.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from uuid import UUID

from .lines import Upstream

LONGEST_WAIT_SECONDS = 60.0

_Key = tuple[UUID | None, str, str]


class Backoff:
    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._not_before: dict[_Key, float] = {}

    def note(self, upstream: Upstream, retry_after_seconds: float) -> None:
        """Remember a refusal; the later end counts."""
        wait = min(retry_after_seconds, LONGEST_WAIT_SECONDS)
        key = _key(upstream)
        ends_at = max(self._clock() + wait, self._not_before.get(key, 0.0))
        self._not_before[key] = ends_at

    def remaining_seconds(self, upstream: Upstream) -> float:
        key = _key(upstream)
        remaining = self._not_before.get(key, 0.0) - self._clock()
        if remaining <= 0:
            self._not_before.pop(key, None)
            return 0.0
        return remaining

    async def wait(self, upstream: Upstream) -> None:
        """Return when calls may go again, after `LONGEST_WAIT_SECONDS` in any case."""
        gives_up_at = self._clock() + LONGEST_WAIT_SECONDS
        while remaining := self.remaining_seconds(upstream):
            patience = gives_up_at - self._clock()
            if patience <= 0:
                return
            await asyncio.sleep(min(remaining, patience))


def _key(upstream: Upstream) -> _Key:
    return upstream.provider_id, upstream.base_url, upstream.api_key
