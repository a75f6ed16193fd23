"""Where on a session's page a link leads."""

from __future__ import annotations

from uuid import UUID

from django import forms


class PlaceForm(forms.Form):
    """`?branch=` and `?message=`; what makes no sense counts as not given."""

    branch = forms.UUIDField(required=False)
    message = forms.UUIDField(required=False)

    @property
    def branch_id(self) -> UUID | None:
        return self._given("branch")

    @property
    def message_id(self) -> UUID | None:
        return self._given("message")

    def _given(self, name: str) -> UUID | None:
        self.full_clean()
        found: UUID | None = self.cleaned_data.get(name)
        return found
