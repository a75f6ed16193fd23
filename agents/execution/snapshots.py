"""Recording a session's files around a turn; never a reason for the turn to fail."""

from __future__ import annotations

import logging
from collections.abc import Callable

from agents.domain import changes, runs, snapshots
from agents.errors import LeaseLostError
from agents.models import Run

from .database import in_database
from .turn import Turn

logger = logging.getLogger(__name__)


async def before_turn(turn: Turn) -> None:
    """Raises: LeaseLostError."""
    await _try(snapshots.prepare_files, turn)


async def after_turn(turn: Turn) -> None:
    """Not while the server stops: the next turn's beginning records the same.

    Raises: LeaseLostError.
    """
    if turn.stop_cause != "shutdown":
        await _try(snapshots.record_snapshot, turn)


async def at_end(turn: Turn) -> None:
    """Say what the whole turn changed.

    Raises: LeaseLostError.
    """
    await _try(changes.note_changes, turn)


async def _try(record: Callable[[Run], object], turn: Turn) -> None:
    try:
        await in_database(record, turn.run)
    except LeaseLostError:
        raise
    except Exception:
        await in_database(runs.check_is_there, turn.run)
        # Part of the edge at the top of a run: an unrecorded turn must still end.
        logger.exception("run %s: its files were not recorded", turn.run.pk)
