"""Preferences: how the site looks, and what a new agent starts with."""

from __future__ import annotations

from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_http_methods, require_POST

from agents.domain.accounts import preferences_of
from agents.domain.people import save_preferences
from agents.errors import InvalidInputError
from agents.web.forms.preferences import PreferencesForm, ThemeForm
from agents.web.http import HtmxRequest, apply_form, came_from, submitted


@require_http_methods(["GET", "POST"])
def preferences_edit(request: HtmxRequest) -> HttpResponse:
    preferences = preferences_of(request.user)
    form = PreferencesForm(submitted(request), instance=preferences)
    if apply_form(form, lambda: save_preferences(form.instance)):
        messages.success(request, "Your preferences are saved.")
        return redirect("preferences")
    return render(
        request,
        "agents/preferences/edit.html",
        {"form": form},
        status=422 if form.is_bound else 200,
    )


@require_POST
def theme_set(request: HtmxRequest) -> HttpResponse:
    """Store the theme; the script that has shown it already wants no page back."""
    form = ThemeForm(request.POST)
    if not form.is_valid():
        raise InvalidInputError("There is no theme of this name.", field="theme")
    preferences = preferences_of(request.user)
    preferences.theme = form.cleaned_data["theme"]
    preferences.save(update_fields=["theme"])
    if request.headers.get("Sec-Fetch-Dest") == "empty":
        return HttpResponse(status=204)
    return redirect(came_from(request, "/"))
