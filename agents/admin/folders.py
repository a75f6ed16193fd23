"""Folders of the machine that agents may be given, as under Settings → Folders."""

from __future__ import annotations

from typing import Any

from django import forms
from django.contrib import admin
from django.core.exceptions import ValidationError
from django.db.models import QuerySet
from django.http import HttpRequest

from agents.domain import folders
from agents.errors import InvalidInputError
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
        try:
            return folders.check_path(self.cleaned_data["path"])
        except InvalidInputError as error:
            raise ValidationError(error.user_message) from error


@admin.register(ListedFolder)
class FolderAdmin(ModelAdmin):
    form = FolderForm
    list_display = ["name", "path", "added_by", "created_at"]
    list_select_related = ["added_by"]
    search_fields = ["name", "path"]

    def save_model(
        self, request: HttpRequest, obj: ListedFolder, form: Any, change: bool
    ) -> None:
        folders.save_folder(obj, staff(request))

    def delete_queryset(
        self, request: HttpRequest, queryset: QuerySet[ListedFolder]
    ) -> None:
        for folder in queryset:
            self.delete_model(request, folder)

    def delete_model(self, request: HttpRequest, obj: ListedFolder) -> None:
        folders.remove_folder(obj, staff(request))
