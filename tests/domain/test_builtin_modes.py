from __future__ import annotations

import pytest
from django.db import IntegrityError, transaction

from agents.domain.builtin_modes import MODES, seed_builtin_modes
from agents.models import Mode, User
from agents.policy.tools import get_all_tool_names


def test_they_are_there_after_migrating_and_are_seeded_once(db: None) -> None:
    seed_builtin_modes()

    slugs = Mode.objects.filter(owner=None, is_builtin=True).values_list(
        "slug", flat=True
    )
    assert sorted(slugs) == sorted(mode["slug"] for mode in MODES)


def test_seeding_changes_no_existing_mode(db: None) -> None:
    Mode.objects.filter(slug="ask").update(name="Changed")

    seed_builtin_modes()

    assert Mode.objects.get(slug="ask").name == "Changed"


def test_their_tools_are_known() -> None:
    for mode in MODES:
        assert set(mode.get("tools", [])) <= set(get_all_tool_names())


def test_the_database_itself_keeps_their_names_apart(alice: User) -> None:
    with pytest.raises(IntegrityError), transaction.atomic():
        Mode.objects.create(owner=None, slug="ask", name="Again")
    Mode.objects.create(owner=alice, slug="ask", name="Hers")
    with pytest.raises(IntegrityError), transaction.atomic():
        Mode.objects.create(owner=alice, slug="ask", name="Again")
