"""Sessions, each with its runs, approvals and branches."""

from __future__ import annotations

from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest
from django.utils.html import format_html
from django.utils.safestring import SafeString

from agents.domain import audit
from agents.domain.runs import stop_agent
from agents.domain.sessions import close_session
from agents.models import (
    AgentSession,
    ApprovalRequest,
    CostEntry,
    Message,
    MessageBranch,
    Run,
    SessionEvent,
    TranscriptEntry,
)
from agents.rendering.figures import usd

from .base import (
    ReadOnlyAdmin,
    ReadOnlyMixin,
    TabularInline,
    list_link,
    pretty_json,
    pretty_text,
    staff,
)


class RunInline(ReadOnlyMixin, TabularInline):
    model = Run
    fields = [
        "state",
        "kind",
        "stop_reason",
        "steps",
        "cost",
        "model_actual",
        "jailed",
        "error_class",
        "created_at",
        "finished_at",
    ]
    readonly_fields = ["cost", "created_at"]
    show_change_link = True

    @admin.display(description="cost")
    def cost(self, run: Run) -> str:
        return usd(run.cost_usd_micros)


class ApprovalInline(ReadOnlyMixin, TabularInline):
    model = ApprovalRequest
    fields = ["tool_name", "kind", "status", "who", "channel", "created_at"]
    readonly_fields = ["who", "created_at"]
    show_change_link = True

    def get_queryset(self, request: HttpRequest) -> QuerySet[ApprovalRequest]:
        return super().get_queryset(request).select_related("decided_by")

    @admin.display(description="decided by")
    def who(self, approval: ApprovalRequest) -> str:
        return str(approval.decided_by or "")


class BranchInline(ReadOnlyMixin, TabularInline):
    model = MessageBranch
    verbose_name = "branch"
    verbose_name_plural = "branches"
    fields = ["id", "parent", "sdk_session_id", "sdk_resume_uuid", "created_at"]
    readonly_fields = ["id", "parent", "created_at"]

    @admin.display(description="forked from")
    def parent(self, branch: MessageBranch) -> str:
        return str(branch.parent_branch_id or "")


@admin.register(AgentSession)
class SessionAdmin(ReadOnlyAdmin):
    is_private = True
    list_display = [
        "name",
        "owner",
        "status",
        "mode",
        "security_mode",
        "cost",
        "message_count",
        "updated_at",
    ]
    list_filter = ["status", "kind", "security_mode", "network", "created_at"]
    list_select_related = ["owner"]
    search_fields = ["id", "name", "owner__username"]
    search_help_text = "Id, name or owner"
    ordering = ["-updated_at"]
    actions = ["stop", "close"]
    inlines = [RunInline, ApprovalInline, BranchInline]
    fieldsets = [
        (None, {"fields": ["id", "name", "owner", "status", "kind", "more"]}),
        (
            "What it may do",
            {
                "fields": [
                    "mode",
                    "security_mode",
                    "network",
                    "cwd",
                    "on_timeout",
                    "tools",
                ]
            },
        ),
        (
            "Model",
            {
                "fields": [
                    "model",
                    "provider",
                    "effort",
                    "max_steps",
                    "budget",
                    "run_budget",
                    "prompt",
                ]
            },
        ),
        (
            "So far",
            {
                "fields": [
                    "cost",
                    "message_count",
                    "input_tokens",
                    "output_tokens",
                    "created_at",
                    "updated_at",
                    "closed_at",
                ]
            },
        ),
    ]
    readonly_fields = ["id", "more", "tools", "prompt", "cost", "budget", "run_budget"]

    def get_queryset(self, request: HttpRequest) -> QuerySet[AgentSession]:
        return super().get_queryset(request).select_related("owner", "provider")

    @admin.display(description="cost", ordering="cost_usd_micros")
    def cost(self, session: AgentSession) -> str:
        cost = usd(session.cost_usd_micros)
        return f"at least {cost}" if session.cost_is_partial else cost

    @admin.display(description="budget")
    def budget(self, session: AgentSession) -> str:
        return _limit(session.max_budget_usd_micros)

    @admin.display(description="budget of a turn")
    def run_budget(self, session: AgentSession) -> str:
        return _limit(session.run_budget_usd_micros)

    @admin.display(description="allowed tools")
    def tools(self, session: AgentSession) -> SafeString | str:
        tools = session.allowed_tools
        return "every offered tool" if tools is None else pretty_json(tools)

    @admin.display(description="system prompt")
    def prompt(self, session: AgentSession) -> SafeString:
        return pretty_text(session.system_prompt)

    @admin.display(description="see also")
    def more(self, session: AgentSession) -> SafeString:
        if session.is_sub_agent:
            return self._more_of_sub_agent(session)
        one = {"session__id__exact": session.pk}
        sdk_ids = [str(branch.sdk_session_id) for branch in session.branches.all()]
        return format_html(
            "{} · {} · {} · {}",
            list_link(Message, "Messages", **one),
            list_link(SessionEvent, "Events", **one),
            list_link(CostEntry, "Costs", **one),
            list_link(
                TranscriptEntry, "Transcript", sdk_session_id__in=",".join(sdk_ids)
            ),
        )

    def _more_of_sub_agent(self, session: AgentSession) -> SafeString:
        """Its rows are its host's."""
        host = {"session__id__exact": session.host_id}
        agent = session.agent_id
        call = session.parent_tool_use_id
        return format_html(
            "{} · {} · {}",
            list_link(AgentSession, "Its session", id__exact=session.host_id),
            list_link(Message, "Messages", **host, parent_tool_use_id__exact=call),
            list_link(CostEntry, "Costs", **host, agent_id__exact=agent),
        )

    @admin.action(description="Stop")
    def stop(self, request: HttpRequest, sessions: QuerySet[AgentSession]) -> None:
        stopped = 0
        for session in sessions:
            if stop_agent(session):
                stopped += 1
                audit.record("session.stopped", actor=staff(request), target=session)
        self.message_user(request, f"{stopped} of {len(sessions)} were at work.")

    @admin.action(description="Close")
    def close(self, request: HttpRequest, sessions: QuerySet[AgentSession]) -> None:
        """Sub-agents are a part of others, with which they close."""
        own = sessions.filter(host_session=None)
        for session in own:
            close_session(session, staff(request))
        self.message_user(request, f"Closed: {len(own)}.")


def _limit(usd_micros: int | None) -> str:
    return "none" if usd_micros is None else usd(usd_micros)
