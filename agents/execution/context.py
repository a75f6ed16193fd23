"""What the CLI tells of the context: how full it is, and that it was summarised.

The finished messages carry placeholder numbers, so the stream's events are counted.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from claude_agent_sdk import SystemMessage

from agents.domain import context

from .database import in_database
from .turn import Turn

_COUNTED = (
    "input_tokens",
    "cache_read_input_tokens",
    "cache_creation_input_tokens",
    "output_tokens",
)


@dataclass(slots=True)
class ContextGauge:
    """Adds up one message of the main thread, from its begin to its end."""

    _usage: dict[str, int] = field(default_factory=dict)
    _model: str = ""

    def begin(self, message: dict[str, Any]) -> None:
        self._usage = {}
        self._model = str(message.get("model") or "")
        self.count(message.get("usage"))

    def count(self, usage: dict[str, Any] | None) -> None:
        """Later numbers replace earlier ones; the stream's are running totals."""
        for name in _COUNTED:
            number = (usage or {}).get(name)
            if isinstance(number, int) and number >= 0:
                self._usage[name] = number

    async def end(self, turn: Turn) -> None:
        tokens = sum(self._usage.values())
        if tokens:
            model = self._model or turn.model_actual
            await in_database(context.record_context, turn.run, tokens, model)


async def note_compaction(turn: Turn, message: SystemMessage) -> None:
    """A summary took the place of what was said before, or could not be made."""
    data = message.data
    if message.subtype == "status" and data.get("compact_result") == "failed":
        turn.compaction_error = str(data.get("compact_error") or "")
    if message.subtype != "compact_boundary":
        return
    turn.is_compacted = True
    facts = data.get("compact_metadata") or {}
    await in_database(
        context.record_compaction,
        turn.run,
        trigger=str(facts.get("trigger") or "auto"),
        pre_tokens=int(facts.get("pre_tokens") or 0),
        post_tokens=int(facts.get("post_tokens") or 0),
        model=turn.model_actual or turn.run.model_requested,
    )
