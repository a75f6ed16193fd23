"""What can be added to a message: paths, tools, skills, pictures."""

from __future__ import annotations

from typing import Any

from django import forms
from django.core.exceptions import ValidationError

from agents.domain.attachments import MAX_IMAGES, Attached, chosen_skills
from agents.domain.permissions import OWN_SERVERS, usable_tools
from agents.errors import InvalidInputError
from agents.models import AgentSession, Skill, User
from agents.policy.tools import SKILL_TOOL, find_tool, get_all_tool_names
from agents.rendering.images import MAX_UPLOAD_BYTES, KeptImage, keep_image
from agents.rendering.text import clean_text

from .fields import CleanTextField

FIELDS = ("images", "path", "paths", "skills", "tools")
_MAX_NAME = 100


class _ManyFiles(forms.ClearableFileInput):
    allow_multiple_selected = True


class ImagesField(forms.FileField):
    """Several pictures; each is judged by its content and shrunk."""

    widget = _ManyFiles

    def clean(self, data: Any, initial: Any = None) -> tuple[KeptImage, ...]:
        files = data if isinstance(data, list | tuple) else [data]
        given = [file for file in files if file]
        if len(given) > MAX_IMAGES:
            raise ValidationError(f"A message takes {MAX_IMAGES} pictures.")
        return tuple(_keep(super(ImagesField, self).clean(file)) for file in given)


def _keep(file: Any) -> KeptImage:
    name = " ".join(clean_text(file.name or "picture").split())[-_MAX_NAME:]
    if (file.size or 0) > MAX_UPLOAD_BYTES:
        raise ValidationError(f"“{name}” is larger than {MAX_UPLOAD_BYTES >> 20} MB.")
    try:
        return keep_image(file.read(), name)
    except InvalidInputError as error:
        raise ValidationError(error.user_message) from error


class PathListField(forms.Field):
    """The paths that were ticked in the list of files."""

    widget = forms.MultipleHiddenInput

    def clean(self, value: Any) -> list[str]:
        return [clean_text(str(path)).strip() for path in value or () if path]


class AttachFields(forms.Form):
    """Mixed into the forms that send messages; `offer` says what there is."""

    images = ImagesField(
        label="Pictures",
        required=False,
        widget=_ManyFiles(
            attrs={"accept": "image/png,image/jpeg,image/gif,image/webp"}
        ),
        help_text="PNG, JPEG, GIF or WebP. Large ones are made smaller.",
    )
    path = PathListField(required=False)
    paths = CleanTextField(
        label="Files and folders",
        required=False,
        widget=forms.Textarea(attrs={"rows": 2, "spellcheck": "false"}),
        help_text="One path a line, from the agent’s folder on. Of a folder, its tree.",
    )
    skills = forms.MultipleChoiceField(
        required=False,
        widget=forms.CheckboxSelectMultiple,
        help_text="Or begin the message with /name.",
    )
    tools = forms.MultipleChoiceField(
        label="Tools to use",
        required=False,
        widget=forms.CheckboxSelectMultiple,
        help_text="The agent is told that you asked for them.",
    )

    def offer(self, user: User, session: AgentSession | None = None) -> None:
        """Fill in what this person can choose for this session, or for a new one."""
        self._user = user
        mine = Skill.objects.visible_to(user)
        _choose(self, "skills", [(skill.name, f"/{skill.name}") for skill in mine])
        if session is not None:
            names = sorted(usable_tools(session))
        else:
            useless = set() if mine else {SKILL_TOOL}
            all_names = get_all_tool_names(OWN_SERVERS)
            names = [name for name in all_names if name not in useless]
        _choose(self, "tools", [(name, _label(name)) for name in names])

    @property
    def has_attached_errors(self) -> bool:
        return any(name in self.errors for name in FIELDS)

    @property
    def chosen(self) -> Attached:
        data = self.cleaned_data
        typed = [line.strip() for line in (data["paths"] or "").splitlines()]
        paths = dict.fromkeys([*data["path"], *filter(None, typed)])
        return Attached(
            paths=tuple(paths),
            tools=tuple(data["tools"]),
            skills=chosen_skills(self._user, data["skills"]),
            images=data["images"],
        )


def _label(tool_name: str) -> str:
    spec = find_tool(tool_name)
    return f"{spec.name}: {spec.summary.lower()}" if spec else tool_name


def _choose(form: forms.Form, name: str, choices: list[tuple[str, str]]) -> None:
    field = form.fields[name]
    assert isinstance(field, forms.MultipleChoiceField)
    field.choices = choices
