"""The composer."""

from __future__ import annotations

import uuid
from typing import Any

from django import forms

from agents.domain.model_choice import get_session_model
from agents.domain.queries.models import load_session_models
from agents.models import AgentSession, Message, User

from .attachments import AttachFields
from .fields import CleanTextField
from .models import model_choices


class MessageForm(forms.Form):
    text = CleanTextField(
        label="Message", error_messages={"required": "Write a message first."}
    )
    # Sent twice (a double click, a lost answer), the same id makes one message.
    client_message_id = forms.UUIDField(required=False, initial=uuid.uuid4)


class ComposerForm(AttachFields, MessageForm):
    """A message with what a person adds to it, and a model for this one only."""

    # No choice field: the domain says best why a model can't be used.
    model = CleanTextField(required=False, max_length=200, widget=forms.Select)

    def __init__(
        self, *args: Any, user: User, session: AgentSession, **kwargs: Any
    ) -> None:
        super().__init__(*args, **{"auto_id": "composer-%s", **kwargs})
        self.offer(user, session)
        select = self.fields["model"].widget
        assert isinstance(select, forms.Select)
        select.choices = model_choices(
            load_session_models(session, user), empty=get_session_model(session)
        )


class EditForm(MessageForm):
    """Other words in place of an earlier message."""

    text = CleanTextField(
        label="Message",
        widget=forms.Textarea(attrs={"rows": 3}),
        error_messages={"required": "Write a message first."},
    )
    restore_files = forms.BooleanField(
        required=False, label="Also restore files as they were then"
    )


class QueuedForm(forms.Form):
    """A message that waits for the turn to end."""

    text = CleanTextField(
        label="Queued message", error_messages={"required": "Write a message first."}
    )

    def __init__(self, *args: Any, message: Message, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.message = message


class MoveForm(forms.Form):
    action = forms.ChoiceField(
        choices=[(name, name) for name in ("now", "up", "down", "remove")]
    )
