"""The order of the tests: what takes longest first, so that no process ends last alone.

The tests in Chromium stand together, since they share a server and a browser as long
as no other test comes between. `make test` runs pytest-xdist in this order.
"""

from __future__ import annotations

import pytest

SLOWEST_FIRST = ("e2e", "execution", "management", "api", "gateway", "mcp")


def _rank(item: pytest.Item) -> int:
    folder = item.path.parent.name
    return SLOWEST_FIRST.index(folder) if folder in SLOWEST_FIRST else 99


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    items.sort(key=_rank)
