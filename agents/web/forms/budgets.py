"""What a person, or the whole site, may spend."""

from __future__ import annotations

from typing import Any

from django import forms

from agents.domain.people import BudgetChoice
from agents.models import Budget
from agents.models.budgets import BudgetPeriod

from .fields import DollarsField


class BudgetForm(forms.Form):
    limit = DollarsField(
        label="Budget in US dollars", help_text="Empty: as much as it takes."
    )
    period = forms.ChoiceField(
        label="Counted",
        choices=BudgetPeriod.choices,
        initial=BudgetPeriod.MONTH,
        required=False,
    )

    def __init__(self, *args: Any, budget: Budget | None, **kwargs: Any) -> None:
        super().__init__(*args, **{"prefix": "budget", **kwargs})
        if budget is not None and budget.limit_usd_micros is not None:
            self.initial = {
                "limit": budget.limit_usd_micros,
                "period": budget.period,
            }

    def to_choice(self) -> BudgetChoice:
        data = self.cleaned_data
        return BudgetChoice(data["limit"], data["period"] or BudgetPeriod.MONTH)
