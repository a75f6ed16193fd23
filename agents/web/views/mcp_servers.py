"""MCP servers: the list, adding, changing, testing, and the policies of their tools."""

from __future__ import annotations

from uuid import UUID

from asgiref.sync import async_to_sync
from django.contrib import messages
from django.db import transaction
from django.db.models import Count, Q
from django.http import HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.views.decorators.cache import never_cache
from django.views.decorators.debug import sensitive_post_parameters
from django.views.decorators.http import require_GET, require_http_methods, require_POST

from agents.domain import mcp_servers
from agents.domain.mcp_discovery import record_report
from agents.domain.mcp_import import read_servers
from agents.errors import InvalidInputError, NotAllowedError
from agents.execution.tool_servers import check_server
from agents.models import McpServer, User
from agents.models.mcp_servers import McpStatus
from agents.web.forms.mcp_servers import (
    McpImportForm,
    McpServerForm,
    PoliciesForm,
    form_of,
)
from agents.web.http import HtmxRequest, apply_form, submitted


@require_GET
def mcp_server_list(request: HtmxRequest) -> HttpResponse:
    listed = Count("tools", filter=Q(tools__is_listed=True))
    found = McpServer.objects.visible_to(request.user).annotate(tool_count=listed)
    return render(
        request,
        "agents/mcp_servers/list.html",
        {"servers": found.select_related("owner")},
    )


@sensitive_post_parameters("environment", "headers", "url")
@never_cache
@require_http_methods(["GET", "POST"])
def mcp_server_new(request: HtmxRequest) -> HttpResponse:
    return _edit(request, McpServer())


@sensitive_post_parameters("environment", "headers", "url")
@never_cache
@require_http_methods(["GET", "POST"])
def mcp_server_edit(request: HtmxRequest, server_id: UUID) -> HttpResponse:
    return _edit(request, _editable(request, server_id))


def _editable(request: HtmxRequest, server_id: UUID) -> McpServer:
    mine = McpServer.objects.editable_by(request.user).select_related("owner")
    return get_object_or_404(mine, pk=server_id)


def _edit(request: HtmxRequest, server: McpServer) -> HttpResponse:
    is_new = server._state.adding
    form = McpServerForm(submitted(request), instance=server, user=request.user)
    saved = apply_form(form, lambda: _save(form, request.user))
    if saved is not None:
        messages.success(request, f"{saved.name} is saved. Test it to find its tools.")
        return redirect("mcp_server_detail", saved.pk)
    return render(
        request,
        "agents/mcp_servers/edit.html",
        {"form": form, "server": None if is_new else server},
        status=422 if form.is_bound else 200,
    )


def _save(form: McpServerForm, user: User) -> McpServer:
    if not user.may_start_agents:
        raise NotAllowedError("Viewers have no agents that could use a server.")
    return mcp_servers.save_server(form.server(), user, secrets=form.secrets)


@sensitive_post_parameters("json")
@never_cache
@require_http_methods(["GET", "POST"])
def mcp_server_import(request: HtmxRequest) -> HttpResponse:
    form = McpImportForm(submitted(request))
    added = apply_form(form, lambda: _add_all(form.cleaned_data["json"], request.user))
    if added is not None:
        names = ", ".join(server.name for server in added)
        messages.success(request, f"Added: {names}. Test them to find their tools.")
        return redirect("mcp_server_list")
    return render(
        request,
        "agents/mcp_servers/import.html",
        {"form": form},
        status=422 if form.is_bound else 200,
    )


@transaction.atomic
def _add_all(text: str, user: User) -> list[McpServer]:
    """All or none. Raises: InvalidInputError that names the server at fault."""
    added = []
    for draft in read_servers(text):
        form = form_of(draft, user)
        if not form.is_valid():
            fault = next(iter(form.errors.values()))[0]
            raise InvalidInputError(f"{draft.name}: {fault}", field="json")
        added.append(_save(form, user))
    return added


@require_GET
def mcp_server_detail(request: HtmxRequest, server_id: UUID) -> HttpResponse:
    visible = McpServer.objects.visible_to(request.user).select_related("owner")
    server = get_object_or_404(visible, pk=server_id)
    return _show(request, server, PoliciesForm(server=server))


def _show(
    request: HtmxRequest, server: McpServer, form: PoliciesForm, *, status: int = 200
) -> HttpResponse:
    may_edit = McpServer.objects.editable_by(request.user).filter(pk=server.pk)
    return render(
        request,
        "agents/mcp_servers/detail.html",
        {"server": server, "form": form, "may_edit": may_edit.exists()},
        status=status,
    )


@require_POST
def mcp_server_policies(request: HtmxRequest, server_id: UUID) -> HttpResponse:
    server = _editable(request, server_id)
    form = PoliciesForm(request.POST, server=server)
    saved = apply_form(form, lambda: _set_policies(server, form, request.user))
    if saved is None:
        return _show(request, server, form, status=422)
    messages.success(request, f"The policies of {server.name} are saved.")
    return redirect("mcp_server_detail", server.pk)


def _set_policies(server: McpServer, form: PoliciesForm, user: User) -> McpServer:
    mcp_servers.set_policies(server, form.policies, user)
    return server


@require_POST
def mcp_server_test(request: HtmxRequest, server_id: UUID) -> HttpResponse:
    """Connect anew and ask for the tools; connections that are there are given up."""
    server = _editable(request, server_id)
    mcp_servers.ask_anew(server)
    report = async_to_sync(check_server)(mcp_servers.spec_of(server))
    record_report(server.pk, server.generation, report)
    if report.status == McpStatus.CONNECTED:
        count = len(report.tools)
        tools = "1 tool" if count == 1 else f"{count} tools"
        messages.success(request, f"{server.name} works and has {tools}.")
    else:
        messages.error(request, f"{server.name}: {report.reason}")
    return redirect("mcp_server_detail", server.pk)


@require_POST
def mcp_server_delete(request: HtmxRequest, server_id: UUID) -> HttpResponse:
    server = _editable(request, server_id)
    mcp_servers.delete_server(server, request.user)
    messages.success(request, f"{server.name} is deleted.")
    return redirect("mcp_server_list")
