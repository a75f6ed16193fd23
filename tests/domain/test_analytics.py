"""Analytics: what is kept of what happened, and what is not."""

from __future__ import annotations

from typing import Any

import pytest
from django.db import transaction

from agents.domain import (
    analytics,
    branches,
    messages,
    notices,
    people,
    providers,
    sessions,
)
from agents.domain.accounts import preferences_of
from agents.domain.approvals import Decision, decide_approval
from agents.domain.tracking import NAMES
from agents.models import AgentSession, AnalyticsEvent, Provider, Run, User
from agents.models.messages import ToolOutcome
from agents.models.providers import ProviderKind
from tests import factories

pytestmark = pytest.mark.django_db


def facts(name: str) -> dict[str, Any]:
    """The data of the one event of this name."""
    data: dict[str, Any] = AnalyticsEvent.objects.get(type=name).data
    return data


def test_a_start_says_what_with(alice: User) -> None:
    session = factories.make_session(
        alice, "Look at https://example.org\n```\ncode\n```", model="claude-opus-5"
    )

    started = facts("session.started")
    assert started | {"tool_count": 0} == {
        "model": "claude-opus-5",
        "provider": "demo",
        "mode": "agent",
        "tool_count": 0,
    }
    assert started["tool_count"] > 10
    assert facts("session.first_message") == {
        "message_length": 40,
        "has_code_block": True,
        "has_url": True,
        "model": "claude-opus-5",
        "mode": "agent",
    }
    event = AnalyticsEvent.objects.get(type="session.started")
    assert (event.session, event.user) == (session, alice)


def test_only_the_first_message_is_the_first(run: Run, alice: User) -> None:
    messages.send_message(run.session, author=alice, text="And then?")

    assert AnalyticsEvent.objects.filter(type="session.first_message").count() == 1


def test_attachments_are_counted(session: AgentSession, alice: User) -> None:
    messages.send_message(
        session,
        author=alice,
        text="Look",
        attachments={
            "context_paths": ["notes.txt", "src/", {"path": "x", "type": "directory"}],
            "skills": [{"name": "beekeeping", "content": "…"}],
            "forced_tools": ["Bash"],
            "images": [{"media_type": "image/png", "data": "…"}],
        },
    )

    assert facts("context.attached") == {
        "file_count": 1,
        "directory_count": 2,
        "skill_count": 1,
        "image_count": 1,
        "has_forced_tools": True,
    }
    assert facts("feature.used") == {
        "feature": "skill.used",
        "skill_name": "beekeeping",
    }


def test_a_turn_says_how_it_went_and_what_it_used(run: Run) -> None:
    factories.call_tool(run, "toolu_1")
    factories.return_result(run, "toolu_1", "12345", elapsed_ms=120)
    factories.call_tool(run, "toolu_2", "mcp__notes__read", {})
    factories.return_result(run, "toolu_2", "", outcome=ToolOutcome.ERROR)
    factories.end_turn(run, steps=2)

    used = AnalyticsEvent.objects.filter(type="tool.executed").order_by("pk")
    assert [event.data for event in used] == [
        {
            "tool_name": "Bash",
            "mcp_server": "",
            "duration_ms": 120,
            "content_length": 5,
            "outcome": "ok",
        },
        {
            "tool_name": "mcp__notes__read",
            "mcp_server": "notes",
            "duration_ms": None,
            "content_length": 0,
            "outcome": "error",
        },
    ]
    turn = facts("turn.completed")
    assert turn.pop("duration_seconds") >= 0
    assert turn == {
        "model": "claude-test",
        "mode": "agent",
        "stop_reason": "no_tool_calls",
        "success": True,
        "steps": 2,
        "tool_count": 2,
        "cost_usd": 0.0,
        "input_tokens": 0,
        "output_tokens": 0,
    }
    assert not AnalyticsEvent.objects.filter(type="session.error").exists()


def test_an_error_is_kept_by_its_class(run: Run) -> None:
    notices.add_notice(run, "error", "The provider refused the key.")
    factories.end_turn(
        run, stop_reason="error", error_class="auth", error_text="words of the provider"
    )

    assert facts("session.error") == {
        "model": "claude-test",
        "mode": "agent",
        "error_class": "auth",
        "steps": 0,
    }


def test_approvals_are_timed(run: Run, alice: User) -> None:
    first = factories.ask_approval(run, "toolu_1")
    second = factories.ask_approval(run, "toolu_2")
    edited = {**first.tool_input, "content": "Other"}
    decide_approval(first, alice, Decision(is_approved=True, updated_input=edited))
    factories.end_turn(run, stop_reason="cancelled")

    asked = AnalyticsEvent.objects.filter(type="approval.requested").order_by("pk")
    assert [event.data["is_first_approval_in_session"] for event in asked] == [
        True,
        False,
    ]
    assert asked[0].data["tool_name"] == "Write"
    answers = AnalyticsEvent.objects.filter(type="approval.resolved").order_by("pk")
    decided, withdrawn = [event.data for event in answers]
    assert decided.pop("latency_ms") >= 0
    assert decided == {
        "tool_name": "Write",
        "decision": "approved",
        "input_was_modified": True,
    }
    assert withdrawn["decision"] == "cancelled"
    assert answers[0].user == alice
    second.refresh_from_db()
    assert second.status == "cancelled"


def test_switching_model_and_mode_says_from_what_to_what(
    session: AgentSession, alice: User
) -> None:
    before = session.model

    sessions.update_session(session, alice, model="claude-other", mode="ask")
    sessions.update_session(session, alice, model="claude-other")

    assert facts("model.switched") == {
        "from_model": before,
        "to_model": "claude-other",
        "from_provider": "demo",
        "to_provider": "demo",
        "message_number": 1,
        "cost_so_far": 0.0,
    }
    assert facts("feature.used") == {
        "feature": "mode.switched",
        "from_mode": "agent",
        "to_mode": "ask",
    }


def test_a_branch_says_where_it_forked(run: Run, alice: User) -> None:
    factories.say(run, "One, two, three.")
    factories.end_turn(run)

    branches.edit_message(run.trigger_message, author=alice, text="Count to four")

    assert facts("session.branched") == {
        "branch_depth": 1,
        "total_branches_in_session": 2,
        "messages_before_fork": 0,
    }


def test_a_closed_session_is_summed_up_once(run: Run, alice: User) -> None:
    factories.call_tool(run)
    factories.return_result(run)
    factories.say(run, "Done.")
    factories.end_turn(run)
    child = factories.make_session(alice)
    AgentSession.objects.filter(pk=child.pk).update(parent_session=run.session)

    sessions.close_session(run.session, alice)
    sessions.close_session(run.session, alice)

    event = AnalyticsEvent.objects.get(type="session.completed", session=run.session)
    assert event.data.pop("duration_seconds") >= 0
    assert event.data == {
        "model": run.session.model,
        "provider": "demo",
        "mode": "agent",
        "status": "completed",
        "cost_usd": 0.0,
        "input_tokens": 0,
        "output_tokens": 0,
        "message_count": 2,
        "tool_count": 1,
        "tools_list": ["Bash"],
        "tool_counts": {"Bash": 1},
        "session_title": "Count to three",
        "first_user_message": "Count to three",
        "is_sub_agent": False,
        "parent_session_id": None,
        "sub_agent_count": 1,
        "sub_agent_ids": [str(child.pk)],
        "branch_count": 1,
    }


def test_a_resumed_session_says_how_long_it_rested(
    session: AgentSession, alice: User
) -> None:
    sessions.close_session(session, alice)

    sessions.resume_session(session, alice)

    assert facts("session.resumed") == {
        "hours_since_closed": 0.0,
        "original_message_count": 1,
        "original_cost_usd": 0.0,
        "model": session.model,
    }


def test_of_the_first_message_only_the_beginning_is_kept(alice: User) -> None:
    session = factories.make_session(alice, "x" * 500)

    sessions.close_session(session, alice)

    assert len(facts("session.completed")["first_user_message"]) == 200


def test_a_providers_key_is_never_kept(alice: User) -> None:
    provider = Provider(
        owner=alice, name="Mine", kind=ProviderKind.ANTHROPIC, api_key="sk-secret"
    )
    providers.save_provider(provider, alice)
    providers.save_provider(provider, alice)
    providers.delete_provider(provider, alice)

    events = AnalyticsEvent.objects.filter(type="provider.configured").order_by("pk")
    assert [event.data for event in events] == [
        {"provider": "anthropic", "action": "added"},
        {"provider": "anthropic", "action": "changed"},
        {"provider": "anthropic", "action": "removed"},
    ]


def test_changed_preferences_are_named_without_their_values(alice: User) -> None:
    preferences = preferences_of(alice)
    preferences.theme = "dark"
    preferences.system_prompt = "Be brief."

    people.save_preferences(preferences)
    people.save_preferences(preferences)

    assert facts("settings.changed") == {"changed_keys": ["system_prompt", "theme"]}


def test_an_event_goes_with_what_it_tells_of(session: AgentSession) -> None:
    before = AnalyticsEvent.objects.count()

    with transaction.atomic():
        analytics.record("feature.used", session=session, feature="x")
        transaction.set_rollback(True)

    assert AnalyticsEvent.objects.count() == before


def test_it_goes_with_its_session(run: Run, alice: User) -> None:
    factories.end_turn(run)
    sessions.close_session(run.session, alice)

    sessions.delete_session(run.session, alice)

    assert not AnalyticsEvent.objects.exists()


def test_names_fit_their_column() -> None:
    length = AnalyticsEvent._meta.get_field("type").max_length
    assert length is not None
    assert all(len(name) <= length for name in NAMES)
