"""The pages that show what turns and versions changed."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from django.test import Client
from django.urls import reverse

from agents.domain import branches, changes, snapshots
from agents.models import ListedFolder, Run, Snapshot, User
from agents.workspaces.snapshots import take
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


def edit_form(client: Client, run: Run) -> Node:
    address = reverse("message_edit", args=[run.trigger_message_id])
    return parse(client.get(address).content.decode())


def test_an_edit_offers_to_put_files_back_and_says_what_that_does(
    run: Run, alice: User, sign_in: SignIn
) -> None:
    folder = Path(run.session.cwd)
    (folder / "kept.txt").write_text("1\n")
    (folder / "gone.txt").write_text("1\n")
    snapshots.prepare_files(run)
    (folder / "kept.txt").write_text("2\n")
    (folder / "gone.txt").unlink()
    (folder / "new.txt").write_text("something else\n")
    snapshots.record_snapshot(run)
    factories.end_turn(run)

    page = edit_form(sign_in(alice), run)

    [box] = page.find_all("input", name="restore_files")
    assert "checked" not in box.attributes
    [listed] = page.find_all("ul", **{"class": "restore__files"})
    assert [" ".join(li.words.split()[:4]) for li in listed.find_all("li")] == [
        "Comes back gone.txt lines",
        "Is changed back kept.txt",
        "Is removed new.txt lines",
    ]
    assert "taken back" in page.text


def test_an_edit_with_the_box_puts_the_files_back(
    run: Run, alice: User, sign_in: SignIn
) -> None:
    work(run, "one.txt", "1\n")
    client = sign_in(alice)
    address = reverse("message_edit", args=[run.trigger_message_id])

    client.post(address, {"text": "Another way", "restore_files": "on"})
    again = factories.start_turn(run.session)
    snapshots.prepare_files(again)

    assert list(Path(run.session.cwd).iterdir()) == []
    page = client.get(f"/sessions/{run.session_id}/").content.decode()
    assert "1 file is again as it was before this message." in page


def test_an_edit_without_the_box_leaves_them_also_after_one_with_it(
    run: Run, alice: User, sign_in: SignIn
) -> None:
    work(run, "one.txt", "1\n")
    edited = branches.edit_message(
        run.trigger_message,
        author=alice,
        text="Not run yet",
        attachments={snapshots.RESTORE_FLAG: True, "context_paths": ["one.txt"]},
    )

    sign_in(alice).post(
        reverse("message_edit", args=[edited.pk]), {"text": "Another way"}
    )

    last = run.session.messages.get(text="Another way")
    assert last.attachments == {"context_paths": ["one.txt"]}


def test_an_edit_says_when_there_is_nothing_to_put_back(
    run: Run, alice: User, sign_in: SignIn
) -> None:
    client = sign_in(alice)
    factories.end_turn(run)
    unrecorded = edit_form(client, run)

    assert "before this message were not recorded" in unrecorded.text
    assert not unrecorded.find_all("input", name="restore_files")

    Snapshot.objects.create(
        session=run.session,
        branch=run.branch,
        message_seq=0,
        commit=take(Path(run.session.cwd), run.session_id).commit,
    )
    unchanged = edit_form(client, run)

    assert "The files are as they were then." in unchanged.text


def test_two_versions_are_compared_with_what_each_changed(
    run: Run, alice: User, sign_in: SignIn
) -> None:
    work(run, "one.txt", "1\n")
    edited = branches.edit_message(run.trigger_message, author=alice, text="Rather")
    work(factories.start_turn(run.session), "two.txt", "2\n")
    address = reverse("branch_compare", args=[edited.branch_id])

    shown = sign_in(alice).get(f"{address}?with={run.branch_id}").content.decode()

    sides = parse(shown).find_all("section", **{"class": "comparison__side"})
    assert [files_of(side) for side in sides] == [
        ["Added two.txt lines added: +1 lines removed: −0"],
        ["Added one.txt lines added: +1 lines removed: −0"],
    ]
    assert "1 file changed" in sides[0].text


def test_an_edit_warns_that_others_work_in_the_folder(
    alice: User, bob: User, tmp_path: Path, sign_in: SignIn
) -> None:
    folder = ListedFolder.objects.create(name="Project", path=str(tmp_path))
    run = factories.start_turn(factories.make_session(alice, folder=folder))
    work(run, "one.txt", "1\n")
    factories.make_session(bob, "Secret", folder=folder)

    page = edit_form(sign_in(alice), run)

    assert "What others did in this folder is taken back as well." in page.text
    assert "1 other session" in page.text
    assert "Secret" not in page.text
