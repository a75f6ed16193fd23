"""People: who has an account, what they may do, and invites. For owners."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_GET, require_http_methods, require_POST

from agents.domain import accounts, people
from agents.domain.queries.budgets import find_budget, load_account
from agents.models import AuditEntry, Invite, User
from agents.web.forms.budgets import BudgetForm
from agents.web.forms.people import InviteForm, PersonForm
from agents.web.http import (
    HtmxRequest,
    absolute_url,
    apply_form,
    owner_required,
    respond,
    submitted,
)

AUDIT_ENTRIES = 50


@require_GET
@owner_required
def people_list(request: HtmxRequest) -> HttpResponse:
    return render(request, "agents/people/list.html", _page(InviteForm()))


def _page(form: InviteForm) -> dict[str, Any]:
    return {
        "people": User.objects.order_by("-is_active", "username"),
        "entries": AuditEntry.objects.select_related("actor")[:AUDIT_ENTRIES],
        **_invites(form),
    }


def _invites(form: InviteForm) -> dict[str, Any]:
    # The setup link is an invite that nobody sent.
    sent = Invite.objects.open().exclude(created_by=None)
    return {"form": form, "invites": sent.select_related("created_by")}


@never_cache
@require_POST
@owner_required
def invite_create(request: HtmxRequest) -> HttpResponse:
    """The answer itself shows the new link: it is stored nowhere to be shown later."""
    form = InviteForm(request.POST)
    token = apply_form(
        form,
        lambda: accounts.create_invite(request.user, role=form.cleaned_data["role"]),
    )
    context = _page(form)
    if token is not None:
        path = reverse("invite_accept", args=[token])
        context["link"] = absolute_url(request, path)
    return respond(
        request,
        "agents/people/list.html",
        "agents/people/list.html#invites",
        context,
        status=200 if token else 422,
    )


@require_POST
@owner_required
def invite_revoke(request: HtmxRequest, invite_id: UUID) -> HttpResponse:
    open_invites = Invite.objects.open().exclude(created_by=None)
    people.revoke_invite(get_object_or_404(open_invites, pk=invite_id), request.user)
    if not request.htmx:
        return redirect("people_list")
    return render(request, "agents/people/list.html#invites", _invites(InviteForm()))


@require_http_methods(["GET", "POST"])
@owner_required
def person_edit(request: HtmxRequest, user_id: UUID) -> HttpResponse:
    person = get_object_or_404(User, pk=user_id)
    form = PersonForm(submitted(request), instance=person)
    budget = BudgetForm(submitted(request), budget=find_budget(person))
    saved = None
    if budget.is_valid():
        saved = apply_form(
            form,
            lambda: people.save_person(
                form.instance, request.user, budget=budget.to_choice()
            ),
        )
    if saved is not None:
        messages.success(request, f"{person.username} is saved.")
        return redirect("people_list")
    return render(
        request,
        "agents/people/edit.html",
        {
            "form": form,
            "budget": budget,
            "account": load_account(person),
            "person": person,
            "is_me": person == request.user,
        },
        status=422 if form.is_bound else 200,
    )
