"""What a person says about standing rules, and calls to be explained."""

from __future__ import annotations

import json
from datetime import datetime, timedelta
from typing import Any

from django import forms
from django.core.exceptions import ValidationError
from django.utils import timezone

from agents.domain.modes import mode_choices
from agents.domain.permissions import OWN_SERVERS
from agents.domain.queries.rules import RuleFilters
from agents.domain.rules import Draft
from agents.models import AgentSession, User
from agents.models.rules import RuleEffect, RuleScope
from agents.models.sessions import AgentSessionQuerySet
from agents.policy.calls import ToolCall
from agents.policy.tools import get_all_tool_names
from agents.rendering.text import clean_json

from .fields import CleanTextField

OFFERED_SESSIONS = 100
_ANY = ("", "Any")
_EXPIRIES = {
    "": ("Never", None),
    "hour": ("In an hour", timedelta(hours=1)),
    "day": ("In a day", timedelta(days=1)),
    "week": ("In a week", timedelta(weeks=1)),
    "month": ("In 30 days", timedelta(days=30)),
}
_TOOL_INPUT = {"list": "tools", "autocomplete": "off", "spellcheck": "false"}


class RuleFilterForm(forms.Form):
    """Sent by GET. Everything may be left out."""

    q = CleanTextField(
        label="Tool or matcher",
        required=False,
        max_length=200,
        widget=forms.SearchInput,
    )
    effect = forms.ChoiceField(required=False, choices=[_ANY, *RuleEffect.choices])
    scope = forms.ChoiceField(required=False, choices=[_ANY, *RuleScope.choices])
    rule = forms.UUIDField(required=False, widget=forms.HiddenInput)

    @property
    def filters(self) -> RuleFilters:
        """What of the query makes sense; the rest is left out."""
        self.is_valid()
        given = self.cleaned_data
        return RuleFilters(
            text=given.get("q", "").strip(),
            effect=given.get("effect", ""),
            scope=given.get("scope", ""),
            rule_id=given.get("rule"),
        )


class RuleForm(forms.Form):
    effect = forms.ChoiceField(choices=RuleEffect.choices)
    tool = CleanTextField(
        max_length=200,
        widget=forms.TextInput(attrs=_TOOL_INPUT),
        help_text="Such as Bash or Write; mcp__server for a whole server; * for all.",
    )
    matcher = CleanTextField(
        required=False,
        max_length=1000,
        widget=forms.TextInput(attrs={"autocomplete": "off", "spellcheck": "false"}),
        help_text=(
            "Empty: every call. Bash: git status:* for any arguments, or one exact"
            " command. Files: src/**. fetch: domain:example.org."
        ),
    )
    scope = forms.ChoiceField(label="Holds for")
    session = forms.ModelChoiceField(
        AgentSession.objects.none(),
        required=False,
        empty_label="None",
        help_text="If it holds for one session.",
    )
    mode = forms.ChoiceField(required=False, help_text="If it holds for one mode.")
    expires = forms.ChoiceField(
        label="Ends",
        required=False,
        choices=[(key, label) for key, (label, _) in _EXPIRIES.items()],
    )
    previewed = forms.CharField(required=False, widget=forms.HiddenInput)
    """What was last shown with its past calls: only that can be saved."""

    def __init__(self, *args: Any, user: User, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        scopes = [
            choice
            for choice in RuleScope.choices
            if choice[0] != RuleScope.SITE or user.is_owner
        ]
        _choose(self, "scope", scopes)
        _choose(self, "mode", [("", "None"), *mode_choices(user)])
        sessions = AgentSession.objects.filter(owner=user)
        _offer(self, sessions, needed=self["session"].value())
        self.initial.setdefault("scope", RuleScope.USER)

    @property
    def tools(self) -> list[str]:
        return tool_choices()

    @property
    def draft(self) -> Draft:
        given = self.cleaned_data
        return Draft(
            effect=given["effect"],
            tool=given["tool"],
            matcher=given["matcher"],
            scope=given["scope"],
            session=given["session"],
            mode=given["mode"],
            expires_at=_expiry(given["expires"]),
        )

    @property
    def fingerprint(self) -> str:
        """All that the preview depends on."""
        names = ("effect", "tool", "matcher", "scope", "session", "mode")
        given = [str(self.cleaned_data.get(name) or "") for name in names[:4]]
        session = self.cleaned_data.get("session")
        return json.dumps(
            [*given, str(session.pk) if session else "", self.cleaned_data.get("mode")]
        )

    @property
    def is_previewed(self) -> bool:
        return bool(self.cleaned_data["previewed"] == self.fingerprint)


class CallForm(forms.Form):
    """A call to be explained."""

    session = forms.ModelChoiceField(AgentSession.objects.none(), empty_label=None)
    tool = CleanTextField(max_length=200, widget=forms.TextInput(attrs=_TOOL_INPUT))
    tool_input = CleanTextField(
        label="Input as JSON",
        initial='{"command": "git status"}',
        widget=forms.Textarea(attrs={"rows": 5, "spellcheck": "false"}),
    )
    is_planning = forms.BooleanField(
        label="The agent is planning",
        required=False,
        help_text="In the CLI’s plan mode nothing is changed or run.",
    )

    def __init__(self, *args: Any, user: User, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        visible = AgentSession.objects.visible_to(user)
        _offer(self, visible, needed=self["session"].value())

    @property
    def tools(self) -> list[str]:
        return tool_choices()

    def clean_tool_input(self) -> dict[str, Any]:
        try:
            value = json.loads(self.cleaned_data["tool_input"])
        except (ValueError, RecursionError) as error:
            raise ValidationError(f"This isn’t valid JSON: {error}") from error
        if not isinstance(value, dict):
            raise ValidationError("The input of a call is a JSON object: {…}")
        cleaned: dict[str, Any] = clean_json(value)
        return cleaned

    @property
    def call(self) -> ToolCall:
        given = self.cleaned_data
        mode = "plan" if given["is_planning"] else "default"
        return ToolCall(
            given["tool"].strip(), given["tool_input"], permission_mode=mode
        )


def tool_choices() -> list[str]:
    """What is suggested where a tool's name is typed."""
    return get_all_tool_names(OWN_SERVERS)


def _expiry(choice: str) -> datetime | None:
    span = _EXPIRIES[choice][1]
    return timezone.now() + span if span else None


def _offer(form: forms.Form, sessions: AgentSessionQuerySet, *, needed: Any) -> None:
    """The newest sessions, and the one that is chosen already."""
    own = sessions.filter(host_session=None)
    newest = own.recent_first().values_list("pk", flat=True)[:OFFERED_SESSIONS]
    ids = {str(pk) for pk in newest} | {str(getattr(needed, "pk", needed) or "")}
    field = form.fields["session"]
    assert isinstance(field, forms.ModelChoiceField)
    found = own.filter(pk__in=[pk for pk in ids if _is_uuid(pk)])
    field.queryset = found.recent_first()


def _is_uuid(text: str) -> bool:
    try:
        forms.UUIDField().clean(text)
    except ValidationError:
        return False
    return True


def _choose(form: forms.Form, name: str, choices: list[tuple[str, str]]) -> None:
    field = form.fields[name]
    assert isinstance(field, forms.ChoiceField)
    field.choices = choices
