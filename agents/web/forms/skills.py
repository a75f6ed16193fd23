"""A person's skills: typed, or uploaded as SKILL.md or a ZIP of its folder."""

from __future__ import annotations

from typing import Any

from django import forms
from django.core.exceptions import ValidationError

from agents.errors import InvalidInputError
from agents.models import Skill
from agents.workspaces.skill_packages import (
    MAX_DESCRIPTION,
    MAX_PACKAGE_BYTES,
    SkillPackage,
    read_package,
)

from .fields import CleanTextField


class SkillForm(forms.Form):
    name = CleanTextField(
        max_length=64,
        widget=forms.TextInput(attrs={"spellcheck": "false"}),
        help_text="Small letters, digits and dashes: “/name” attaches the skill.",
    )
    description = CleanTextField(
        max_length=MAX_DESCRIPTION,
        help_text="When it is of use. All that the agent knows before it looks it up.",
    )
    content = CleanTextField(
        label="What it says",
        widget=forms.Textarea(attrs={"rows": 14}),
        help_text="Markdown. A frontmatter is not needed.",
    )
    removed = forms.MultipleChoiceField(
        label="Remove these files",
        required=False,
        widget=forms.CheckboxSelectMultiple,
    )

    def __init__(self, *args: Any, skill: Skill, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._skill = skill
        self.initial = {
            name: getattr(skill, name) for name in ("name", "description", "content")
        }
        removed = self.fields["removed"]
        assert isinstance(removed, forms.MultipleChoiceField)
        files = [] if skill._state.adding else list(skill.files.defer("data"))
        removed.choices = [
            (file.path, f"{file.path} ({file.size_bytes:,} bytes)") for file in files
        ]

    @property
    def has_files(self) -> bool:
        removed = self.fields["removed"]
        assert isinstance(removed, forms.MultipleChoiceField)
        return bool(removed.choices)

    def apply(self) -> Skill:
        """The skill with what was typed; not saved."""
        for name in ("name", "description", "content"):
            setattr(self._skill, name, self.cleaned_data[name])
        return self._skill


class SkillUploadForm(forms.Form):
    file = forms.FileField(
        label="SKILL.md, another .md file, or a .zip of a skill’s folder",
        widget=forms.ClearableFileInput(attrs={"accept": ".md,.zip,.markdown,.txt"}),
        error_messages={"empty": "The file is empty."},
    )

    def clean_file(self) -> SkillPackage:
        file = self.cleaned_data["file"]
        if (file.size or 0) > MAX_PACKAGE_BYTES:
            raise ValidationError(
                f"The file is larger than {MAX_PACKAGE_BYTES >> 20} MB."
            )
        try:
            return read_package(file.read(), file.name or "")
        except InvalidInputError as error:
            raise ValidationError(error.user_message) from error
