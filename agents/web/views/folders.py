"""Listed folders: where agents may work besides workspaces of their own. For owners."""

from __future__ import annotations

from uuid import UUID

from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.views.decorators.http import require_http_methods, require_POST

from agents.domain import folders, workspaces
from agents.models import ListedFolder
from agents.web.forms.folders import FolderForm
from agents.web.http import HtmxRequest, apply_form, owner_required, submitted


@require_http_methods(["GET", "POST"])
@owner_required
def folder_list(request: HtmxRequest) -> HttpResponse:
    form = FolderForm(submitted(request))
    added = apply_form(form, lambda: folders.save_folder(form.instance, request.user))
    if added is not None:
        messages.success(request, f"Agents may now work in {added.name}.")
        return redirect("folder_list")
    listed = ListedFolder.objects.select_related("added_by")
    return render(
        request,
        "agents/folders/list.html",
        {
            "form": form,
            "folders": [
                (folder, workspaces.is_repository(folder)) for folder in listed
            ],
        },
        status=422 if form.is_bound else 200,
    )


@require_POST
@owner_required
def folder_remove(request: HtmxRequest, folder_id: UUID) -> HttpResponse:
    folder = get_object_or_404(ListedFolder, pk=folder_id)
    folders.remove_folder(folder, request.user)
    messages.success(request, f"{folder.name} is off the list. Its files are there.")
    return redirect("folder_list")
