"""No process of a session is left, also when it tried to hide."""

from __future__ import annotations

from pathlib import Path
from uuid import uuid4

from agents.execution.processes import find_marked, kill_marked

from .jail import Session, both_ways, eventually, needs_jail

# A daemon in a session of its own, a child that ignores SIGTERM, and the CLI itself.
STUBBORN = (
    "setsid sleep 61 >/dev/null 2>&1 & "
    "sh -c 'trap \"\" TERM; echo up; while :; do sleep 1; done' & "
    "read line"
)


def started(agent: Session, script: str, *, jailed: bool):
    process = agent.start(script, jailed=jailed)
    assert process.stdout is not None
    assert process.stdout.readline() == "up\n"
    return process


@needs_jail
def test_a_killed_jail_leaves_nothing(agent):
    process = started(agent, STUBBORN, jailed=True)
    assert len(find_marked(agent.session_id)) >= 5  # two bwraps, bash, daemon, child

    process.kill()

    eventually(lambda: find_marked(agent.session_id) == [])


async def test_without_the_jail_what_is_left_is_found_and_ended(agent):
    process = started(agent, STUBBORN, jailed=False)

    process.kill()
    process.wait()
    left = find_marked(agent.session_id)
    still_alive = await kill_marked(agent.session_id)

    assert len(left) >= 2  # the daemon and the child that ignores SIGTERM
    assert still_alive == []
    assert find_marked(agent.session_id) == []


@both_ways
async def test_it_ends_a_live_session_at_once(agent, jailed):
    process = started(agent, STUBBORN, jailed=jailed)

    still_alive = await kill_marked(agent.session_id)

    assert still_alive == []
    assert process.wait(timeout=20) == -9


@both_ways
async def test_a_process_that_cleared_its_environment_is_found(agent, jailed):
    hidden = "env -i setsid sh -c 'echo up; sleep 62; true' & read line"
    started(agent, hidden, jailed=jailed)

    found = find_marked(agent.session_id)

    assert any(is_running(pid, b"echo up") for pid in found)


async def test_other_sessions_are_left_alone(agent, other_agent):
    started(agent, "echo up; read line", jailed=False)
    stranger = started(other_agent, "echo up; read line", jailed=False)

    await kill_marked(agent.session_id)

    assert find_marked(agent.session_id) == []
    assert find_marked(other_agent.session_id) == [stranger.pid]


async def test_a_session_without_processes_has_none():
    session_id = uuid4()

    assert find_marked(session_id) == []
    assert await kill_marked(session_id) == []


def is_running(pid: int, words: bytes) -> bool:
    arguments = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
    return arguments[0] == b"sh" and any(words in argument for argument in arguments)
