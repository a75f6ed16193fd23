"""Skills of a person: saved, replaced, refused with a sentence."""

from __future__ import annotations

import pytest

from agents.domain import skills
from agents.errors import InvalidInputError
from agents.models import Skill, SkillFile, User
from agents.workspaces.skill_packages import SkillPackage

PACKAGE = SkillPackage("review", "When wanted", "Look twice.", {"a.txt": b"\x00x"})


def typed(owner: User, **fields: str) -> Skill:
    values = {"name": "Plan It", "description": " a  b ", "content": " x\r\ny "}
    return Skill(owner=owner, **{**values, **fields})


def test_what_is_typed_is_cleaned(alice: User) -> None:
    skill = skills.save_skill(typed(alice))

    skill.refresh_from_db()
    assert (skill.name, skill.description) == ("plan-it", "a b")
    assert skill.content == "x\ny"


@pytest.mark.parametrize(
    ("fields", "field"),
    [
        ({"name": "!!"}, "name"),
        ({"description": "x" * 1025}, "description"),
        ({"description": " "}, "description"),
        ({"content": "x" * 200_001}, "content"),
        ({"content": " "}, "content"),
    ],
)
def test_what_cant_be_a_skill_is_refused(
    alice: User, fields: dict[str, str], field: str
) -> None:
    with pytest.raises(InvalidInputError) as caught:
        skills.save_skill(typed(alice, **fields))

    assert caught.value.field == field


def test_a_name_is_there_once_for_each_person(alice: User, bob: User) -> None:
    skills.save_skill(typed(alice))
    skills.save_skill(typed(bob))

    with pytest.raises(InvalidInputError, match="already"):
        skills.save_skill(typed(alice))


def test_an_upload_replaces_the_skill_of_its_name(alice: User) -> None:
    first, was_there = skills.add_package(alice, PACKAGE)
    assert not was_there
    second, was_there = skills.add_package(
        alice, SkillPackage("review", "Now", "Look thrice.")
    )

    assert was_there
    assert second.pk == first.pk
    assert not SkillFile.objects.exists()
    assert skills.packages_of(alice) == [SkillPackage("review", "Now", "Look thrice.")]


def test_files_come_along_and_are_taken_out(alice: User) -> None:
    skill, _ = skills.add_package(alice, PACKAGE)
    assert skills.package_of(skill) == PACKAGE

    skills.save_skill(skill, removed=["a.txt", "gone"])

    assert skills.package_of(skill).files == {}


def test_the_files_of_all_skills_may_only_be_so_large(
    alice: User, bob: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(skills, "MAX_TOTAL_BYTES", 1 << 20)
    half = {"a": bytes(600_000)}
    skills.add_package(alice, SkillPackage("one", "x", "x", half))
    skills.add_package(bob, SkillPackage("two", "x", "x", half))

    with pytest.raises(InvalidInputError, match="can have 1 MB"):
        skills.add_package(alice, SkillPackage("two", "x", "x", half))
    assert [skill.name for skill in alice.skills.all()] == ["one"]
    skills.add_package(alice, SkillPackage("one", "x", "x", half))


def test_an_upload_needs_a_name(alice: User) -> None:
    with pytest.raises(InvalidInputError, match="says no name"):
        skills.add_package(alice, SkillPackage("", "x", "x"))


def test_there_may_be_only_so_many(
    alice: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(skills, "MAX_SKILLS", 1)
    skill, _ = skills.add_package(alice, PACKAGE)

    with pytest.raises(InvalidInputError, match="the most"):
        skills.save_skill(typed(alice))
    skills.save_skill(skill)
