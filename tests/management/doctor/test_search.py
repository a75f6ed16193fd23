"""The doctor says whether searches have their index."""

from __future__ import annotations

import pytest
from django.db import connection

from agents.domain.search import index
from agents.management.doctor.search import check_search

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def without_index():
    index.backend_of(connection).uninstall(connection)
    yield
    index.ensure_index()


def test_after_migrating_all_is_well():
    finding = check_search()

    assert (finding.level, finding.text) == ("ok", "indexed")


def test_without_its_index_it_says_what_to_do(without_index):
    finding = check_search()

    postgres = connection.vendor == "postgresql"
    assert finding.level == ("warning" if postgres else "failed")
    assert "manage.py migrate" in finding.text
