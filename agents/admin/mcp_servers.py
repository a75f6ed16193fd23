"""MCP servers, without their credentials; they are edited on the pages."""

from __future__ import annotations

from django.contrib import admin

from agents.models import McpServer, McpTool

from .base import ReadOnlyAdmin, ReadOnlyMixin, TabularInline


class McpToolInline(ReadOnlyMixin, TabularInline):
    model = McpTool
    fields = ["name", "policy", "only_reads", "is_listed", "description"]
    readonly_fields = ["only_reads"]
    extra = 0

    @admin.display(boolean=True)
    def only_reads(self, tool: McpTool) -> bool:
        return tool.only_reads


@admin.register(McpServer)
class McpServerAdmin(ReadOnlyAdmin):
    list_display = ["name", "transport", "owner", "status", "is_enabled", "checked_at"]
    list_filter = ["transport", "status", "is_enabled"]
    list_select_related = ["owner"]
    search_fields = ["name", "slug", "owner__username", "command"]
    # Named one by one, so that no later column shows a secret by default.
    fields = [
        "name",
        "slug",
        "owner",
        "transport",
        "command",
        "folders",
        "network",
        "address",
        "credentials",
        "is_enabled",
        "status",
        "reason",
        "stderr_tail",
        "checked_at",
        "account_email",
        "created_at",
    ]
    readonly_fields = ["address", "credentials"]
    inlines = [McpToolInline]

    @admin.display
    def address(self, server: McpServer) -> str:
        return server.shown_url

    @admin.display(boolean=True)
    def credentials(self, server: McpServer) -> bool:
        return bool(server.secrets)
