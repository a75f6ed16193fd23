"""The style guide: every component in every state, for whoever changes the CSS."""

from __future__ import annotations

from django.http import HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_GET

from agents.web.http import HtmxRequest, owner_required


@require_GET
@owner_required
def styleguide(request: HtmxRequest) -> HttpResponse:
    return render(request, "styleguide.html")
