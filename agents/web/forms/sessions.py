"""What "New agent" asks, and what a person may change about a session."""

from __future__ import annotations

import uuid
from typing import Any

from django import forms

from agents.domain import workspaces
from agents.domain.accounts import preferences_of
from agents.domain.attachments import attachments_of
from agents.domain.modes import mode_choices
from agents.domain.queries.models import (
    load_models,
    load_session_models,
    session_model_label,
)
from agents.domain.sessions import LaunchConfig
from agents.domain.sharing import Sharing, sharing_in
from agents.models import AgentSession, ListedFolder, Provider, User
from agents.models.providers import ProviderKind
from agents.models.sessions import Network
from agents.models.users import Effort
from agents.policy.limits import MOST_STEPS
from agents.policy.modes import SecurityMode

from .attachments import FIELDS, AttachFields
from .fields import CleanTextField, DollarsField, RowField
from .mcp_choice import ServersOffField, offer_servers
from .models import ModelField, suggest_models
from .people import security_mode_choices
from .tasks import linked_task_field, linked_ticket_field, offer_links

AS_WORKTREE = ":worktree"
NETWORK_HELP = (
    "For the agent’s programs, from its next turn on. Its tool fetch is asked about"
    " like any other."
)


class NewAgentForm(AttachFields):
    """Everything but the task is folded away and starts from the preferences."""

    task = CleanTextField(
        label="Task",
        widget=forms.Textarea(
            attrs={
                "rows": 6,
                "autofocus": True,
                "placeholder": "What should the agent do?",
                "data-shortcut-focus": "/",
            }
        ),
        error_messages={"required": "Say what the agent should do."},
    )
    client_message_id = forms.UUIDField(
        required=False,
        initial=uuid.uuid4,
        widget=forms.HiddenInput(attrs={"data-fresh-id": True}),
    )
    name = CleanTextField(
        required=False, max_length=60, help_text="Empty: the beginning of the task."
    )
    mode = forms.ChoiceField()
    model = ModelField(help_text="Empty: your default. Short names such as opus work.")
    provider = RowField(
        queryset=Provider.objects.none(), required=False, empty_label="The default"
    )
    effort = forms.ChoiceField(choices=Effort.choices)
    security_mode = forms.ChoiceField(label="Security mode")
    network = forms.ChoiceField(choices=Network.choices, help_text=NETWORK_HELP)
    linked_task = linked_task_field()
    linked_ticket = linked_ticket_field()
    folder = forms.ChoiceField(
        required=False, help_text="Owners list more under Settings → Folders."
    )
    max_steps = forms.IntegerField(
        label="Step limit", required=False, min_value=1, max_value=MOST_STEPS
    )
    budget_usd = DollarsField(
        label="Budget in US dollars", help_text="Of the session with its children."
    )
    run_budget_usd = DollarsField(label="Budget of a turn", help_text="In US dollars.")
    mcp_servers_off = ServersOffField()
    system_prompt = CleanTextField(
        label="System prompt",
        required=False,
        widget=forms.Textarea(attrs={"rows": 3}),
        help_text="Added to what the agent is told.",
    )

    def __init__(self, *args: Any, user: User, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._user = user
        preferences = preferences_of(user)
        self._offer(user)
        self.offer(user)
        ceiling = SecurityMode(user.security_ceiling)
        wanted = SecurityMode(preferences.default_security_mode)
        self.initial = {
            "mode": preferences.default_mode,
            "effort": preferences.default_effort,
            "security_mode": wanted.capped_by(ceiling).value,
            "folder": preferences.default_folder_id,
            "network": Network.NONE,
            "run_budget_usd": preferences.run_budget_usd_micros,
            **self.initial,
        }

    def _offer(self, user: User) -> None:
        _choose(self, "mode", mode_choices(user))
        _choose(self, "security_mode", security_mode_choices(user.security_ceiling))
        _choose(self, "folder", _folders())
        offer_servers(self, user)
        suggest_models(self, "model", load_models(user))
        offer_links(self, user)
        provider = self.fields["provider"]
        assert isinstance(provider, forms.ModelChoiceField)
        usable = Provider.objects.visible_to(user).filter(is_enabled=True)
        provider.queryset = usable.exclude(kind=ProviderKind.DEMO)

    @property
    def shared_folders(self) -> list[tuple[ListedFolder, Sharing]]:
        """Folders on offer in which somebody works already, and who."""
        return sharing_in(ListedFolder.objects.all(), self._user)

    @property
    def has_folded_errors(self) -> bool:
        return bool(set(self.errors) - {"task", "__all__", *FIELDS})

    @property
    def has_links(self) -> bool:
        """Whether a task or a ticket is chosen already, so that one sees which."""
        return bool(self["linked_task"].value() or self["linked_ticket"].value())

    def to_config(self) -> LaunchConfig:
        data = {k: v for k, v in self.cleaned_data.items() if k not in FIELDS}
        folder_id, is_worktree, _ = data.pop("folder").partition(AS_WORKTREE)
        folder = ListedFolder.objects.get(pk=folder_id) if folder_id else None
        budget, run_budget = data.pop("budget_usd"), data.pop("run_budget_usd")
        return LaunchConfig(
            **data,
            folder=folder,
            worktree=bool(is_worktree),
            max_budget_usd_micros=budget,
            run_budget_usd_micros=run_budget,
            attachments=attachments_of(self.chosen),
        )


class SessionSettingsForm(forms.Form):
    mode = forms.ChoiceField()
    security_mode = forms.ChoiceField(label="Security mode")
    network = forms.ChoiceField(choices=Network.choices, help_text=NETWORK_HELP)
    model = ModelField()
    effort = forms.ChoiceField(choices=Effort.choices)
    max_steps = forms.IntegerField(
        label="Step limit",
        required=False,
        min_value=1,
        max_value=MOST_STEPS,
        help_text="Of each turn. Empty: as the effort says.",
    )
    max_budget_usd_micros = DollarsField(
        label="Budget in US dollars", help_text="Of the session with its children."
    )
    run_budget_usd_micros = DollarsField(
        label="Budget of a turn", help_text="In US dollars."
    )
    mcp_servers_off = ServersOffField()
    system_prompt = CleanTextField(
        label="System prompt",
        required=False,
        widget=forms.Textarea(attrs={"rows": 4}),
    )
    pinned = forms.BooleanField(required=False, label="Pin to the sidebar")

    def __init__(
        self, *args: Any, session: AgentSession, user: User, **kwargs: Any
    ) -> None:
        super().__init__(*args, **{"auto_id": "settings-%s", **kwargs})
        _choose(self, "mode", mode_choices(session.owner, kept=session.mode))
        _choose(self, "security_mode", _security_modes(session, user))
        offer_servers(self, session.owner)
        suggest_models(self, "model", load_session_models(session, user))
        chosen = session_model_label(session)
        self.fields["model"].help_text = f"Now {chosen}. Empty: the owner’s default."
        self.initial = {name: getattr(session, name) for name in self.fields}


class PinForm(forms.Form):
    pinned = forms.TypedChoiceField(
        choices=[("true", "Pin"), ("false", "Unpin")],
        coerce=lambda value: value == "true",
    )


class RenameForm(forms.Form):
    name = CleanTextField(max_length=200)


def _security_modes(session: AgentSession, user: User) -> list[tuple[str, str]]:
    """What both ceilings leave, and the mode that the session has anyway.

    A ceiling that was lowered caps the mode and doesn't change it: saving another
    setting must not either.
    """
    ceiling = SecurityMode(user.security_ceiling).capped_by(
        SecurityMode(session.owner.security_ceiling)
    )
    choices = security_mode_choices(ceiling)
    mode = SecurityMode(session.security_mode)
    if mode.rank > ceiling.rank:
        choices.append((mode.value, f"{mode.value.title()}, limited to {ceiling}"))
    return choices


def _folders() -> list[tuple[str, str]]:
    """A listed repository comes twice: as it is, and as a checkout of one's own."""
    choices = [("", "A fresh workspace")]
    for folder in ListedFolder.objects.all():
        choices.append((str(folder.pk), folder.name))
        if workspaces.is_repository(folder):
            label = f"{folder.name}, as a git worktree"
            choices.append((f"{folder.pk}{AS_WORKTREE}", label))
    return choices


def _choose(form: forms.Form, name: str, choices: list[tuple[str, str]]) -> None:
    field = form.fields[name]
    assert isinstance(field, forms.ChoiceField)
    field.choices = choices
