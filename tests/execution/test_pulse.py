"""The pulse of a site: it beats while agents work, and ends when it is told to."""

from __future__ import annotations

import asyncio

from agents.execution.pulse import Pulse
from agents.models import AnalyticsEvent, Run

from .conftest import until


async def test_it_beats_until_it_is_stopped(run: Run) -> None:
    pulse = Pulse(seconds=0.01)
    pulse.start()
    beats = AnalyticsEvent.objects.filter(type="app.heartbeat")
    await until(lambda: beats.count() >= 2)

    await pulse.stop()

    assert not [task for task in asyncio.all_tasks() if task.get_name() == "pulse"]
