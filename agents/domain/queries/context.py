"""How full the model's context is, as pages show it."""

from __future__ import annotations

from dataclasses import dataclass

from agents.domain.context import Window, window_of
from agents.models import AgentSession, MessageBranch, Run
from agents.rendering.figures import round_tokens

HIGH_PERCENT = 70
FULL_PERCENT = 90


@dataclass(frozen=True, slots=True)
class ContextMeter:
    """What the model's last call held, of what the model can hold."""

    tokens: int
    window: Window

    @property
    def percent(self) -> int:
        return min(round(100 * self.tokens / self.window.tokens), 100)

    @property
    def text(self) -> str:
        return f"{self.percent}% of {round_tokens(self.window.tokens)}"

    @property
    def title(self) -> str:
        held = f"The model's context held {self.tokens:,} tokens at its last answer."
        if self.window.is_known:
            return held
        return f"{held} How much this model can hold is not known; this is a guess."

    @property
    def level(self) -> str:
        if self.percent >= FULL_PERCENT:
            return "full"
        return "high" if self.percent >= HIGH_PERCENT else ""


def load_meter(session: AgentSession, run: Run | None) -> ContextMeter | None:
    """None while no call of the shown branch was answered; one query."""
    branches = MessageBranch.objects.filter(pk__in=[session.active_branch_id])
    tokens = branches.values_list("context_tokens", flat=True).first()
    if tokens is None:
        return None
    model = (run.model_actual or run.model_requested) if run else ""
    return ContextMeter(tokens, window_of(model or session.model))
