"""Approvals: the inbox, decisions and answers to questions."""

from __future__ import annotations

from dataclasses import replace
from uuid import UUID

from django.contrib import messages as flash
from django.http import Http404, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.http import require_GET, require_POST

from agents.domain import approvals
from agents.domain.queries.approvals import ApprovalCard, load_card, load_inbox
from agents.errors import AlreadyDecidedError, NotAllowedError
from agents.models.approvals import ApprovalKind
from agents.web.forms.approvals import AnswerForm, DecisionForm
from agents.web.http import HtmxRequest, apply_form, came_from, respond, wants_fragment


@require_GET
def approval_list(request: HtmxRequest) -> HttpResponse:
    context = {"cards": load_inbox(request.user)}
    return render(request, "agents/approvals/list.html", context)


@require_POST
def approval_decide(request: HtmxRequest, approval_id: UUID) -> HttpResponse:
    card = _find(request, approval_id)
    return _decide(request, card, DecisionForm(request.POST))


@require_POST
def question_answer(request: HtmxRequest, approval_id: UUID) -> HttpResponse:
    card = _find(request, approval_id)
    if card.approval.kind != ApprovalKind.QUESTION:
        raise Http404
    return _decide(request, card, AnswerForm(request.POST, card=card))


def _decide(
    request: HtmxRequest, card: ApprovalCard, form: DecisionForm | AnswerForm
) -> HttpResponse:
    try:
        decided = apply_form(
            form,
            lambda: approvals.decide_approval(
                card.approval, request.user, form.to_decision()
            ),
        )
    except AlreadyDecidedError as error:
        return _show(request, _find(request, card.approval.pk), error.user_message, 409)
    if decided is None:
        draft = {name: request.POST.getlist(name) for name in request.POST}
        return _show(request, replace(card, draft=draft), _first_error(form), 422)
    card = _find(request, card.approval.pk)
    if wants_fragment(request):
        return _show(request, card, "", 200)
    flash.success(request, f"{card.outcome}.")
    session = reverse("session_detail", args=[card.approval.session_id])
    back = reverse("approval_list") if card.is_elsewhere else session
    return redirect(came_from(request, back))


def _find(request: HtmxRequest, approval_id: UUID) -> ApprovalCard:
    """Raises: Http404 to strangers, NotAllowedError to those who may only look."""
    card = load_card(approval_id, request.user)
    if card is None:
        raise Http404
    if not card.can_answer:
        raise NotAllowedError("You may look at this session, but not decide in it.")
    return card


def _show(
    request: HtmxRequest, card: ApprovalCard, error: str, status: int
) -> HttpResponse:
    context = {"card": replace(card, error=error), "in_inbox": _is_in_inbox(request)}
    return respond(
        request,
        "agents/approvals/show.html",
        "agents/approvals/_card.html",
        context,
        status=status,
    )


def _is_in_inbox(request: HtmxRequest) -> bool:
    return request.htmx.current_url_abs_path == reverse("approval_list")


def _first_error(form: DecisionForm | AnswerForm) -> str:
    return next(str(error) for errors in form.errors.values() for error in errors)
