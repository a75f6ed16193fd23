"""API tokens: a person's own, a new one, and revoking."""

from __future__ import annotations

from uuid import UUID

from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods, require_POST

from agents.domain import tokens
from agents.models import ApiToken
from agents.web.forms.tokens import TokenForm
from agents.web.http import HtmxRequest, absolute_url, apply_form, submitted


@never_cache
@require_http_methods(["GET", "POST"])
def token_list(request: HtmxRequest) -> HttpResponse:
    """The answer itself shows the new token: it is stored nowhere to be shown later."""
    form = TokenForm(submitted(request))
    token = apply_form(
        form, lambda: tokens.create_token(request.user, **form.cleaned_data)
    )
    return render(
        request,
        "agents/tokens/list.html",
        {
            "form": form if token is None else TokenForm(),
            "token": token,
            "tokens": ApiToken.objects.visible_to(request.user),
            "api_url": absolute_url(request, "/api/"),
        },
        status=422 if form.errors else 200,
    )


@require_POST
def token_revoke(request: HtmxRequest, token_id: UUID) -> HttpResponse:
    token = get_object_or_404(ApiToken.objects.visible_to(request.user), pk=token_id)
    tokens.revoke_token(token, request.user)
    messages.success(request, f"The token {token.name} is revoked.")
    return redirect("token_list")
