"""`manage.py serve` as a person in a terminal meets it; no agent runs here."""

from __future__ import annotations

import signal
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.server import Server, manage, taken_port


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with Server(tmp_path_factory.mktemp("serve") / "data") as running:
        yield running


def mode_of(path: Path) -> str:
    return oct(path.stat().st_mode & 0o777)


def test_it_says_its_address_and_a_setup_link(server: Server) -> None:
    assert server.address.startswith("http://127.0.0.1:")
    assert server.output.count("/setup/") == 1
    assert f"  {server.address}{server.setup_path}" in server.output.splitlines()


def test_it_answers_with_styled_pages(server: Server) -> None:
    page = server.visitor().get("/login/")

    assert page.status_code == 200
    stylesheet = page.text.partition('rel="stylesheet" href="')[2].partition('"')[0]
    style = server.visitor().get(stylesheet)
    assert style.headers["content-type"].startswith("text/css")
    assert "immutable" in style.headers["cache-control"]


def test_its_data_is_for_its_user_alone(server: Server) -> None:
    folders = [server.data_dir, *(server.data_dir / x for x in ("workspaces", "cli"))]
    files = [
        server.data_dir / name
        for name in (
            *("secret.key", "encryption.key", "serve.lock"),
            *("openswarm.sqlite3", "openswarm.sqlite3-wal", "openswarm.sqlite3-shm"),
        )
    ]

    assert {mode_of(folder) for folder in folders} == {"0o700"}
    assert {mode_of(file) for file in files} == {"0o600"}


def test_a_second_server_on_the_same_data_is_refused(server: Server) -> None:
    refused = manage(server.data_dir, "serve", "--port", "0")

    assert refused.returncode == 1
    assert refused.stdout == ""
    assert refused.stderr.splitlines() == [
        f"CommandError: Another OpenSwarm server (process {server.process.pid})"
        f" already works on the data in {server.data_dir}. Stop it, or set"
        " OPENSWARM_DATA_DIR to another folder."
    ]
    assert server.visitor().get("/login/").status_code == 200


def test_a_port_in_use_ends_it_with_a_sentence(tmp_path: Path) -> None:
    with taken_port() as port:
        refused = manage(tmp_path / "data", "serve", "--port", str(port))

    assert refused.returncode == 1
    assert refused.stderr.splitlines() == [
        f"CommandError: Port {port} on 127.0.0.1 is in use, perhaps by another"
        f" OpenSwarm. Choose another one: make run PORT={port + 1}"
    ]
    assert not (tmp_path / "data" / "openswarm.sqlite3").exists()


def test_an_address_of_another_machine_ends_it_with_a_sentence(tmp_path: Path) -> None:
    refused = manage(tmp_path, "serve", "--host", "192.0.2.1", "--port", "0")

    assert refused.returncode == 1
    assert "192.0.2.1 is not an address of this machine." in refused.stderr


def test_a_data_folder_that_cant_be_written_ends_it_with_a_sentence(
    tmp_path: Path,
) -> None:
    (tmp_path / "file").touch()
    refused = manage(tmp_path / "file" / "data", "serve", "--port", "0")

    assert refused.returncode == 1
    assert len(refused.stderr.splitlines()) == 1
    assert f"{tmp_path / 'file' / 'data'} can't be written" in refused.stderr


def test_an_unknown_value_ends_it_with_a_sentence(tmp_path: Path) -> None:
    refused = manage(tmp_path, "serve", "--port", "0", OPENSWARM_REQUIRE_JAIL="ture")

    assert refused.returncode == 1
    assert len(refused.stderr.splitlines()) == 1
    assert "OPENSWARM_REQUIRE_JAIL" in refused.stderr
    assert not (tmp_path / "openswarm.sqlite3").exists()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_it_quietly(tmp_path: Path, number: signal.Signals) -> None:
    with Server(tmp_path / "data") as server:
        server.visitor().get("/login/")  # a connection that is kept alive
        status = server.end(number)

    assert status == 0
    said = server.output.partition("/setup/")[2].splitlines()[1:]
    assert [line.partition(" INFO ")[2] for line in said] == [
        "agents.management.server: stopping; what agents have written is kept"
    ]
    assert not list((server.data_dir / "run").iterdir())
    host, port = server.address.removeprefix("http://").split(":")
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection((host, int(port)), timeout=5)


def test_the_setup_link_works_once_and_is_renewed_by_each_start(tmp_path: Path) -> None:
    with Server(tmp_path / "data") as server:
        first = server.setup_path
        assert server.end(signal.SIGHUP) == 0
        server.start()

        assert server.setup_path != first
        assert server.visitor().get(first).status_code == 404
        server.visitor().set_up()
        assert server.visitor().get(server.setup_path).status_code == 404

        server.end()
        server.start()
        assert "/setup/" not in server.output
        server.visitor().sign_in()


def test_it_names_the_public_address_and_serves_only_its_hosts(tmp_path: Path) -> None:
    with Server(tmp_path / "data", OPENSWARM_URL="https://swarm.example") as server:
        assert server.address == "https://swarm.example"
        local = server.output.partition("listening on ")[2].split("/\n")[0]
        server.address = local
        headers = {"X-Forwarded-Proto": "https"}
        status = {
            host: server.visitor(**headers, Host=host).get("/login/").status_code
            for host in ("swarm.example", "rebound.example")
        }

    assert status == {"swarm.example": 200, "rebound.example": 400}
