"""The built-in Plan mode hands its plan in; sessions that are in it may too."""

from __future__ import annotations

from typing import Any

from django.db import migrations

BEFORE = ["Read", "Glob", "Grep", "AskUserQuestion"]
AFTER = [*BEFORE, "ExitPlanMode"]


def change_plan_mode(apps: Any, before: list[str], after: list[str]) -> None:
    modes = apps.get_model("agents", "Mode").objects
    modes.filter(owner=None, slug="plan", tools=before).update(tools=after)
    sessions = apps.get_model("agents", "AgentSession").objects
    sessions.filter(mode="plan", allowed_tools=before).update(allowed_tools=after)


def forwards(apps: Any, schema_editor: Any) -> None:
    change_plan_mode(apps, BEFORE, AFTER)


def backwards(apps: Any, schema_editor: Any) -> None:
    change_plan_mode(apps, AFTER, BEFORE)


class Migration(migrations.Migration):
    dependencies = [("agents", "0007_tasks_and_memory")]

    operations = [migrations.RunPython(forwards, backwards)]
