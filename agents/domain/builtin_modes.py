"""The built-in modes: Agent, Ask and Plan."""

from __future__ import annotations

from typing import Any

from agents.models import Mode

READ_ONLY = ["Read", "Glob", "Grep", "AskUserQuestion"]
PLANNING = [*READ_ONLY, "ExitPlanMode"]
MODES: list[dict[str, Any]] = [
    {
        "slug": "agent",
        "name": "Agent",
        "description": "Works on the task with every tool you allow.",
        "icon": "bot",
        "color": "#818cf8",
    },
    {
        "slug": "ask",
        "name": "Ask",
        "description": "Answers questions about the files, and changes nothing.",
        "system_prompt": (
            "Answer questions about the files of this folder. Read and search as much"
            " as you need; you have no tools to change anything."
        ),
        "tools": READ_ONLY,
        "icon": "message-square",
        "color": "#4ade80",
    },
    {
        "slug": "plan",
        "name": "Plan",
        "description": (
            "Writes a step-by-step plan; approved, it is carried out as Agent."
        ),
        "system_prompt": (
            "Study the files and write a numbered plan for the task: which files"
            " change, how, in which order, and how the result is checked. Write it to"
            " the plan file and hand it in. Do not carry it out before it is approved."
        ),
        "tools": PLANNING,
        "default_next_mode": "agent",
        "icon": "list-checks",
        "color": "#fbbf24",
    },
]


def seed_builtin_modes(**_: Any) -> None:
    """Add what is missing; runs after each migration and changes no existing mode."""
    for mode in MODES:
        Mode.objects.get_or_create(
            owner=None, slug=mode["slug"], defaults={**mode, "is_builtin": True}
        )
