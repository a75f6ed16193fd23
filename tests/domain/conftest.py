from __future__ import annotations

from typing import Any
from uuid import UUID

import pytest

from tests.dispatchers import ListingDispatcher


@pytest.fixture
def enqueued(settings: Any) -> list[UUID]:
    """The runs that the dispatcher was told of."""
    settings.DISPATCHER = "tests.dispatchers.ListingDispatcher"
    ListingDispatcher.enqueued.clear()
    return ListingDispatcher.enqueued
