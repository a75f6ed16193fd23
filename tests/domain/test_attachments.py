"""What comes with a message: judged, kept on it, and kept through edits."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from agents.domain import branches, messages, sessions, skills
from agents.domain.attachments import (
    Attached,
    attachments_of,
    chosen_skills,
    with_command,
)
from agents.domain.queries.transcript import load_transcript
from agents.errors import InvalidInputError
from agents.models import AgentSession, PermissionRule, Run, Skill, User
from agents.workspaces.skill_packages import SkillPackage
from tests import factories


@pytest.fixture
def skill(alice: User) -> Skill:
    package = SkillPackage("review", "When wanted", "Look twice.")
    return skills.add_package(alice, package)[0]


def refusal(session: AgentSession | None, *paths: str) -> str:
    with pytest.raises(InvalidInputError) as caught:
        attachments_of(Attached(paths=paths), session=session)
    assert caught.value.field == "paths"
    return caught.value.user_message


def test_paths_are_kept_from_the_folder_on(session: AgentSession) -> None:
    folder = Path(session.cwd)
    (folder / "src").mkdir()
    (folder / "a.txt").touch()
    chosen = Attached(paths=("src", "./a.txt", f"{folder}/a.txt", "later.txt"))

    kept = attachments_of(chosen, session=session)

    assert kept == {"context_paths": ["src/", "a.txt", "a.txt", "later.txt"]}


@pytest.mark.parametrize(
    "path",
    ["/etc/passwd", "../x", "~/x", "/proc/self/environ", "way-out", "keys/id_rsa"],
)
def test_a_path_that_the_agent_may_not_read_is_refused(
    session: AgentSession, path: str
) -> None:
    (Path(session.cwd) / "way-out").symlink_to("/etc/passwd")

    assert refusal(session, "fine.txt", path)


def test_a_rule_that_denies_reading_denies_attaching(
    session: AgentSession, alice: User
) -> None:
    PermissionRule.objects.create(
        owner=alice, scope="user", tool="Read", matcher="secret/**", effect="deny"
    )

    assert "denies" in refusal(session, "secret/plan.txt")
    assert attachments_of(Attached(paths=("open.txt",)), session=session)


def test_before_there_is_a_session_a_path_stays_inside(db: None) -> None:
    assert "leaves" in refusal(None, "/etc/passwd")
    assert "leaves" in refusal(None, "a/../../b")
    assert attachments_of(Attached(paths=("a/b",))) == {"context_paths": ["a/b"]}


def test_there_may_be_only_so_many(session: AgentSession) -> None:
    assert "50" in refusal(session, *(f"{n}.txt" for n in range(51)))
    assert "too long" in refusal(session, "x" * 1001)


def test_a_skill_is_kept_as_it_was(
    session: AgentSession, alice: User, bob: User, skill: Skill
) -> None:
    chosen = Attached(skills=chosen_skills(alice, ["review", "gone"]))
    kept = attachments_of(chosen, session=session)
    skill.content = "Look thrice."
    skill.save()

    (snapshot,) = kept["skills"]
    assert (snapshot["name"], snapshot["content"]) == ("review", "Look twice.")
    assert chosen_skills(bob, ["review"]) == ()


@pytest.mark.parametrize(
    ("text", "is_attached"),
    [
        ("/review this", True),
        ("/review", True),
        ("/review\nthis", True),
        ("/reviewing", False),
        ("/review/x", False),
        ("please /review", False),
        ("/Review", False),
    ],
)
def test_a_command_at_the_beginning_attaches_its_skill(
    alice: User, bob: User, skill: Skill, text: str, is_attached: bool
) -> None:
    expected = [{"id": str(skill.pk), "name": "review", "content": "Look twice."}]
    by_command = {"skills": [{**expected[0], "by_command": True}]}

    assert with_command(alice, text, {}) == (by_command if is_attached else {})
    assert with_command(bob, text, {}) == {}
    # One that was chosen, too, is not there twice, and stays when the command goes.
    assert with_command(alice, text, {"skills": expected}) == {"skills": expected}


def test_a_command_that_is_edited_away_takes_its_skill_along(
    alice: User, skill: Skill
) -> None:
    first = with_command(alice, "/review this", {"context_paths": ["a"]})
    skill.delete()

    assert with_command(alice, "/review that", first) == first
    assert with_command(alice, "that", first) == {"context_paths": ["a"]}


def attached_to(session: AgentSession, user: User) -> list[dict[str, Any]]:
    items = load_transcript(session, user).items
    return [item.attached for item in items if item.message.role == "user"]


def test_a_message_shows_what_came_with_it_and_edits_keep_it(
    run: Run, alice: User, skill: Skill
) -> None:
    factories.end_turn(run)
    session = run.session
    attachments = {
        "context_paths": ["a.txt"],
        "forced_tools": ["Grep"],
        "images": [{"name": "x.png", "media_type": "image/png", "data": "AAAA"}],
    }
    shown = {"paths": ["a.txt"], "tools": ["Grep"], "images": ["x.png"]}
    message = messages.send_message(
        session, author=alice, text="/review", attachments=attachments
    )
    session.refresh_from_db()

    assert attached_to(session, alice)[-1] == {**shown, "skills": ["review"]}

    edited = branches.edit_message(message, author=alice, text="Look")
    assert edited.attachments == attachments
    session.refresh_from_db()
    waiting = messages.send_message(session, author=alice, text="Then /review")
    assert messages.edit_queued_message(waiting, "/review then")
    waiting.refresh_from_db()
    assert waiting.content == {"attached": {"skills": ["review"]}}


def test_a_launch_takes_attachments_along(alice: User, skill: Skill) -> None:
    config = sessions.LaunchConfig(
        task="/review this", attachments={"context_paths": ["a"]}
    )

    session = sessions.launch_agent(alice, config)

    (message,) = session.messages.all()
    assert set(message.attachments) == {"context_paths", "skills"}
    assert attached_to(session, alice) == [{"paths": ["a"], "skills": ["review"]}]
