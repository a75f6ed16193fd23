"""Modes of one's own: kept, followed by their sessions, and deleted unused."""

from __future__ import annotations

from typing import Any

import pytest

from agents.domain import approvals, modes, next_mode, permissions, sessions
from agents.domain.accounts import preferences_of
from agents.domain.lifecycle import close_session
from agents.errors import InvalidInputError, NotAllowedError
from agents.models import AgentSession, Mode, User
from agents.models.approvals import ApprovalStatus
from agents.models.users import Role
from tests import factories

pytestmark = pytest.mark.django_db


def keep(user: User, name: str = "Reader", **fields: Any) -> Mode:
    return modes.save_mode(Mode(**{"owner": user, "name": name, **fields}), user)


def tools_of(session: AgentSession) -> list[str] | None:
    session.refresh_from_db()
    return session.allowed_tools


def change(mode: Mode, user: User, **fields: Any) -> None:
    mode.refresh_from_db()
    for name, value in fields.items():
        setattr(mode, name, value)
    modes.save_mode(mode, user)


def test_a_slug_is_one_that_nobody_could_mistake(alice: User) -> None:
    assert keep(alice, "Code review").slug == "code-review"
    assert keep(alice, "Code-Review!").slug == "code-review-2"
    assert keep(alice, "Agent").slug == "agent-2"
    assert keep(alice, "計画").slug == "mode"


def test_a_new_mode_is_not_that_of_sessions_whose_mode_was_deleted(alice: User) -> None:
    mode = keep(alice, tools=["Read"])
    session = factories.make_session(alice, mode=mode.slug)
    close_session(session, alice)
    modes.delete_mode(mode, alice)

    assert keep(alice).slug == "reader-2"
    assert tools_of(session) == ["Read"]


@pytest.mark.parametrize(
    ("fields", "field"),
    [
        ({"name": " "}, "name"),
        ({"name": "reader"}, "name"),
        ({"tools": ["Reed"]}, "tools"),
        ({"default_next_mode": "nowhere"}, "default_next_mode"),
        ({"tools": ["Read", "ExitPlanMode"]}, "default_next_mode"),
        ({"system_prompt": "x" * 50_001}, "system_prompt"),
    ],
)
def test_what_no_mode_can_be_is_refused(
    alice: User, fields: dict[str, Any], field: str
) -> None:
    keep(alice)

    with pytest.raises(InvalidInputError) as refused:
        keep(alice, **{"name": "Another", **fields})

    assert refused.value.field == field


def test_only_owners_keep_modes_for_everybody_and_nobody_changes_built_in_ones(
    alice: User,
) -> None:
    bob = factories.make_user("bob")
    boss = factories.make_user("boss", role=Role.OWNER)
    viewer = factories.make_user("viewer", role=Role.VIEWER)

    for user, mode in (
        (bob, Mode(name="All")),
        (viewer, Mode(owner=viewer, name="Mine")),
        (boss, Mode.objects.get(slug="ask")),
    ):
        with pytest.raises(NotAllowedError):
            modes.save_mode(mode, user)
    shared = modes.save_mode(Mode(name="All", tools=["Read"]), boss)
    assert modes.find_mode(bob, "all") == shared
    assert shared not in Mode.objects.editable_by(bob)


def test_a_changed_mode_binds_its_sessions_and_no_others(alice: User) -> None:
    bob = factories.make_user("bob")
    boss = factories.make_user("boss", role=Role.OWNER)
    shared = modes.save_mode(Mode(name="All", tools=["Read", "Write"]), boss)
    hers, his = (factories.make_session(u, mode="all") for u in (alice, bob))
    other = factories.make_session(alice, mode="agent")
    own = Mode.objects.create(owner=bob, slug="all", name="Mine", tools=["Grep"])

    change(shared, boss, tools=["Read"])

    assert (tools_of(hers), tools_of(other)) == (["Read"], None)
    assert tools_of(his) == ["Read", "Write"], "he has a mode of this name himself"
    assert "Write" not in permissions.offered_tools(hers)
    assert own in Mode.objects.editable_by(bob)


def test_a_session_that_was_given_less_than_its_mode_stays_so(alice: User) -> None:
    mode = keep(alice, tools=["Read", "Write", "mcp__notes"])
    session = factories.make_session(alice, mode=mode.slug)
    fewer = ["Read", "mcp__notes__read_note"]
    sessions.update_session(session, alice, allowed_tools=fewer)

    change(mode, alice, tools=None)
    assert tools_of(session) == fewer
    change(mode, alice, tools=["mcp__notes", "Bash"])
    assert tools_of(session) == ["mcp__notes__read_note"]
    sessions.update_session(session, alice, mode=mode.slug, pinned=True)
    assert tools_of(session) == ["mcp__notes__read_note"]


def test_a_call_that_waits_is_refused_by_a_mode_that_was_changed(alice: User) -> None:
    mode = keep(alice)
    session = factories.make_session(alice, mode=mode.slug)
    run = factories.start_turn(session)
    call: dict[str, Any] = {"tool_use_id": "toolu_1", "tool_name": "Bash"}
    request = approvals.open_approval(run, **call, tool_input={"command": "ls"})

    change(mode, alice, tools=["Read"])

    request.refresh_from_db()
    assert request.status == ApprovalStatus.DENIED
    assert "may not use Bash" in request.message


def test_a_mode_in_use_is_not_deleted(alice: User) -> None:
    mode = keep(alice)
    before = keep(alice, "Before", default_next_mode=mode.slug)
    session = factories.make_session(alice, mode=mode.slug)
    preferences = preferences_of(alice)
    preferences.default_mode = mode.slug
    preferences.save()

    def refusal() -> str:
        with pytest.raises(InvalidInputError) as refused:
            modes.delete_mode(mode, alice)
        return refused.value.user_message

    assert "1 open session is in this mode." in refusal()
    close_session(session, alice)
    assert "by the preferences" in refusal()
    preferences.default_mode = "agent"
    preferences.save()
    assert "The mode “Before” goes on in this one." in refusal()
    change(before, alice, default_next_mode="")
    modes.delete_mode(mode, alice)
    assert not Mode.objects.filter(slug="reader").exists()


def test_a_session_in_a_deleted_mode_can_be_changed_otherwise(alice: User) -> None:
    session = factories.make_session(alice, mode=keep(alice, tools=["Read"]).slug)
    Mode.objects.filter(slug="reader").delete()

    sessions.update_session(session, alice, mode="reader", pinned=True)

    assert tools_of(session) == ["Read"]
    choices = dict(modes.mode_choices(alice, kept="reader"))
    assert choices["reader"] == "reader (deleted)"


def test_a_session_is_moved_on_only_from_where_the_turn_began(alice: User) -> None:
    keep(alice, tools=["Read"], default_next_mode="ask")
    session = factories.make_session(alice, mode="reader")
    run = factories.start_turn(session)

    assert not next_mode.move_on(run, "agent")
    sessions.update_session(session, alice, allowed_tools=[])
    assert not next_mode.move_on(run, "reader"), "it was given less than its mode"
    sessions.update_session(session, alice, allowed_tools=["Read"])
    assert next_mode.move_on(run, "reader")
    session.refresh_from_db()
    assert session.mode == "ask"


def test_what_only_plans_is_not_left_by_the_end_of_a_turn(alice: User) -> None:
    session = factories.make_session(alice, mode="plan")

    assert not next_mode.move_on(factories.start_turn(session), "plan")


def test_a_plan_is_known_by_its_text_wherever_its_file_lies(alice: User) -> None:
    run = factories.start_turn(factories.make_session(alice, mode="plan"))
    given = {"plan": "1. Sow", "planFilePath": "/home/plans/a.md"}
    call: dict[str, Any] = {"tool_use_id": "toolu_1", "tool_name": "ExitPlanMode"}
    request = approvals.open_approval(run, **call, tool_input=given)

    def is_it(tool_input: dict[str, Any], tool_name: str = "ExitPlanMode") -> bool:
        return approvals.is_about(request, tool_name, tool_input)

    assert is_it({})
    assert is_it({**given, "planFilePath": "/tmp/plans/a.md"})
    assert not is_it({**given, "plan": "1. Reap"})
    assert not is_it(given, "Write")
