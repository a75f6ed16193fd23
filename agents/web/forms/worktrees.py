"""Giving up a worktree."""

from __future__ import annotations

from typing import Any

from django import forms

from agents.workspaces.worktrees import WorktreeStatus


class DiscardForm(forms.Form):
    """Brings back what the person was shown, so that nothing else is lost."""

    seen = forms.CharField(widget=forms.HiddenInput)

    def __init__(self, *args: Any, status: WorktreeStatus, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._now = f"{status.commits}.{status.unmerged}.{status.files_changed}"
        self.initial = {"seen": self._now}

    def clean_seen(self) -> str:
        seen: str = self.cleaned_data["seen"]
        if seen != self._now:
            # What is drawn again must carry what is shown now.
            self.data = {**self.data, "seen": self._now}
            raise forms.ValidationError("It has changed since. Look again.")
        return seen
