"""Skills: what a person's agents can look up, and `/name` attaches to a message."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from django.db import IntegrityError, transaction
from django.db.models import Sum

from agents.errors import InvalidInputError
from agents.models import Skill, SkillFile, User
from agents.rendering.text import clean_text
from agents.workspaces.skill_packages import (
    MAX_CONTENT_CHARACTERS,
    MAX_DESCRIPTION,
    SkillPackage,
    slug,
)

MAX_SKILLS = 100
MAX_TOTAL_BYTES = 20 * 1024 * 1024  # read at each start of an agent's process


@transaction.atomic
def save_skill(skill: Skill, *, removed: Iterable[str] = ()) -> Skill:
    """Store a skill that a person typed; its further files stay, but for `removed`.

    Raises: InvalidInputError naming the field.
    """
    skill.name = slug(skill.name)
    skill.description = " ".join(clean_text(skill.description).split())
    skill.content = clean_text(skill.content).replace("\r\n", "\n").strip()
    _check(skill)
    try:
        with transaction.atomic():
            skill.save()
    except IntegrityError as error:
        raise InvalidInputError(
            f"You have a skill “{skill.name}” already.", field="name"
        ) from error
    skill.files.filter(path__in=list(removed)).delete()
    return skill


def _check(skill: Skill) -> None:
    if not skill.name:
        raise InvalidInputError(
            "A name needs letters or digits, such as “code-review”.", field="name"
        )
    if not skill.content:
        raise InvalidInputError("Write what the skill says.", field="content")
    if len(skill.content) > MAX_CONTENT_CHARACTERS:
        raise InvalidInputError(
            f"A skill's text can have {MAX_CONTENT_CHARACTERS:,} characters.",
            field="content",
        )
    if not skill.description or len(skill.description) > MAX_DESCRIPTION:
        raise InvalidInputError(
            f"Say in at most {MAX_DESCRIPTION:,} characters when it is of use.",
            field="description",
        )
    others = Skill.objects.filter(owner=skill.owner).exclude(pk=skill.pk)
    if others.count() >= MAX_SKILLS:
        raise InvalidInputError(f"{MAX_SKILLS} skills are the most that one can have.")


@transaction.atomic
def add_package(owner: User, package: SkillPackage) -> tuple[Skill, bool]:
    """Store an uploaded skill; one of the same name is replaced, files and all.

    Returns: the skill, and whether it replaced one.
    Raises: InvalidInputError.
    """
    if not package.name:
        raise InvalidInputError(
            "The file says no name: put “name: …” into its frontmatter.", field="file"
        )
    old = Skill.objects.filter(owner=owner, name=package.name).first()
    skill = old or Skill(owner=owner, name=package.name)
    skill.description, skill.content = package.description, package.content
    save_skill(skill)
    skill.files.all().delete()
    others = SkillFile.objects.filter(skill__owner=owner)
    kept = others.aggregate(size=Sum("size_bytes"))["size"] or 0
    if kept + sum(map(len, package.files.values())) > MAX_TOTAL_BYTES:
        raise InvalidInputError(
            f"The files of all your skills can have {MAX_TOTAL_BYTES >> 20} MB.",
            field="file",
        )
    SkillFile.objects.bulk_create(
        SkillFile(skill=skill, path=path, data=data, size_bytes=len(data))
        for path, data in package.files.items()
    )
    return skill, old is not None


def delete_skill(skill: Skill) -> None:
    """Messages that it was attached to keep its text."""
    skill.delete()


def package_of(skill: Skill, *, with_files: bool = True) -> SkillPackage:
    package = SkillPackage(skill.name, skill.description, skill.content)
    if not with_files:
        return package
    files = {file.path: bytes(file.data) for file in skill.files.all()}
    return replace(package, files=files)


def packages_of(owner: User) -> list[SkillPackage]:
    """All that the person's agents are given, files included."""
    skills = Skill.objects.visible_to(owner).prefetch_related("files")
    return [package_of(skill) for skill in skills]


def has_skills(owner: User) -> bool:
    return Skill.objects.visible_to(owner).exists()
