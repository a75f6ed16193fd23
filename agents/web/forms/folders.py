"""What an owner opens to agents: a name for the lists, and where it is."""

from __future__ import annotations

from django import forms
from django.core.exceptions import ValidationError

from agents.domain.folders import check_path
from agents.errors import InvalidInputError
from agents.models import ListedFolder


class FolderForm(forms.ModelForm):  # type: ignore[type-arg]  # generic in the stubs only
    class Meta:
        model = ListedFolder
        fields = ["name", "path"]
        help_texts = {
            "name": "People choose the folder by this name.",
            "path": "An absolute path on the server, such as /home/you/project.",
        }
        widgets = {
            "path": forms.TextInput(
                attrs={"spellcheck": "false", "autocapitalize": "off"}
            )
        }

    def clean_path(self) -> str:
        try:
            return check_path(self.cleaned_data["path"])
        except InvalidInputError as error:
            raise ValidationError(error.user_message) from error
