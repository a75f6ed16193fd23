"""What becomes of agents when the server is stopped, killed or reloaded."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path
from uuid import UUID

import pytest

from agents.execution.processes import find_marked
from tests.server import Server, until

pytestmark = pytest.mark.cli

STREAM = "demo: stream 5000 words at 30/s"
WRITE = "write the file late.txt with the text Hello"


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    with Server(tmp_path / "data") as running:
        yield running


def streaming(server: Server, session_id: UUID) -> str:
    """The beginning of the answer, once some of it is stored."""
    rows = server.until_rows(
        "SELECT text FROM agents_message WHERE session_id = ? AND role = 'assistant'"
        " AND is_streaming AND length(text) > 20",
        session_id.hex,
    )
    return str(rows[0][0])


def answer(server: Server, session_id: UUID) -> tuple[str, bool, bool]:
    [row] = server.rows(
        "SELECT text, is_streaming, is_interrupted FROM agents_message"
        " WHERE session_id = ? AND role = 'assistant'",
        session_id.hex,
    )
    return row[0], bool(row[1]), bool(row[2])


def run_states(server: Server) -> list[tuple[str, str]]:
    return server.rows("SELECT state, stop_reason FROM agents_run ORDER BY created_at")


def statuses(server: Server) -> list[str]:
    rows = server.rows("SELECT status FROM agents_agentsession ORDER BY created_at")
    return [status for (status,) in rows]


def pending(server: Server, session_id: UUID) -> UUID:
    rows = server.until_rows(
        "SELECT id FROM agents_approvalrequest WHERE status = 'pending'"
        " AND session_id = ?",
        session_id.hex,
    )
    return UUID(rows[0][0])


def test_sigterm_keeps_the_partial_text_and_parks_what_waits(server: Server) -> None:
    visitor = server.visitor().set_up()
    writing = visitor.start_agent(STREAM)
    waiting = visitor.start_agent(WRITE)
    pending(server, waiting)
    beginning = streaming(server, writing)
    assert find_marked(writing)
    assert find_marked(waiting)

    server.process.send_signal(signal.SIGTERM)
    status = server.process.wait(10)

    assert status == 0
    assert find_marked(writing) + find_marked(waiting) == []
    text, is_streaming, is_interrupted = answer(server, writing)
    assert text.startswith(beginning)
    assert (is_streaming, is_interrupted) == (False, True)
    assert run_states(server) == [("finished", "cancelled"), ("parked", "")]
    assert statuses(server) == ["stopped", "waiting_approval"]


def test_a_parked_question_is_answered_after_the_restart(server: Server) -> None:
    visitor = server.visitor().set_up()
    waiting = visitor.start_agent(WRITE)
    approval = pending(server, waiting)
    server.end()

    server.start()
    visitor = server.visitor().sign_in()
    assert run_states(server) == [("parked", "")]
    visitor.get(f"/sessions/{waiting}/")
    visitor.post(f"/approvals/{approval}/decide/", decision="approve")

    server.until_rows("SELECT 1 FROM agents_run WHERE state = 'finished'")
    [(folder,)] = server.rows("SELECT cwd FROM agents_agentsession")
    assert Path(folder, "late.txt").read_text().strip() == "Hello"


def test_kill_9_leaves_no_process_and_a_true_picture(server: Server) -> None:
    visitor = server.visitor().set_up()
    writing = visitor.start_agent(STREAM)
    waiting = visitor.start_agent(WRITE)
    approval = pending(server, waiting)
    beginning = streaming(server, writing)

    assert server.end(signal.SIGKILL) == -signal.SIGKILL
    until(lambda: not find_marked(writing) + find_marked(waiting), "no process left")
    assert "running" in statuses(server)  # nobody was there to say otherwise

    server.start()

    assert "Settled 2 run(s) that the last server left." in server.output
    text, is_streaming, is_interrupted = answer(server, writing)
    assert text.startswith(beginning)
    assert (is_streaming, is_interrupted) == (False, True)
    assert statuses(server) == ["stopped", "waiting_approval"]
    assert pending(server, waiting) == approval
    page = server.visitor().sign_in().get(f"/sessions/{writing}/").text
    assert beginning[:20] in page


def test_a_reload_stops_runs_with_their_text_kept(tmp_path: Path) -> None:
    watched = Path("agents/management/reloading.py").resolve()
    arguments = ("--port", "0", "--reload")
    with Server(tmp_path / "data", *arguments, OPENSWARM_DEBUG="1") as server:
        visitor = server.visitor().set_up()
        writing = visitor.start_agent(STREAM)
        beginning = streaming(server, writing)

        os.utime(watched)
        server.until_rows("SELECT 1 FROM agents_run WHERE state = 'finished'")

        text, is_streaming, is_interrupted = answer(server, writing)
        assert text.startswith(beginning)
        assert (is_streaming, is_interrupted) == (False, True)
        assert run_states(server) == [("finished", "cancelled")]
        until(lambda: server.output.count("OpenSwarm is at ") == 2, "the new server")
        assert "Settled" not in server.output  # the old one has done it itself
        assert find_marked(writing) == []

        second = server.at_last_address().visitor().sign_in().start_agent(STREAM)
        streaming(server, second)
        assert server.end(signal.SIGINT) == 0
        assert find_marked(second) == []
        assert run_states(server)[1] == ("finished", "cancelled")
