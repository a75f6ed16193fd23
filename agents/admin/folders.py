"""Folders of the machine that agents may be given; the one place to list them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from django import forms
from django.contrib import admin
from django.core.exceptions import ValidationError
from django.db.models import QuerySet
from django.http import HttpRequest

from agents.conf import data_dir
from agents.domain import audit
from agents.models import ListedFolder

from .base import ModelAdmin, staff


class FolderForm(forms.ModelForm):  # type: ignore[type-arg]  # generic in the stubs only
    class Meta:
        model = ListedFolder
        fields = ["name", "path"]
        help_texts = {
            "path": "An absolute path. Everybody’s agents may then work in it."
        }

    def clean_path(self) -> str:
        path = Path(self.cleaned_data["path"].strip())
        if not path.is_absolute() or not path.is_dir():
            raise ValidationError("This is not the absolute path of a folder.")
        real, ours = path.resolve(), data_dir().resolve()
        if real.is_relative_to(ours) or ours.is_relative_to(real):
            # It holds the database, the keys and everybody's workspaces.
            raise ValidationError("This folder overlaps with the site’s own data.")
        return str(real)


@admin.register(ListedFolder)
class FolderAdmin(ModelAdmin):
    form = FolderForm
    list_display = ["name", "path", "added_by", "created_at"]
    list_select_related = ["added_by"]
    search_fields = ["name", "path"]

    def save_model(
        self, request: HttpRequest, obj: ListedFolder, form: Any, change: bool
    ) -> None:
        if not change:
            obj.added_by = staff(request)
        super().save_model(request, obj, form, change)
        audit.record(
            "folder.changed" if change else "folder.added",
            actor=staff(request),
            target=obj,
            path=obj.path,
        )

    def delete_queryset(
        self, request: HttpRequest, queryset: QuerySet[ListedFolder]
    ) -> None:
        for folder in queryset:
            self.delete_model(request, folder)

    def delete_model(self, request: HttpRequest, obj: ListedFolder) -> None:
        audit.record("folder.removed", actor=staff(request), target=obj, path=obj.path)
        super().delete_model(request, obj)
