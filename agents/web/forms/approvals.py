"""A person's decision about a tool call, and their answers to questions."""

from __future__ import annotations

import json
from typing import Any

from django import forms

from agents.domain.approvals import Decision
from agents.domain.queries.approvals import ApprovalCard
from agents.models.approvals import ApprovalScope

from .fields import CleanTextField

CHOICES = [
    ("approve", "Approve"),
    ("deny", "Deny"),
    ("deny_stop", "Deny and stop"),
    ("session", "Approve for this session"),
    ("always", "Always allow"),
    ("edit", "Approve edited input"),
]
_SCOPES = {"session": ApprovalScope.SESSION, "always": ApprovalScope.ALWAYS}


class DecisionForm(forms.Form):
    decision = forms.ChoiceField(choices=CHOICES)
    message = CleanTextField(required=False, max_length=20_000)
    updated_input = CleanTextField(required=False, strip=False)
    channel = forms.ChoiceField(
        choices=[("page", "page"), ("inbox", "inbox")], required=False
    )

    def clean(self) -> dict[str, Any]:
        data = self.cleaned_data
        if data.get("decision") == "edit":
            data["updated_input"] = self._parse(data.get("updated_input", ""))
        return data

    def _parse(self, text: str) -> dict[str, Any] | None:
        try:
            value = json.loads(text)
        except (ValueError, RecursionError) as error:
            where = f" ({error})" if isinstance(error, json.JSONDecodeError) else ""
            self.add_error("updated_input", f"This is not valid JSON{where}.")
            return None
        if not isinstance(value, dict):
            self.add_error("updated_input", "The input must be a JSON object.")
            return None
        return value

    def to_decision(self) -> Decision:
        choice = self.cleaned_data["decision"]
        return Decision(
            is_approved=choice not in ("deny", "deny_stop"),
            message=self.cleaned_data["message"],
            updated_input=(
                self.cleaned_data["updated_input"] if choice == "edit" else None
            ),
            scope=_SCOPES.get(choice, ApprovalScope.ONCE),
            stops_run=choice == "deny_stop",
            channel=self.cleaned_data["channel"] or "page",
        )


class AnswerForm(forms.Form):
    """One answer per question: a choice, several, or the person's own words."""

    def __init__(self, *args: Any, card: ApprovalCard, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._card = card
        for question in card.questions:
            values = [(value, value) for value in _values(question.options)]
            self.fields[f"answer-{question.number}"] = forms.MultipleChoiceField(
                choices=values, required=False
            )
            self.fields[f"other-{question.number}"] = CleanTextField(
                required=False, max_length=10_000
            )

    def clean(self) -> dict[str, Any]:
        self.answers = {
            question.asked["key"]: self._answer(question.number)
            for question in self._card.questions
        }
        if not self.errors and not all(self.answers.values()):
            raise forms.ValidationError("Answer every question.")
        return self.cleaned_data

    def _answer(self, number: int) -> str:
        """Labels joined by commas, as the tool reads several; own words come last."""
        chosen = self.cleaned_data.get(f"answer-{number}", [])
        other = self.cleaned_data.get(f"other-{number}", "")
        is_multiple = self._card.questions[number].asked["multi_select"]
        if other and not is_multiple:
            chosen = []
        return ", ".join([*chosen, *filter(None, [other])])

    def to_decision(self) -> Decision:
        tool_input = self._card.approval.tool_input
        return Decision(
            is_approved=True, updated_input={**tool_input, "answers": self.answers}
        )


def _values(options: list[dict[str, Any]]) -> list[str]:
    return [option["value"] for option in options]
