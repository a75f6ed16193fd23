"""What a session may do right now, gathered for `policy.decision.decide`.

Read afresh for every tool call, so that a changed mode, a new rule or a revoked one
binds at the next call.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from uuid import UUID

from django.db.models import F
from django.utils import timezone

from agents.conf import conf, data_dir
from agents.models import AgentSession, PermissionRule
from agents.policy.decision import PolicyContext
from agents.policy.modes import Effect, SecurityMode, plans_first
from agents.policy.rules import Rule, RuleScope
from agents.policy.tool_router import ToolRoute, route_tools
from agents.policy.tools import SKILL_TOOL, get_all_tool_names
from agents.workspaces.folders import home_path, tmp_path
from agents.workspaces.plugins import plugins_path

from .accounts import preferences_of
from .mcp_offers import foreign_tools
from .skills import has_skills

# The tool servers of our own that every agent's process is given.
OWN_SERVERS = ("openswarm-invoke-agent", "openswarm")
_TMP_IN_JAIL = Path("/tmp")  # noqa: S108  where the jail shows the session's own


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What only the engine knows about the process that asks."""

    jailed: bool
    home: Path
    tmp: Path
    """Where the agent sees its temporary folder."""
    config_dir: Path
    """The CLI's configuration folder as the agent sees it; plans live in it."""
    plan_slug: str = ""
    """The name of the conversation's own plan, as far as it is known."""


def surroundings_of(session_id: UUID, *, jailed: bool) -> Surroundings:
    """As far as is known without the process; what is not is not widened."""
    home = home_path(session_id)
    return Surroundings(
        jailed=jailed,
        home=home,
        tmp=_TMP_IN_JAIL if jailed else tmp_path(session_id),
        config_dir=home / ".claude",
    )


def policy_context(session_id: UUID, around: Surroundings) -> PolicyContext:
    session = AgentSession.objects.select_related("owner").get(pk=session_id)
    preferences = preferences_of(session.owner)
    foreign = foreign_tools(session)
    return PolicyContext(
        security_mode=SecurityMode(session.security_mode),
        ceiling=SecurityMode(session.owner.security_ceiling),
        offered_tools=_own_tools(session) | foreign.offered,
        cwd=Path(session.cwd),
        roots=(Path(session.cwd),),
        readable_paths=(around.config_dir, around.tmp, plugins_path(session_id)),
        plan_dir=around.config_dir / "plans",
        plan_slug=around.plan_slug,
        plans_first=plans_first(session.allowed_tools),
        home=around.home,
        jailed=around.jailed,
        allow_unjailed_execution=conf().allow_unjailed_execution,
        ask_for_everything=preferences.ask_for_everything or conf().ask_for_everything,
        sandbox_network_reads=conf().sandbox_network_reads,
        rules=tuple(_rules(session)),
        tool_policies={**preferences.tool_policies, **foreign.policies},
        tool_classes=foreign.classes,
        protected_paths=(data_dir(),),
    )


def offered_tools(session: AgentSession) -> frozenset[str]:
    """The tools that the session's mode leaves; deny mode leaves none."""
    return _own_tools(session) | foreign_tools(session).offered


def _own_tools(session: AgentSession) -> frozenset[str]:
    """Without those of the servers that people connected."""
    if session.security_mode == SecurityMode.DENY:
        return frozenset()
    known = get_all_tool_names(OWN_SERVERS)
    return frozenset(route_tools(ToolRoute(known=known, chosen=session.allowed_tools)))


def usable_tools(session: AgentSession) -> frozenset[str]:
    """Those of the offered ones that there is something for."""
    return offered_tools(session) - _idle_tools(session)


def usable_names(session: AgentSession) -> list[str]:
    """Our own of them in the table's order, before any mode."""
    idle = _idle_tools(session)
    return [name for name in get_all_tool_names(OWN_SERVERS) if name not in idle]


def _idle_tools(session: AgentSession) -> set[str]:
    return set() if has_skills(session.owner) else {SKILL_TOOL}


def _rules(session: AgentSession) -> list[Rule]:
    return [to_policy(rule) for rule in PermissionRule.objects.applying_to(session)]


def to_policy(rule: PermissionRule) -> Rule:
    """The rule as `decide` takes it."""
    return Rule(
        rule_id=str(rule.pk),
        tool=rule.tool,
        matcher=rule.matcher,
        effect=Effect(rule.effect),
        scope=RuleScope(rule.scope),
    )


def count_hit(rule_id: str) -> None:
    PermissionRule.objects.filter(pk=rule_id).update(
        hits=F("hits") + 1, last_hit_at=timezone.now()
    )
