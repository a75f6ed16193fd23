"""MCP servers that people connected, and the tools that were found on them."""

from __future__ import annotations

import json
from typing import Any
from urllib.parse import urlsplit, urlunsplit

from django.db import models

from agents.policy.tools import ToolClass, ToolPolicy, classify_mcp_tool

from .fields import EncryptedTextField, PublicIdModel, one_of
from .sessions import Network
from .users import User


class McpTransport(models.TextChoices):
    STDIO = "stdio", "Program on this server (stdio)"
    HTTP = "http", "Address (streamable HTTP)"
    SSE = "sse", "Address (SSE, the older way)"


class McpStatus(models.TextChoices):
    UNTESTED = "untested", "Not tested"
    CONNECTED = "connected", "Works"
    ERROR = "error", "Broken"
    NEEDS_AUTH = "needs_auth", "Refused"


class McpPolicy(models.TextChoices):
    ALWAYS_ALLOW = ToolPolicy.ALWAYS_ALLOW.value, "Always allow"
    ASK = ToolPolicy.ASK.value, "Ask"
    DENY = ToolPolicy.DENY.value, "Deny"


class McpServerQuerySet(models.QuerySet["McpServer"]):
    def visible_to(self, user: User) -> McpServerQuerySet:
        """The person's own servers and those the owner shares with the site."""
        return self.filter(models.Q(owner=None) | models.Q(owner=user))

    def editable_by(self, user: User) -> McpServerQuerySet:
        if not user.may_start_agents:
            return self.none()
        own = models.Q(owner=user)
        return self.filter(own | models.Q(owner=None) if user.is_owner else own)


class McpServer(PublicIdModel):
    owner = models.ForeignKey(  # NULL: for the whole site
        User, null=True, blank=True, on_delete=models.CASCADE, related_name="+"
    )
    name = models.CharField(max_length=100)
    slug = models.SlugField(max_length=32)
    """Stands in the names of its tools, so a new name does not change it."""
    transport = models.CharField(max_length=5, choices=McpTransport.choices)
    command = models.CharField(max_length=1000, blank=True, default="")
    arguments = models.JSONField(default=list, blank=True)
    folders = models.JSONField(default=list, blank=True)
    """Real paths that its jail shows, read-only."""
    network = models.CharField(
        max_length=4, choices=Network.choices, default=Network.NONE
    )
    # Encrypted, since many a service puts its key into the address.
    url = EncryptedTextField(blank=True, default="")
    secrets = EncryptedTextField(blank=True, default="")
    """JSON of {name: value}: the program's environment, or the address's headers."""
    is_enabled = models.BooleanField(default=True)
    generation = models.PositiveIntegerField(default=0)
    """Goes up with each change and each "Retry": older connections are given up."""
    status = models.CharField(
        max_length=10, choices=McpStatus.choices, default=McpStatus.UNTESTED
    )
    reason = models.TextField(blank=True, default="")
    stderr_tail = models.TextField(blank=True, default="")
    checked_at = models.DateTimeField(null=True, blank=True)
    instructions = models.TextField(blank=True, default="")
    account_email = models.CharField(max_length=254, blank=True, default="")
    created_at = models.DateTimeField(auto_now_add=True)

    objects = McpServerQuerySet.as_manager()

    class Meta:
        ordering = ["name", "created_at"]
        constraints = [
            one_of("transport", McpTransport),
            one_of("status", McpStatus),
            one_of("network", Network),
            models.UniqueConstraint(
                fields=["owner", "slug"], name="mcp_slug_unique_per_owner"
            ),
            # NULL is distinct from NULL, so those for the site need their own.
            models.UniqueConstraint(
                fields=["slug"],
                condition=models.Q(owner=None),
                name="mcp_slug_unique_for_site",
            ),
        ]

    def __str__(self) -> str:
        return self.name

    @property
    def is_program(self) -> bool:
        return self.transport == McpTransport.STDIO

    @property
    def secret_values(self) -> dict[str, str]:
        """Empty where no key of this site decrypts them any longer."""
        found: dict[str, str] = json.loads(self.secrets or "{}")
        return found

    @property
    def shown_url(self) -> str:
        """Without what follows the path, where keys may stand."""
        parts = urlsplit(self.url)
        shown = urlunsplit((parts.scheme, parts.netloc, parts.path, "", ""))
        return f"{shown}?…" if parts.query else shown


class McpTool(models.Model):
    server = models.ForeignKey(
        McpServer, on_delete=models.CASCADE, related_name="tools"
    )
    name = models.CharField(max_length=200)
    offered_name = models.CharField(max_length=64)
    """The name with the letters that the model's API takes, unique on its server."""
    description = models.TextField(blank=True, default="")
    input_schema = models.JSONField(default=dict, blank=True)
    annotations = models.JSONField(default=dict, blank=True)
    policy = models.CharField(
        max_length=12, choices=McpPolicy.choices, default=McpPolicy.ASK
    )
    is_listed = models.BooleanField(default=True)
    """Whether the server had it when it was last asked; its policy is kept."""

    class Meta:
        ordering = ["name"]
        constraints = [
            one_of("policy", McpPolicy),
            models.UniqueConstraint(
                fields=["server", "name"], name="mcp_tool_unique_name"
            ),
            models.UniqueConstraint(
                fields=["server", "offered_name"], name="mcp_tool_unique_offered_name"
            ),
        ]

    def __str__(self) -> str:
        return self.name

    @property
    def full_name(self) -> str:
        """As the model, the rules and the cards know it; needs `server`."""
        return f"mcp__{self.server.slug}__{self.offered_name}"

    @property
    def tool_class(self) -> ToolClass:
        return classify_mcp_tool(self.annotations)

    @property
    def only_reads(self) -> bool:
        return self.tool_class is ToolClass.NETWORK

    @property
    def definition(self) -> tuple[str, Any, Any]:
        """What the server says of it; a change of it is a change of the tool."""
        return (self.description, self.input_schema, self.annotations)
