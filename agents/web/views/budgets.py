"""Budgets: what the site and its people may spend, and have spent."""

from __future__ import annotations

from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_GET, require_POST

from agents.domain import people
from agents.domain.queries.budgets import (
    find_budget,
    load_account,
    load_people_budgets,
)
from agents.web.forms.budgets import BudgetForm
from agents.web.http import HtmxRequest, apply_form, owner_required


@require_GET
def budget_list(request: HtmxRequest) -> HttpResponse:
    return _show(request, BudgetForm(budget=find_budget(None)))


@require_POST
@owner_required
def site_budget(request: HtmxRequest) -> HttpResponse:
    form = BudgetForm(request.POST, budget=find_budget(None))
    apply_form(form, lambda: people.save_budget(form.to_choice(), request.user))
    if not form.is_valid():
        return _show(request, form)
    messages.success(request, "The budget of the site is saved.")
    return redirect("budget_list")


def _show(request: HtmxRequest, form: BudgetForm) -> HttpResponse:
    """Everybody sees what binds them; owners see all, and change it."""
    is_owner = request.user.is_owner
    context = {
        "form": form,
        "own": load_account(request.user),
        "site": load_account(None),
        "people": load_people_budgets() if is_owner else [],
    }
    status = 422 if form.errors else 200
    return render(request, "agents/budgets/list.html", context, status=status)
