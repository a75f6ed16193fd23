from __future__ import annotations

import pytest

from agents.domain.memory import change_memory, find_memories, save_memory
from agents.errors import InvalidInputError
from agents.models import Memory

pytestmark = pytest.mark.django_db


def test_a_fact_is_kept_on_one_line_with_its_source(alice, session):
    fact = save_memory(alice, "  Likes\n heather\x00", source_session=session)

    assert (fact.text, fact.source_session) == ("Likes heather\ufffd", session)


def test_the_same_fact_is_kept_once_and_made_new(alice):
    old = save_memory(alice, "Likes heather")
    save_memory(alice, "Likes thyme")

    again = save_memory(alice, "Likes  heather")

    assert again.pk == old.pk
    assert [fact.text for fact in find_memories(alice)] == [
        "Likes heather",
        "Likes thyme",
    ]


@pytest.mark.parametrize("text", ["", " \u200b ", "x" * 501])
def test_nothing_and_too_much_are_refused(alice, text):
    with pytest.raises(InvalidInputError) as refused:
        save_memory(alice, text)

    assert refused.value.field == "text"
    assert not Memory.objects.exists()


def test_there_are_only_so_many_facts(alice, bob, override_conf):
    override_conf(memory_facts=1)
    save_memory(alice, "one")
    save_memory(bob, "of bob")

    with pytest.raises(InvalidInputError, match="1 facts are kept already"):
        save_memory(alice, "two")


def test_a_search_finds_facts_with_all_its_words(alice, bob):
    save_memory(alice, "Bees like heather")
    save_memory(alice, "Bees like thyme")
    save_memory(bob, "heather bees")

    found = find_memories(alice, "HEATHER bees")

    assert [fact.text for fact in found] == ["Bees like heather"]


def test_a_change_does_not_make_two_of_one(alice):
    save_memory(alice, "one")
    two = save_memory(alice, "two")

    with pytest.raises(InvalidInputError, match="kept already"):
        change_memory(two, "one")
    change_memory(two, "three")

    two.refresh_from_db()
    assert two.text == "three"
