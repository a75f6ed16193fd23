"""MCP servers: by form, by pasted JSON, and the policies of their tools.

Secret values go in here and never come out again: a form shows them as dots, and dots
that come back keep what is stored.
"""

from __future__ import annotations

import re
import shlex
from pathlib import Path
from typing import Any

from django import forms
from django.core.exceptions import ValidationError

from agents.conf import data_dir
from agents.domain.mcp_import import Draft
from agents.domain.mcp_servers import choose_slug
from agents.domain.urls import check_server_url
from agents.errors import InvalidInputError
from agents.models import McpServer, McpTool, User
from agents.models.mcp_servers import McpPolicy, McpTransport
from agents.models.sessions import Network

from .fields import CleanTextField

DOTS = "••••••••"
_ENV_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_HEADER_NAME = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+")
_HEADER_VALUE = re.compile(r"[\x20-\x7e]+")
# The jail's own names, and those by which a loader runs other programs.
_KEPT_NAMES = re.compile(r"OPENSWARM_.*|LD_.*")


class McpServerForm(forms.ModelForm):  # type: ignore[type-arg]  # generic in the stubs only
    transport = forms.ChoiceField(
        choices=McpTransport.choices,
        initial=McpTransport.HTTP,
        widget=forms.RadioSelect,
        label="Kind",
    )
    command_line = CleanTextField(
        label="Command",
        required=False,
        max_length=4000,
        help_text="With its arguments, quoted as in a shell; no shell runs it.",
        widget=forms.TextInput(attrs={"spellcheck": "false"}),
    )
    environment = CleanTextField(
        label="Environment",
        required=False,
        max_length=20_000,
        help_text="NAME=value, one in a line. Values are stored encrypted.",
        widget=forms.Textarea(attrs={"rows": 3, "spellcheck": "false"}),
    )
    network = forms.BooleanField(
        label="Open network",
        required=False,
        help_text="It then reaches all that this machine reaches.",
    )
    folders = CleanTextField(
        label="Folders it may read",
        required=False,
        max_length=10_000,
        help_text="Full paths, one in a line. It sees /usr and a home of its own.",
        widget=forms.Textarea(attrs={"rows": 2, "spellcheck": "false"}),
    )
    url = CleanTextField(
        label="Address",
        required=False,
        max_length=2000,
        widget=forms.TextInput(attrs={"inputmode": "url", "spellcheck": "false"}),
    )
    headers = CleanTextField(
        label="Headers",
        required=False,
        max_length=20_000,
        help_text="Such as “Authorization: Bearer …”, one in a line. Values are stored"
        " encrypted.",
        widget=forms.Textarea(attrs={"rows": 3, "spellcheck": "false"}),
    )
    is_shared = forms.BooleanField(
        label="For everybody",
        required=False,
        help_text="Everybody’s agents may use it, with the credentials given here.",
    )

    class Meta:
        model = McpServer
        fields = ["name", "is_enabled"]
        labels = {"is_enabled": "Enabled"}
        help_texts = {"name": "Its tools are named after it, also after a change."}

    field_order = ["name", "transport"]

    def __init__(self, *args: Any, user: User, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.user = user
        self.is_new = self.instance._state.adding
        server: McpServer = self.instance
        if not self.is_new:
            self._show(server)
        self._require_of_kind()
        if not user.is_owner:
            for name in ("network", "folders", "is_shared"):
                del self.fields[name]

    def _require_of_kind(self) -> None:
        """Before a kind is chosen, each has its own; no browser insists on either."""
        self.use_required_attribute = False
        kind = self.data.get("transport")
        is_program = kind == McpTransport.STDIO
        for name, is_of_kind in (("command_line", is_program), ("url", not is_program)):
            field = self.fields[name]
            field.required = kind is None or is_of_kind
            field.error_messages["required"] = "This kind of server needs it."

    def _show(self, server: McpServer) -> None:
        shown = "environment" if server.is_program else "headers"
        between = "=" if server.is_program else ": "
        names = sorted(server.secret_values)
        command = [server.command, *server.arguments] if server.command else []
        self.initial = {
            **self.initial,
            "transport": server.transport,
            "command_line": shlex.join(command),
            "url": server.url,
            "network": server.network == Network.OPEN,
            "folders": "\n".join(server.folders),
            "is_shared": server.owner is None,
            shown: "\n".join(f"{name}{between}{DOTS}" for name in names),
        }

    def clean_command_line(self) -> list[str]:
        try:
            return shlex.split(self.cleaned_data["command_line"])
        except ValueError as error:
            raise ValidationError("A quotation mark is not closed.") from error

    def clean_environment(self) -> dict[str, str]:
        return self._pairs("environment", "=", is_program=True)

    def clean_headers(self) -> dict[str, str]:
        return self._pairs("headers", ":", is_program=False)

    def _pairs(self, field: str, between: str, *, is_program: bool) -> dict[str, str]:
        server: McpServer = self.instance
        kept = server.secret_values if server.is_program == is_program else {}
        pairs = {}
        for line in filter(str.strip, self.cleaned_data[field].splitlines()):
            name, found, value = (part.strip() for part in line.partition(between))
            if not found:
                raise ValidationError(f"A line has no “{between}”.")
            _check_pair(name, value, is_program=is_program)
            if value == DOTS and name not in kept:
                raise ValidationError(f"There is no stored value of {name} to keep.")
            pairs[name] = kept[name] if value == DOTS else value
        return pairs

    def clean_folders(self) -> list[str]:
        lines = self.cleaned_data["folders"].splitlines()
        return [_checked_folder(line.strip()) for line in lines if line.strip()]

    def clean_url(self) -> str:
        url: str = self.cleaned_data["url"].strip()
        if url and self.cleaned_data.get("transport") != McpTransport.STDIO:
            try:
                check_server_url(url, allow_private=self.user.is_owner)
            except InvalidInputError as error:
                raise ValidationError(error.user_message) from error
        return url

    def clean(self) -> dict[str, Any]:
        found = super().clean() or {}
        if self.is_new and found.get("name"):
            try:
                choose_slug(found["name"], self._owner())
            except InvalidInputError as error:
                self.add_error("name", error.user_message)
        return found

    def _owner(self) -> User | None:
        if self.is_new or "is_shared" in self.fields:
            return None if self.cleaned_data.get("is_shared") else self.user
        owner: User | None = self.instance.owner
        return owner

    @property
    def secrets(self) -> dict[str, str]:
        is_program = self.cleaned_data["transport"] == McpTransport.STDIO
        found: dict[str, str] = self.cleaned_data[
            "environment" if is_program else "headers"
        ]
        return found

    def server(self) -> McpServer:
        """The server as the valid form describes it, not stored yet.

        What belongs to another kind is dropped, and what only owners grant goes with
        whoever is none.
        """
        data = self.cleaned_data
        server: McpServer = self.instance
        server.transport = data["transport"]
        server.owner = self._owner()
        command = data["command_line"] if server.is_program else []
        server.command, server.arguments = (*command[:1], "")[0], command[1:]
        is_open = server.is_program and data.get("network", False)
        server.network = Network.OPEN if is_open else Network.NONE
        server.folders = data.get("folders", []) if server.is_program else []
        server.url = "" if server.is_program else data["url"]
        return server


def form_of(draft: Draft, user: User) -> McpServerForm:
    """The form as somebody would have filled it in."""
    between = "=" if draft.transport == McpTransport.STDIO else ": "
    pairs = "\n".join(
        f"{name}{between}{value}" for name, value in draft.secrets.items()
    )
    is_program = draft.transport == McpTransport.STDIO
    words = [draft.command, *draft.arguments] if draft.command else []
    return McpServerForm(
        {
            "name": draft.name,
            "transport": draft.transport.value,
            "command_line": shlex.join(words),
            "url": draft.url,
            "environment" if is_program else "headers": pairs,
            "is_enabled": draft.is_enabled,
        },
        instance=McpServer(),
        user=user,
    )


class McpImportForm(forms.Form):
    json = CleanTextField(
        label="JSON",
        max_length=200_000,
        help_text="As other programs use it: {“mcpServers”: {“name”: {…}}}.",
        widget=forms.Textarea(attrs={"rows": 12, "spellcheck": "false"}),
    )


class PoliciesForm(forms.Form):
    """One choice for each tool; `policy-<key>`."""

    def __init__(self, *args: Any, server: McpServer, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.tools: list[McpTool] = list(
            server.tools.filter(is_listed=True).select_related("server")
        )
        for tool in self.tools:
            self.fields[f"policy-{tool.pk}"] = forms.ChoiceField(
                choices=McpPolicy.choices,
                initial=tool.policy,
                label=f"Policy of {tool.name}",
                required=False,
            )

    @property
    def rows(self) -> list[tuple[McpTool, forms.BoundField]]:
        return [(tool, self[f"policy-{tool.pk}"]) for tool in self.tools]

    @property
    def policies(self) -> dict[int, str]:
        """Of the valid form; tools that it did not name stay as they are."""
        found = (
            (tool.pk, self.cleaned_data[f"policy-{tool.pk}"]) for tool in self.tools
        )
        return {key: policy for key, policy in found if policy}


def _check_pair(name: str, value: str, *, is_program: bool) -> None:
    pattern = _ENV_NAME if is_program else _HEADER_NAME
    if not pattern.fullmatch(name):
        raise ValidationError(f"“{name}” is not a usable name.")
    if is_program and _KEPT_NAMES.fullmatch(name):
        raise ValidationError(f"{name} can’t be set here.")
    if not is_program and value != DOTS and not _HEADER_VALUE.fullmatch(value):
        raise ValidationError(f"The value of {name} has letters that no header takes.")


def _checked_folder(text: str) -> str:
    path = Path(text)
    if not path.is_absolute() or not path.is_dir():
        raise ValidationError(f"{text} is not the full path of a folder.")
    real = path.resolve()
    if real.is_relative_to(data_dir()) or data_dir().is_relative_to(real):
        raise ValidationError(f"{text} holds this site’s own data.")
    return str(real)
