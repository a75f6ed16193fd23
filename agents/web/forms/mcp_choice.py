"""Which MCP servers a session is not given; all the others are, later ones as well."""

from __future__ import annotations

from typing import Any

from django import forms

from agents.models import McpServer, User


class ServersOffField(forms.MultipleChoiceField):
    """Ticked servers are left out, so a form without it leaves out none."""

    def __init__(self, **kwargs: Any) -> None:
        kwargs = {
            "label": "Without these MCP servers",
            "required": False,
            "widget": forms.CheckboxSelectMultiple,
            **kwargs,
        }
        super().__init__(**kwargs)


def offer_servers(form: forms.Form, user: User) -> None:
    """The servers that this person's agents may use; no field without any."""
    field = form.fields["mcp_servers_off"]
    assert isinstance(field, ServersOffField)
    servers = McpServer.objects.visible_to(user).filter(is_enabled=True)
    field.choices = [(str(server.pk), server.name) for server in servers]
    if not field.choices:
        del form.fields["mcp_servers_off"]
