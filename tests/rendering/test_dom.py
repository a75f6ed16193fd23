"""DOM ids."""

from __future__ import annotations

import re
from uuid import UUID

from hypothesis import given
from hypothesis import strategies as st

from agents.rendering.dom import dom_id


def test_an_id_is_noun_id_and_part():
    session_id = UUID("00000000-0000-4000-8000-000000000001")

    assert dom_id("session", session_id) == f"session-{session_id}"
    assert dom_id("block", 7, "text") == "block-7-text"


@given(st.text(min_size=1))
def test_any_id_gives_a_usable_selector(object_id):
    assert re.fullmatch(r"tool-[A-Za-z0-9_-]+", dom_id("tool", object_id))


def test_different_ids_stay_different():
    assert dom_id("tool", "a.b") != dom_id("tool", "a:b")
