"""Resuming through the launcher, where the SDK reads and passes folders itself."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import cast
from uuid import uuid4

import pytest
from claude_agent_sdk import ClaudeAgentOptions, InMemorySessionStore
from claude_agent_sdk._internal.session_resume import (
    MaterializedResume,
    materialize_resume_session,
)
from claude_agent_sdk._internal.sessions import project_key_for_directory
from claude_agent_sdk.types import SessionKey, SessionStoreEntry

from agents.execution.confinement import COPIED_BY_THE_SDK
from agents.execution.environment import config_dir

from .jail import both_ways


@both_ways
def test_it_honours_the_config_folder_that_the_sdk_makes_on_resume(agent, jailed):
    with tempfile.TemporaryDirectory(prefix="claude-resume-") as made:
        done = agent.shell(
            'cd "$CLAUDE_CONFIG_DIR"; pwd; touch transcript; env | grep resume_',
            jailed=jailed,
            inherited={"CLAUDE_CONFIG_DIR": made},
        )

        assert done.stdout == f"{made}\n"
        assert (Path(made) / "transcript").exists()


@both_ways
@pytest.mark.parametrize(
    "inherited", ["{home}", "{made}/inner", "{made}/..", "{made}-gone", "{link}", ""]
)
def test_any_other_config_folder_stays_outside(agent, tmp_path, jailed, inherited):
    with tempfile.TemporaryDirectory(prefix="claude-resume-") as made:
        (Path(made) / "inner").mkdir()
        link = Path(f"{made}-link")
        link.symlink_to(tmp_path)
        value = inherited.format(home=tmp_path, made=made, link=link)

        done = agent.shell(
            'echo "$CLAUDE_CONFIG_DIR"',
            jailed=jailed,
            inherited={"CLAUDE_CONFIG_DIR": value},
        )
        link.unlink()

    assert done.stdout == f"{agent.spec().home}/.claude\n"


async def resume_with_the_sdk(config_dir: Path) -> MaterializedResume:
    """Do what the SDK does before it starts the CLI of a resumed session."""
    session_id, store = str(uuid4()), InMemorySessionStore()
    key = SessionKey(
        project_key=project_key_for_directory("/srv/session"), session_id=session_id
    )
    entry = {"type": "user", "uuid": str(uuid4()), "sessionId": session_id}
    await store.append(key, [cast(SessionStoreEntry, entry)])
    made = await materialize_resume_session(
        ClaudeAgentOptions(
            cwd="/srv/session",
            resume=session_id,
            session_store=store,
            env={"CLAUDE_CONFIG_DIR": str(config_dir)},
        )
    )
    assert made is not None
    return made


async def test_the_sdk_names_its_resume_folder_as_the_launcher_expects(tmp_path):
    made = await resume_with_the_sdk(tmp_path)
    await made.cleanup()

    assert made.config_dir.parent == Path(tempfile.gettempdir())
    assert made.config_dir.name.startswith("claude-resume-")


@pytest.mark.parametrize("name", COPIED_BY_THE_SDK)
async def test_a_link_left_in_the_config_folder_is_not_read_on_resume(
    agent, tmp_path, name
):
    secret = tmp_path / "secret.key"
    secret.write_text('{"secret": "canary-of-the-server"}')
    trap = config_dir(agent.spec().home) / name
    trap.parent.mkdir()
    trap.symlink_to(secret)

    before = await copies_on_resume(trap.parent)
    agent.launcher()
    after = await copies_on_resume(trap.parent)

    assert b"canary-of-the-server" in before  # the probe finds what the SDK copies
    assert b"canary-of-the-server" not in after


async def test_a_config_folder_that_became_a_link_is_not_read_on_resume(
    agent, tmp_path
):
    (tmp_path / ".claude.json").write_text("canary-of-the-server")
    trap = config_dir(agent.spec().home)
    trap.symlink_to(tmp_path)

    agent.launcher()

    assert not trap.exists()
    assert (tmp_path / ".claude.json").exists()


async def copies_on_resume(config: Path) -> bytes:
    made = await resume_with_the_sdk(config)
    copies = [made.config_dir / name for name in COPIED_BY_THE_SDK]
    content = b"".join(copy.read_bytes() for copy in copies if copy.exists())
    await made.cleanup()
    return content
