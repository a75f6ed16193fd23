"""Standing rules that people write: checking, trying, saving and revoking them."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db import transaction

from agents.errors import InvalidInputError, NotAllowedError
from agents.models import AgentSession, Mode, PermissionRule, User
from agents.models.rules import RuleEffect, RuleScope
from agents.policy.matchers import find_matcher_fault, find_tool_fault
from agents.policy.modes import Effect, SecurityMode
from agents.policy.rules import Rule
from agents.policy.rules import RuleScope as PolicyScope
from agents.rendering.text import clean_text

from . import audit, releases
from .replay import Replay, replay_rule


@dataclass(frozen=True, slots=True, kw_only=True)
class Draft:
    """A rule that somebody writes, and has not saved yet."""

    effect: str
    tool: str
    matcher: str = ""
    scope: str
    session: AgentSession | None = None
    mode: str = ""
    expires_at: datetime | None = None

    @property
    def rule(self) -> Rule:
        return Rule(
            clean_text(self.tool).strip(),
            Effect(self.effect),
            PolicyScope(self.scope),
            clean_text(self.matcher).strip(),
        )


def check_draft(draft: Draft, user: User) -> Rule:
    """The rule, if this person may have it.

    Raises: InvalidInputError naming the field, NotAllowedError for viewers.
    """
    if not user.may_start_agents:
        raise NotAllowedError("Viewers have no agents that a rule could be about.")
    rule = draft.rule
    if fault := find_tool_fault(rule):
        raise InvalidInputError(fault, field="tool")
    if fault := find_matcher_fault(rule):
        raise InvalidInputError(fault, field="matcher")
    _check_scope(draft, user)
    _check_ceiling(rule, user)
    return rule


def _check_scope(draft: Draft, user: User) -> None:
    if draft.scope == RuleScope.SITE and not user.is_owner:
        raise InvalidInputError(
            "Only owners of the site make rules for everybody.", field="scope"
        )
    if draft.scope == RuleScope.SESSION and (
        draft.session is None or draft.session.owner_id != user.pk
    ):
        raise InvalidInputError("Choose one of your sessions.", field="session")
    if draft.scope == RuleScope.MODE:
        modes = Mode.objects.visible_to(user).filter(slug=draft.mode)
        if not modes.exists():
            raise InvalidInputError("Choose a mode.", field="mode")


def _check_ceiling(rule: Rule, user: User) -> None:
    """Below "ask" nobody is asked, so an allow-list is what the owner made it."""
    ceiling = SecurityMode(user.security_ceiling)
    is_capped = ceiling.rank < SecurityMode.ASK.rank and not user.is_owner
    if rule.effect is Effect.ALLOW and is_capped:
        raise InvalidInputError(
            f"Your limit is the mode “{ceiling}”: only an owner of the site can allow"
            " more, by a rule for everybody.",
            field="effect",
        )


def save_rule(draft: Draft, user: User) -> PermissionRule:
    """Keep a rule, and answer by it what waits.

    Raises: InvalidInputError naming the field, NotAllowedError for viewers.
    """
    rule = check_draft(draft, user)
    with transaction.atomic():
        # Two sends of one form: the second waits here and then finds the first.
        User.objects.select_for_update(no_key=True).get(pk=user.pk)
        kept = _store(draft, rule, user)
        audit.record(
            "rule.created",
            actor=user,
            target=kept,
            rule=str(kept),
            scope=kept.scope,
        )
    releases.settle_by_rule(kept)
    return kept


def _store(draft: Draft, rule: Rule, user: User) -> PermissionRule:
    is_session = draft.scope == RuleScope.SESSION
    columns: dict[str, Any] = {
        "owner": user,
        "scope": draft.scope,
        "session": draft.session if is_session else None,
        "mode": draft.mode if draft.scope == RuleScope.MODE else "",
        "tool": rule.tool,
        "matcher": rule.matcher,
        "effect": RuleEffect(draft.effect),
    }
    same = PermissionRule.objects.filter(**columns, expires_at=None).in_force()
    if same.exists():
        raise InvalidInputError("This rule exists already.")
    return PermissionRule.objects.create(**columns, expires_at=draft.expires_at)


@transaction.atomic
def revoke_rule(rule: PermissionRule, user: User) -> None:
    """End a rule from the next call on.

    The caller has found it among those that `user` may revoke.
    """
    audit.record(
        "rule.revoked",
        actor=user,
        target=rule,
        rule=str(rule),
        scope=rule.scope,
        owner=rule.owner.get_username(),
        hits=rule.hits,
    )
    rule.delete()


def replay_draft(draft: Draft, user: User) -> Replay:
    """The past calls of the person's sessions that the rule would have matched.

    Raises: InvalidInputError naming the field, NotAllowedError for viewers.
    """
    rule = check_draft(draft, user)
    sessions = AgentSession.objects.filter(owner=user)
    if draft.scope == RuleScope.SESSION and draft.session is not None:
        sessions = sessions.filter(pk=draft.session.pk)
    elif draft.scope == RuleScope.MODE:
        sessions = sessions.filter(mode=draft.mode)
    return replay_rule(rule, sessions)
