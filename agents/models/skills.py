"""Skills: instructions with files that a person keeps for their agents."""

from __future__ import annotations

from django.db import models
from django.utils import timezone

from .fields import PublicIdModel
from .users import User


class SkillQuerySet(models.QuerySet["Skill"]):
    def visible_to(self, user: User) -> SkillQuerySet:
        return self.filter(owner=user)


class Skill(PublicIdModel):
    owner = models.ForeignKey(User, on_delete=models.CASCADE, related_name="skills")
    name = models.SlugField(max_length=64)
    """Its folder's name, and the command `/name` that attaches it."""
    description = models.CharField(max_length=1024)
    """When to use it; all that the model knows before it does."""
    content = models.TextField()
    """SKILL.md without its frontmatter."""
    created_at = models.DateTimeField(default=timezone.now, editable=False)
    updated_at = models.DateTimeField(auto_now=True)

    objects = SkillQuerySet.as_manager()

    class Meta:
        ordering = ["name"]
        constraints = [
            models.UniqueConstraint(
                fields=["owner", "name"], name="skill_name_unique_per_owner"
            )
        ]

    def __str__(self) -> str:
        return self.name


class SkillFile(models.Model):
    """A further file of a skill's folder, beside SKILL.md."""

    skill = models.ForeignKey(Skill, on_delete=models.CASCADE, related_name="files")
    path = models.CharField(max_length=300)
    data = models.BinaryField()
    size_bytes = models.PositiveIntegerField()

    class Meta:
        ordering = ["path"]
        constraints = [
            models.UniqueConstraint(
                fields=["skill", "path"], name="skill_file_path_unique"
            )
        ]

    def __str__(self) -> str:
        return self.path
