"""Providers: which upstreams there are, their keys, and whether they answer."""

from __future__ import annotations

from uuid import UUID

from asgiref.sync import async_to_sync
from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.views.decorators.cache import never_cache
from django.views.decorators.debug import sensitive_post_parameters
from django.views.decorators.http import require_GET, require_http_methods, require_POST

from agents.domain import providers
from agents.domain.queries.models import load_cards
from agents.gateway.probe import test_provider
from agents.gateway.upstreams import upstream_of
from agents.models import Provider
from agents.models.providers import ProviderKind
from agents.web.forms.providers import ProviderForm
from agents.web.http import HtmxRequest, apply_form, submitted


@require_GET
def provider_list(request: HtmxRequest) -> HttpResponse:
    found = (
        Provider.objects.visible_to(request.user)
        .exclude(kind=ProviderKind.DEMO)
        .select_related("owner")
        .order_by("-created_at")
    )
    return render(
        request,
        "agents/providers/list.html",
        {
            "cards": load_cards(found),
            "default": providers.default_provider(request.user),
        },
    )


@sensitive_post_parameters("api_key")
@never_cache
@require_http_methods(["GET", "POST"])
def provider_new(request: HtmxRequest) -> HttpResponse:
    return _edit(request, Provider(kind=ProviderKind.ANTHROPIC))


@sensitive_post_parameters("api_key")
@never_cache
@require_http_methods(["GET", "POST"])
def provider_edit(request: HtmxRequest, provider_id: UUID) -> HttpResponse:
    return _edit(request, _editable(request, provider_id))


def _editable(request: HtmxRequest, provider_id: UUID) -> Provider:
    mine = Provider.objects.editable_by(request.user).exclude(kind=ProviderKind.DEMO)
    return get_object_or_404(mine, pk=provider_id)


def _edit(request: HtmxRequest, provider: Provider) -> HttpResponse:
    form = ProviderForm(submitted(request), instance=provider, user=request.user)
    saved = apply_form(
        form, lambda: providers.save_provider(form.provider(), request.user)
    )
    if saved is not None:
        messages.success(request, f"{saved.name} is saved.")
        return redirect("provider_list")
    return render(
        request,
        "agents/providers/edit.html",
        {"form": form, "provider": None if form.is_new else provider},
        status=422 if form.is_bound else 200,
    )


@require_POST
def provider_delete(request: HtmxRequest, provider_id: UUID) -> HttpResponse:
    provider = _editable(request, provider_id)
    providers.delete_provider(provider, request.user)
    messages.success(request, f"{provider.name} is deleted.")
    return redirect("provider_list")


@require_POST
def provider_test(request: HtmxRequest, provider_id: UUID) -> HttpResponse:
    """Ask the upstream for its models, with the stored key."""
    provider = _editable(request, provider_id)
    result = async_to_sync(test_provider)(upstream_of(provider))
    error = "" if result.ok else result.message
    providers.record_test(provider, error=error, models=result.models)
    if not request.htmx:
        return redirect("provider_list")
    return render(
        request,
        "agents/providers/_provider.html",
        {
            "provider": provider,
            "models": load_cards([provider])[0].models,
            "default": providers.default_provider(request.user),
        },
    )
