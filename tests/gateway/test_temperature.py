"""A temperature is set on the way to the provider, where the CLI can't."""

from __future__ import annotations

import json

import pytest

from agents.gateway.bodies import with_temperature
from agents.gateway.upstreams import resolve_upstream
from agents.models import User
from tests import factories


def sent(**request: object) -> dict[str, object]:
    body = json.dumps({"model": "m", **request}).encode()
    changed: dict[str, object] = json.loads(with_temperature(body, 0.3))
    return changed


def test_without_one_the_body_stays_as_it_is() -> None:
    body = b'{ "model": "m" }'

    assert with_temperature(body, None) is body


def test_it_takes_the_place_of_thinking_which_providers_refuse_beside_it() -> None:
    edits = [{"type": "clear_thinking_20251015"}, {"type": "clear_tool_uses_20250919"}]

    assert sent(temperature=1, thinking={"type": "adaptive"}) == {
        "model": "m",
        "temperature": 0.3,
    }
    kept = sent(context_management={"edits": edits})
    assert kept["context_management"] == {"edits": edits[1:]}
    assert "context_management" not in sent(context_management={"edits": edits[:1]})


def test_what_is_no_request_passes() -> None:
    assert with_temperature(b"[1]", 0.3) == b"[1]"
    assert with_temperature(b"\xff", 0.3) == b"\xff"


@pytest.mark.django_db
def test_it_is_the_sessions(alice: User) -> None:
    warm = factories.make_session(alice, temperature=0.3)
    plain = factories.make_session(alice)

    assert resolve_upstream(warm).temperature == 0.3
    assert resolve_upstream(plain).temperature is None
