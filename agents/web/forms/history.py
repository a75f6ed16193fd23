"""What the history is searched and filtered by, and the file that is imported."""

from __future__ import annotations

from datetime import date, datetime, time, timedelta
from decimal import Decimal
from typing import Any

from django import forms
from django.core.files.uploadedfile import UploadedFile
from django.utils import timezone

from agents.domain.history import HistoryFilters
from agents.domain.importing import MAX_FILE_BYTES
from agents.domain.modes import mode_choices
from agents.domain.search.matchers import MAX_QUERY_CHARACTERS
from agents.models import User
from agents.models.sessions import SessionKind, SessionStatus

from .fields import CleanTextField

_ANY = ("", "Any")


class HistoryForm(forms.Form):
    """Sent by GET, so that a search is an address. Everything may be left out."""

    q = CleanTextField(
        label="Search",
        required=False,
        max_length=MAX_QUERY_CHARACTERS,
        widget=forms.SearchInput(
            attrs={
                "placeholder": "Words from any message",
                "autocomplete": "off",
                "data-shortcut-focus": "/",
            }
        ),
    )
    mode = forms.ChoiceField(required=False)
    model = CleanTextField(required=False, max_length=200)
    status = forms.ChoiceField(required=False, choices=[_ANY, *SessionStatus.choices])
    kind = forms.ChoiceField(required=False, choices=[_ANY, *SessionKind.choices])
    closed = forms.ChoiceField(
        label="Open or closed",
        required=False,
        choices=[_ANY, ("no", "Open"), ("yes", "Closed")],
    )
    since = forms.DateField(
        label="From", required=False, widget=forms.DateInput(attrs={"type": "date"})
    )
    until = forms.DateField(
        label="To", required=False, widget=forms.DateInput(attrs={"type": "date"})
    )
    min_cost = forms.DecimalField(
        label="Cost from, US dollars",
        required=False,
        min_value=Decimal(0),
        max_value=Decimal(1_000_000),
        decimal_places=4,
    )
    max_cost = forms.DecimalField(
        label="Cost to, US dollars",
        required=False,
        min_value=Decimal(0),
        max_value=Decimal(1_000_000),
        decimal_places=4,
    )

    def __init__(self, *args: Any, user: User, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        mode = self.fields["mode"]
        assert isinstance(mode, forms.ChoiceField)
        mode.choices = [_ANY, *mode_choices(user)]

    @property
    def query(self) -> str:
        return str(self.cleaned_data.get("q") or "").strip()

    @property
    def is_filtered(self) -> bool:
        return any(
            value not in (None, "")
            for name, value in self.cleaned_data.items()
            if name != "q"
        )

    def to_filters(self) -> HistoryFilters:
        data = self.cleaned_data
        until = data["until"]
        return HistoryFilters(
            mode=data["mode"],
            model=data["model"].strip(),
            status=data["status"],
            kind=data["kind"],
            is_closed={"yes": True, "no": False}.get(data["closed"]),
            since=_midnight(data["since"]),
            before=_midnight(until, days_later=1),
            min_cost_usd_micros=_micros(data["min_cost"]),
            max_cost_usd_micros=_micros(data["max_cost"]),
        )


def _midnight(day: date | None, *, days_later: int = 0) -> datetime | None:
    """The day's beginning in the person's time zone."""
    if day is None or (days_later and day == date.max):
        return None
    start = datetime.combine(day + timedelta(days=days_later), time())
    return timezone.make_aware(start)


def _micros(dollars: Decimal | None) -> int | None:
    return None if dollars is None else int(dollars * 1_000_000)


class ImportForm(forms.Form):
    file = forms.FileField(
        label="Exported session",
        widget=forms.ClearableFileInput(attrs={"accept": ".json,application/json"}),
        error_messages={"empty": "The file is empty."},
    )

    def clean_file(self) -> UploadedFile[Any]:
        file: UploadedFile[Any] = self.cleaned_data["file"]
        if (file.size or 0) > MAX_FILE_BYTES:
            raise forms.ValidationError(
                f"The file is larger than {MAX_FILE_BYTES // 1024**2} MB."
            )
        return file
