"""The pages of a session's worktree."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from django.test import Client
from django.urls import reverse

from agents.domain import workspaces
from agents.models import AgentSession, ListedFolder, Share, User
from agents.models.sessions import ShareRight
from tests import factories
from tests.dom import Node, parse

SignIn = Callable[[User], Client]

pytestmark = pytest.mark.django_db


def git(folder: Path | str, *arguments: str) -> None:
    identity = ["-c", "user.name=t", "-c", "user.email=t@localhost"]
    subprocess.run(["git", "-C", folder, *identity, *arguments], check=True)


@pytest.fixture
def repository(tmp_path: Path) -> ListedFolder:
    (tmp_path / "a.txt").write_text("one\n")
    for command in (["init", "-q"], ["add", "-A"], ["commit", "-qm", "first"]):
        git(tmp_path, *command)
    return ListedFolder.objects.create(name="Project", path=str(tmp_path))


@pytest.fixture
def in_worktree(alice: User, repository: ListedFolder) -> AgentSession:
    return factories.make_session(alice, folder=repository, worktree=True)


@pytest.fixture
def folder(in_worktree: AgentSession) -> Path:
    """The worktree, with one commit of its own and one file that is not committed."""
    folder = workspaces.ensure_folder(in_worktree)
    (folder / "b.txt").write_text("two\n")
    git(folder, "add", "-A")
    git(folder, "commit", "-qm", "second")
    (folder / "c.txt").write_text("three\n")
    return folder


def page_at(client: Client, name: str, session: AgentSession) -> Node:
    return parse(client.get(reverse(name, args=[session.pk])).content.decode())


def test_it_shows_how_far_the_worktree_is(
    folder: Path, in_worktree: AgentSession, alice: User, sign_in: SignIn
) -> None:
    client = sign_in(alice)

    page = page_at(client, "session_worktree", in_worktree)

    [facts] = page.find_all("dl", **{"class": "facts"})
    assert f"Branch openswarm/{str(in_worktree.pk)[:8]}" in facts.words
    assert "Ahead 1 commit, 1 of them on no other branch" in facts.words
    assert "Not committed 1 file" in facts.words
    paths = [node.text for node in page.find_all("span", **{"class": "diff__path"})]
    assert paths == ["b.txt", "c.txt"]
    detail = page_at(client, "session_detail", in_worktree)
    address = reverse("session_worktree", args=[in_worktree.pk])
    assert [link.words for link in detail.find_all("a", href=address)] == ["Worktree"]


def test_it_says_how_to_take_the_work_over_as_things_stand(
    in_worktree: AgentSession,
    repository: ListedFolder,
    alice: User,
    sign_in: SignIn,
) -> None:
    client = sign_in(alice)
    folder = workspaces.ensure_folder(in_worktree)
    branch = f"openswarm/{str(in_worktree.pk)[:8]}"

    def says() -> str:
        return page_at(client, "session_worktree", in_worktree).words

    assert "nothing to take over yet" in says()

    (folder / "b.txt").write_text("two\n")
    assert f"commit this file first: tell the agent to, or do it in {folder}" in says()

    git(folder, "add", "-A")
    git(folder, "commit", "-qm", "second")
    assert "All is committed." in says()
    assert f"merge the branch in the repository: git merge {branch}" in says()

    git(repository.path, "merge", "-q", branch)
    assert "nothing left to take over" in says()


def test_a_worktree_whose_repository_was_moved_says_which(
    folder: Path,
    in_worktree: AgentSession,
    tmp_path: Path,
    alice: User,
    sign_in: SignIn,
) -> None:
    (tmp_path / ".git").rename(tmp_path / "elsewhere")

    page = page_at(sign_in(alice), "session_worktree", in_worktree)

    assert "The worktree can’t be read" in page.words
    assert f"The folder {tmp_path} is not a git repository" in page.words


def test_before_the_first_turn_there_is_none_yet(
    in_worktree: AgentSession, alice: User, sign_in: SignIn
) -> None:
    page = page_at(sign_in(alice), "session_worktree", in_worktree)

    assert "It is made when the next turn begins." in page.text
    assert "Discard" not in page.text


def test_other_sessions_have_no_such_page(
    session: AgentSession, alice: User, sign_in: SignIn
) -> None:
    client = sign_in(alice)

    for name in ("session_worktree", "worktree_discard"):
        address = reverse(name, args=[session.pk])
        assert client.get(address).status_code == 404


def test_discarding_says_what_is_lost_and_does_it(
    folder: Path, in_worktree: AgentSession, alice: User, sign_in: SignIn
) -> None:
    client = sign_in(alice)
    factories.end_turn(factories.start_turn(in_worktree))
    page = page_at(client, "worktree_discard", in_worktree)
    [seen] = page.find_all("input", name="seen")

    answer = client.post(
        reverse("worktree_discard", args=[in_worktree.pk]),
        {"seen": seen.attributes["value"]},
    )

    lost = "1 commit that no other branch has and 1 file that is not committed"
    assert lost in " ".join(page.text.split())
    assert answer["Location"] == reverse("session_detail", args=[in_worktree.pk])
    assert not folder.exists()


def test_what_came_after_the_question_is_not_lost(
    folder: Path, in_worktree: AgentSession, alice: User, sign_in: SignIn
) -> None:
    client = sign_in(alice)
    address = reverse("worktree_discard", args=[in_worktree.pk])
    [seen] = page_at(client, "worktree_discard", in_worktree).find_all(
        "input", name="seen"
    )
    (folder / "late.txt").touch()

    answer = client.post(address, {"seen": seen.attributes["value"]})

    assert answer.status_code == 409
    assert "It has changed since. Look again." in answer.content.decode()
    assert (folder / "late.txt").exists()
    [again] = parse(answer.content.decode()).find_all("input", name="seen")
    assert client.post(address, {"seen": again.attributes["value"]}).status_code == 302
    assert not folder.exists()


def test_nothing_is_discarded_without_the_question(
    folder: Path, in_worktree: AgentSession, alice: User, sign_in: SignIn
) -> None:
    address = reverse("worktree_discard", args=[in_worktree.pk])

    assert sign_in(alice).post(address).status_code == 409
    assert folder.exists()


def test_who_may_only_look_does_not_discard(
    folder: Path, in_worktree: AgentSession, bob: User, sign_in: SignIn
) -> None:
    Share.objects.create(session=in_worktree, user=bob, right=ShareRight.VIEW)
    client = sign_in(bob)

    page = page_at(client, "session_worktree", in_worktree)
    refused = client.post(reverse("worktree_discard", args=[in_worktree.pk]))

    assert "Discard" not in page.text
    assert refused.status_code == 403
    assert folder.exists()


def test_deleting_says_what_stays_of_the_worktree(
    folder: Path, in_worktree: AgentSession, alice: User, sign_in: SignIn
) -> None:
    page = page_at(sign_in(alice), "session_delete", in_worktree)

    words = " ".join(page.text.split())
    assert "with 1 file that is not committed" in words
    assert "stays in the repository, because 1 commit of it is on no other" in words


def test_deleting_an_empty_worktree_says_that_its_branch_goes(
    in_worktree: AgentSession, alice: User, sign_in: SignIn
) -> None:
    workspaces.ensure_folder(in_worktree)

    page = page_at(sign_in(alice), "session_delete", in_worktree)

    words = " ".join(page.text.split())
    assert "Its worktree is removed; all in it is committed." in words
    assert "is deleted: it has no commits that are not on another branch" in words


def test_pages_warn_of_a_folder_that_is_shared(
    repository: ListedFolder, alice: User, bob: User, sign_in: SignIn
) -> None:
    client = sign_in(alice)
    mine = factories.make_session(alice, "Mine", folder=repository)
    alone = page_at(client, "session_detail", mine)
    factories.make_session(bob, "Secret of bob", folder=repository)

    shared = page_at(client, "session_detail", mine)
    form = parse(client.get(reverse("session_new")).content.decode())

    warnings = [
        [node.words for node in page.find_all("div", data_kind="stalled")]
        for page in (alone, shared, form)
    ]
    assert warnings[0] == []
    assert "1 other session They see and overwrite" in warnings[1][0]
    assert "Project: Mine and 1 more session" in warnings[2][0]
    assert "Secret" not in shared.text + form.text
