from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.utils import timezone

from agents.conf import data_dir
from agents.domain import permissions, sessions
from agents.domain.accounts import preferences_of
from agents.models import AgentSession, Mode, PermissionRule, User
from agents.policy.decision import PolicyContext
from agents.policy.tools import get_all_tool_names
from agents.workspaces.plugins import plugins_path

AROUND = permissions.Surroundings(
    jailed=True,
    home=Path("/home/agent"),
    tmp=Path("/tmp"),
    config_dir=Path("/home/agent/.claude"),
)


def context_of(session: AgentSession) -> PolicyContext:
    return permissions.policy_context(session.pk, AROUND)


def rule(owner: User, **fields: Any) -> PermissionRule:
    defaults = {"scope": "user", "tool": "Bash", "effect": "allow"}
    return PermissionRule.objects.create(owner=owner, **{**defaults, **fields})


def test_it_gathers_what_holds_for_the_session(
    session: AgentSession, alice: User
) -> None:
    alice.security_ceiling = "allowlist"
    alice.save()
    preferences = preferences_of(alice)
    preferences.tool_policies = {"WebFetch": "deny"}
    preferences.save()

    context = context_of(session)

    assert (context.security_mode, context.ceiling) == ("ask", "allowlist")
    assert context.cwd == Path(session.cwd)
    assert context.roots == (Path(session.cwd),)
    skills = plugins_path(session.pk)
    assert context.readable_paths == (AROUND.config_dir, AROUND.tmp, skills)
    assert context.plan_dir == AROUND.config_dir / "plans"
    assert context.tool_policies == {"WebFetch": "deny"}
    assert context.protected_paths == (data_dir(),)
    assert context.jailed


@pytest.mark.parametrize("who", ["person", "site"])
def test_person_and_site_may_ask_for_everything(
    session: AgentSession, alice: User, override_conf: Any, who: str
) -> None:
    assert not context_of(session).ask_for_everything

    if who == "site":
        override_conf(ask_for_everything=True)
    else:
        preferences = preferences_of(alice)
        preferences.ask_for_everything = True
        preferences.save()

    assert context_of(session).ask_for_everything


def test_a_change_binds_at_the_next_look(session: AgentSession, alice: User) -> None:
    sessions.update_session(session, alice, security_mode="deny", mode="ask")

    context = context_of(session)

    assert context.security_mode == "deny"
    assert context.offered_tools == frozenset()


# Whatever else a session has, it can say that it is done.
COMPLETE = "mcp__openswarm__complete_task"


def test_a_mode_leaves_only_its_tools(session: AgentSession, alice: User) -> None:
    assert permissions.offered_tools(session) >= set(get_all_tool_names())

    sessions.update_session(session, alice, mode="ask")

    wanted = Mode.objects.get(slug="ask").tools
    assert permissions.offered_tools(session) == {*(wanted or []), COMPLETE}


def test_a_mode_never_adds_unknown_tools(session: AgentSession) -> None:
    session.allowed_tools = ["Read", "Teleport"]

    assert permissions.offered_tools(session) == {"Read", COMPLETE}


def test_only_rules_that_speak_about_the_session_apply(
    session: AgentSession, alice: User, bob: User
) -> None:
    other = AgentSession.objects.create(owner=alice, name="Other")
    past = timezone.now() - timedelta(seconds=1)
    applying = [
        rule(alice),
        rule(bob, scope="site"),
        rule(alice, scope="mode", mode="agent"),
        rule(bob, scope="session", session=session),
        rule(alice, expires_at=timezone.now() + timedelta(hours=1)),
    ]
    rule(bob)
    rule(alice, scope="mode", mode="plan")
    rule(bob, scope="mode", mode="agent")
    rule(alice, scope="session", session=other)
    rule(alice, expires_at=past)

    found = {found.rule_id for found in context_of(session).rules}

    assert found == {str(each.pk) for each in applying}


def test_hits_are_counted(alice: User) -> None:
    used, unused = rule(alice), rule(alice)

    permissions.count_hit(str(used.pk))
    permissions.count_hit(str(used.pk))

    used.refresh_from_db()
    unused.refresh_from_db()
    assert (used.hits, unused.hits) == (2, 0)


def test_a_look_takes_four_queries(
    session: AgentSession, alice: User, django_assert_num_queries: Any
) -> None:
    preferences_of(alice)
    for _ in range(3):
        rule(alice)

    with django_assert_num_queries(4):
        context_of(session)
