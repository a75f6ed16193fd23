"""Standing rules as their page shows them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from uuid import UUID

from django.db.models import Q

from agents.domain.replay import url_of_call
from agents.models import AgentSession, Message, PermissionRule, User
from agents.models.messages import MessageRole
from agents.models.rules import PermissionRuleQuerySet, RuleScope


@dataclass(frozen=True, slots=True, kw_only=True)
class RuleFilters:
    """Which rules to list; empty ones leave all."""

    text: str = ""
    effect: str = ""
    scope: str = ""
    rule_id: UUID | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RuleRow:
    rule: PermissionRule
    can_revoke: bool
    is_own: bool
    session: AgentSession | None
    """The session that it is about, if the person may still see it."""
    created_from_url: str
    """The call whose approval made it; empty where there is none to see."""

    @property
    def scope(self) -> str:
        rule = self.rule
        if rule.scope == RuleScope.MODE:
            return f"Mode “{rule.mode}”"
        if rule.scope == RuleScope.USER and not self.is_own:
            return f"All sessions of {rule.owner.get_username()}"
        return rule.get_scope_display()


def find_rules(user: User, filters: RuleFilters) -> PermissionRuleQuerySet:
    """The rules that the person may see, newest first."""
    rules = PermissionRule.objects.visible_to(user)
    if filters.rule_id is not None:
        rules = rules.filter(pk=filters.rule_id)
    if filters.text:
        text = filters.text
        rules = rules.filter(Q(tool__icontains=text) | Q(matcher__icontains=text))
    if filters.effect:
        rules = rules.filter(effect=filters.effect)
    if filters.scope:
        rules = rules.filter(scope=filters.scope)
    return rules.order_by("-created_at", "pk")


def load_rows(rules: Sequence[PermissionRule], user: User) -> list[RuleRow]:
    """What the page shows of these rules; two queries."""
    named = [rule.session_id for rule in rules if rule.session_id]
    asked = [rule.created_from for rule in rules if rule.created_from]
    wanted = {*named, *(approval.session_id for approval in asked)}
    visible = AgentSession.objects.visible_to(user).only("name").in_bulk(wanted)
    urls = _call_urls({(each.session_id, each.tool_use_id) for each in asked}, visible)
    return [
        RuleRow(
            rule=rule,
            can_revoke=rule.scope != RuleScope.SITE or user.is_owner,
            is_own=rule.owner_id == user.pk,
            session=visible.get(rule.session_id) if rule.session_id else None,
            created_from_url=_url_of(rule, urls),
        )
        for rule in rules
    ]


def _call_urls(
    calls: set[tuple[UUID, str]], visible: dict[UUID, AgentSession]
) -> dict[tuple[UUID, str], str]:
    """A call may stand on several versions; the newest one is linked."""
    seen = {(session, use_id) for session, use_id in calls if session in visible}
    if not seen:
        return {}
    rows = Message.objects.filter(
        session_id__in={session for session, _ in seen},
        tool_use_id__in={use_id for _, use_id in seen},
        role=MessageRole.TOOL_CALL,
    )
    found = rows.only("session_id", "branch_id", "tool_use_id").order_by("seq")
    return {(row.session_id, row.tool_use_id): url_of_call(row) for row in found}


def _url_of(rule: PermissionRule, urls: dict[tuple[UUID, str], str]) -> str:
    approval = rule.created_from
    if approval is None:
        return ""
    return urls.get((approval.session_id, approval.tool_use_id), "")
