"""The built-in modes: Agent, Ask and Plan."""

from __future__ import annotations

from django.db import migrations

READ_ONLY = ["Read", "Glob", "Grep", "AskUserQuestion"]
MODES = [
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
        "description": "Writes a step-by-step plan without carrying it out.",
        "system_prompt": (
            "Study the files and write a numbered plan for the task: which files"
            " change, how, in which order, and how the result is checked. Do not carry"
            " it out."
        ),
        "tools": READ_ONLY,
        "default_next_mode": "agent",
        "icon": "list-checks",
        "color": "#fbbf24",
    },
]


def create(apps, schema_editor):
    mode_model = apps.get_model("agents", "Mode")
    for mode in MODES:
        mode_model.objects.create(owner=None, is_builtin=True, **mode)


def remove(apps, schema_editor):
    apps.get_model("agents", "Mode").objects.filter(is_builtin=True).delete()


class Migration(migrations.Migration):
    dependencies = [("agents", "0001_initial")]
    operations = [migrations.RunPython(create, remove)]
