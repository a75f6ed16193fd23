"""One turn of an agent as the engine sees it: its run, its counters, its flags.

Made when a worker claims a run, gone when the run is finished. The hooks, the
translator and the loop of one client all look at the same `Turn`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

from agents.conf import conf
from agents.gateway.lines import Trouble
from agents.models import Run
from agents.models.runs import RunKind
from agents.policy.corrections import Corrections
from agents.policy.limits import step_limit

from .clock import WorkClock, effort_seconds
from .parking import CallBoard


@dataclass(slots=True)
class Turn:
    run: Run
    jailed: bool
    stopping: asyncio.Event = field(default_factory=asyncio.Event)
    """Set when the turn must end early; `stop_cause` says why."""
    stop_cause: str = ""
    files_recorded: asyncio.Event = field(default_factory=asyncio.Event)
    """Set when the files are kept as they were before the turn; calls wait for it."""
    trouble: Trouble | None = None
    is_denied_and_stopped: bool = False
    completed_task: bool = False
    has_approved_plan: bool = False
    """Whether its session left a mode that only plans; another turn does the work."""
    waiting: int = 0
    """How many of its calls wait for a person; such a turn takes no slot."""
    on_slot_freed: Callable[[], None] = lambda: None
    clock: WorkClock = field(default_factory=WorkClock)
    steps_before: int = 0
    """Those that it took before it was put aside."""
    step_ids: set[str] = field(default_factory=set)
    has_failed_step: bool = False
    """Whether the step that is on has failed."""
    corrections: Corrections = field(default_factory=Corrections)
    known_calls: dict[str, tuple[str, dict[str, Any], str]] = field(
        default_factory=dict
    )
    """By tool_use id: the tool, its input, and the sub-agent that calls it."""
    judged_calls: set[str] = field(default_factory=set)
    """Calls whose success or failure is counted."""
    lent_to: set[str] = field(default_factory=set)
    """Calls that work on the time of somebody else."""
    settled: set[str] = field(default_factory=set)
    """Calls (tool_use ids) that were refused here, or whose wait was broken off; the
    CLI's own words for that are not shown."""
    board: CallBoard = field(default_factory=CallBoard)
    cooling: asyncio.Event = field(default_factory=asyncio.Event)
    """Set when nobody is waited for any longer: what can be put aside is."""
    deferred_tool_use_id: str = ""
    """The call that was put aside, for another process to take up."""
    sub_agents: dict[str, str] = field(default_factory=dict)
    """The CLI's id of each sub-agent, with the call that started it."""
    model_actual: str = ""
    last_error: str = ""
    retry_notice_id: UUID | None = None
    is_compacted: bool = False
    compaction_error: str = ""
    """The CLI's words when it could not summarise the conversation."""

    @property
    def is_compaction(self) -> bool:
        """Whether all it does is to have the conversation summarised."""
        return self.run.kind == RunKind.COMPACT

    @property
    def session_id(self) -> UUID:
        return self.run.session_id

    @property
    def steps(self) -> int:
        return self.steps_before + len(self.step_ids)

    @property
    def step_limit(self) -> int:
        session = self.run.session
        return step_limit(session.effort, session.max_steps)

    @property
    def seconds_limit(self) -> float:
        return effort_seconds(self.run.session.effort, conf())

    def agent_of_call(self, parent_tool_use_id: str) -> str:
        """The sub-agent that a call started; empty for the main conversation."""
        agents = self.sub_agents.items()
        return next((a for a, call in agents if call == parent_tool_use_id), "")

    def lend_time(self, tool_use_id: str) -> None:
        """An agent that was asked works on a clock of its own."""
        if tool_use_id not in self.lent_to:
            self.lent_to.add(tool_use_id)
            self.clock.hold()

    def take_time_back(self, tool_use_id: str) -> None:
        if tool_use_id in self.lent_to:
            self.lent_to.remove(tool_use_id)
            self.clock.release()

    @contextmanager
    def waits_for_person(self) -> Iterator[None]:
        """Meanwhile the turn takes no slot and no time, and a server that ends has it
        put aside."""
        self.waiting += 1
        self.clock.hold()
        self.on_slot_freed()
        try:
            yield
        finally:
            self.waiting -= 1
            self.clock.release()

    def cool_down(self) -> None:
        """End the waits for people; without any, end the turn."""
        self.cooling.set()
        if not self.waiting:
            self.stop("shutdown")

    def stop(self, cause: str) -> None:
        """Ask the turn to end; the first cause stays."""
        if not self.stopping.is_set():
            self.stop_cause = cause
            self.stopping.set()

    def stop_from_gateway(self, trouble: Trouble) -> None:
        """A hopeless answer ends the turn now instead of after minutes of retries."""
        self.trouble = trouble
        if trouble.kind == "budget":
            self.stop("budget")
        elif trouble.is_hopeless:
            self.stop("trouble")
