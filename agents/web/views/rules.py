"""Standing rules: the list, a new one, and why a call may run or not."""

from __future__ import annotations

import json
from typing import Any
from uuid import UUID

from django.contrib import messages
from django.core.paginator import Paginator
from django.http import Http404, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.views.decorators.http import require_GET, require_http_methods, require_POST

from agents.domain import rules
from agents.domain.queries.approvals import load_card
from agents.domain.queries.explanation import (
    Picked,
    explain_call,
    pick_approval,
    pick_message,
)
from agents.domain.queries.rules import find_rules, load_rows
from agents.domain.replay import replay_for_card
from agents.errors import NotAllowedError
from agents.models import PermissionRule
from agents.web.forms.rules import CallForm, RuleFilterForm, RuleForm
from agents.web.http import HtmxRequest, apply_form, came_from, respond, submitted

PAGE_SIZE = 50


@require_GET
def rule_list(request: HtmxRequest) -> HttpResponse:
    form = RuleFilterForm(request.GET)
    found = find_rules(request.user, form.filters)
    pages = Paginator(found.select_related("owner", "created_from"), PAGE_SIZE)
    page = pages.get_page(request.GET.get("page"))
    context = {
        "form": form,
        "rows": load_rows(list(page), request.user),
        "page_obj": page,
        "is_filtered": any(form.cleaned_data.values()),
    }
    return render(request, "agents/rules/list.html", context)


@require_http_methods(["GET", "POST"])
def rule_new(request: HtmxRequest) -> HttpResponse:
    """Show what the rule would have done, then save what was shown."""
    if not request.user.may_start_agents:
        raise NotAllowedError("Viewers have no agents that a rule could be about.")
    form = RuleForm(submitted(request), user=request.user, initial=request.GET.dict())
    replay = apply_form(form, lambda: rules.replay_draft(form.draft, request.user))
    if replay is not None and "save" in request.POST and form.is_previewed:
        saved = apply_form(form, lambda: rules.save_rule(form.draft, request.user))
        if saved is not None:
            messages.success(request, f"The rule {saved.notation} is in force.")
            return redirect("rule_list")
    return render(
        request,
        "agents/rules/new.html",
        {"form": form, "replay": replay, "previewed": replay and form.fingerprint},
        status=422 if form.errors else 200,
    )


@require_POST
def rule_revoke(request: HtmxRequest, rule_id: UUID) -> HttpResponse:
    """To those who see a rule but may not end it, it is not theirs to end."""
    visible = PermissionRule.objects.visible_to(request.user).select_related("owner")
    rule = get_object_or_404(visible, pk=rule_id)
    mine = PermissionRule.objects.revocable_by(request.user)
    if not mine.filter(pk=rule.pk).exists():
        raise NotAllowedError("Only owners of the site revoke rules for everybody.")
    notation = rule.notation
    rules.revoke_rule(rule, request.user)
    messages.success(request, f"The rule {notation} is revoked.")
    return redirect(came_from(request, reverse("rule_list")))


@require_GET
def approval_rule(request: HtmxRequest, approval_id: UUID) -> HttpResponse:
    """What "Always allow" on this card would have allowed before."""
    card = load_card(approval_id, request.user)
    if card is None:
        raise Http404
    replay = replay_for_card(card.approval, request.user)
    return respond(
        request,
        "agents/rules/approval.html",
        "agents/rules/_replay.html",
        {
            "card": card,
            "replay": replay,
            "element_id": f"{card.element_id}-past",
        },
    )


@require_http_methods(["GET", "POST"])
def rule_explain(request: HtmxRequest) -> HttpResponse:
    """Of the call that was typed, or that `?message=` or `?approval=` names."""
    picked = None if request.method == "POST" else _picked(request)
    data = _as_data(picked) if picked else submitted(request)
    form = CallForm(data, user=request.user)
    explanation = apply_form(
        form,
        lambda: explain_call(form.cleaned_data["session"], form.call, request.user),
    )
    return render(
        request,
        "agents/rules/explain.html",
        {"form": form, "explanation": explanation, "is_past": picked is not None},
        status=422 if form.errors else 200,
    )


def _picked(request: HtmxRequest) -> Picked | None:
    """Raises: Http404 where the query names what the person may not see."""
    for name, pick in (("message", pick_message), ("approval", pick_approval)):
        if name in request.GET:
            picked = pick(request.user, _uuid(request.GET[name]))
            if picked is None:
                raise Http404
            return picked
    return None


def _uuid(text: str) -> UUID:
    try:
        return UUID(text)
    except ValueError:
        raise Http404 from None


def _as_data(picked: Picked) -> dict[str, Any]:
    return {
        "session": picked.session.pk,
        "tool": picked.tool_name,
        "tool_input": json.dumps(picked.tool_input, ensure_ascii=False, indent=2),
    }
