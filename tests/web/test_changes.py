"""The pages that show what turns and versions changed."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from django.test import Client
from django.urls import reverse

from agents.domain import branches, changes, snapshots
from agents.models import Run, User
from tests import factories
from tests.dom import Node, parse

FILE = {"class": "changes__summary"}
SignIn = Callable[[User], Client]

pytestmark = pytest.mark.django_db


def work(run: Run, name: str, text: str) -> None:
    snapshots.prepare_files(run)
    factories.say(run, f"I write {name}.")
    (Path(run.session.cwd) / name).write_text(text)
    snapshots.record_snapshot(run)
    changes.note_changes(run)
    factories.end_turn(run)


def files_of(page: Node) -> list[str]:
    return [summary.words for summary in page.find_all("summary", **FILE)]


def test_a_turns_line_leads_to_its_diff(run: Run, alice: User, sign_in: SignIn) -> None:
    work(run, "hello.txt", "one\ntwo\n")
    client = sign_in(alice)

    page = parse(client.get(f"/sessions/{run.session_id}/").content.decode())
    [line] = page.find_all("p", **{"class": "turn-changes"})
    [link] = line.find_all("a")

    assert link.text == "1 file changed"
    assert "+2" in line.text
    shown = parse(client.get(link.attributes["href"]).content.decode())
    [file] = shown.find_all("details", **{"class": "changes__file"})
    assert "hello.txt" in file.text
    rows = file.find_all("tr", data_kind="add")
    assert [row.text.strip() for row in rows] == ["1one", "2two"]


def test_hostile_names_and_lines_are_shown_as_text(
    run: Run, alice: User, sign_in: SignIn
) -> None:
    work(run, "<b>\u202e.txt", "<script>alert(1)</script>\n")

    page = sign_in(alice).get(reverse("run_changes", args=[run.pk])).content.decode()

    assert "<script>alert(1)" not in page
    assert "&lt;script&gt;alert(1)" in page
    assert "<b>" not in page
    assert "\u202e" not in page


def test_the_session_shows_the_changes_of_each_version(
    run: Run, alice: User, sign_in: SignIn
) -> None:
    work(run, "one.txt", "1\n")
    edited = branches.edit_message(run.trigger_message, author=alice, text="Rather")
    work(factories.start_turn(run.session), "two.txt", "2\n")
    client = sign_in(alice)
    address = reverse("session_changes", args=[run.session_id])

    shown = parse(client.get(address).content.decode())
    other = parse(client.get(f"{address}?branch={run.branch_id}").content.decode())

    assert files_of(shown) == ["Added two.txt lines added: +1 lines removed: −0"]
    assert files_of(other) == ["Added one.txt lines added: +1 lines removed: −0"]
    [current] = shown.find_all("a", aria_current="page", **{"class": "tabs__tab"})
    assert current.words == "Version 2 (shown)"
    assert client.get(f"{address}?branch={edited.pk}").status_code == 404


def test_pages_say_why_there_is_nothing(run: Run, alice: User, sign_in: SignIn) -> None:
    client = sign_in(alice)

    for address in (
        reverse("run_changes", args=[run.pk]),
        reverse("session_changes", args=[run.session_id]),
    ):
        assert "The files were not recorded." in client.get(address).content.decode()
