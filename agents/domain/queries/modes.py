"""Modes as their page lists them."""

from __future__ import annotations

from dataclasses import dataclass

from agents.models import Mode, User
from agents.policy.modes import HAND_IN_PLAN, plans_first


@dataclass(frozen=True, slots=True)
class ModeRow:
    mode: Mode
    can_edit: bool
    next_name: str
    """The mode in which its sessions go on; empty for itself."""

    @property
    def origin(self) -> str:
        if self.mode.is_builtin:
            return "Built in"
        return "Everybody" if self.mode.owner_id is None else "You"

    @property
    def tools_text(self) -> str:
        tools: list[str] | None = self.mode.tools
        if tools is None:
            return "Every tool"
        if plans_first(tools):
            shown = [name for name in tools if name != HAND_IN_PLAN]
            return f"Plans first; {', '.join(shown) or 'no other tool'}"
        return ", ".join(tools) or "No tool"


def load_modes(user: User) -> list[ModeRow]:
    found = list(Mode.objects.visible_to(user).order_by("-is_builtin", "name"))
    names = {mode.slug: mode.name for mode in found}
    editable = set(Mode.objects.editable_by(user).values_list("pk", flat=True))
    may_edit = user.may_start_agents
    return [
        ModeRow(
            mode=mode,
            can_edit=may_edit and mode.pk in editable,
            next_name=names.get(mode.default_next_mode, mode.default_next_mode),
        )
        for mode in found
    ]
