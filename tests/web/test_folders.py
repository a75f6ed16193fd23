"""Settings → Folders: where agents may work besides workspaces of their own."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from django.conf import settings
from django.test import Client
from django.urls import reverse

from agents.models import AuditEntry, ListedFolder, User
from agents.models.users import Role
from tests.dom import parse
from tests.people import browser, person

pytestmark = pytest.mark.django_db
URL = "/settings/folders/"


@pytest.fixture
def olga() -> User:
    return person("olga", Role.OWNER)


@pytest.fixture
def client(olga: User) -> Client:
    return browser(olga)


def test_a_folder_is_listed_under_its_real_path(
    client: Client, olga: User, tmp_path: Path
) -> None:
    (tmp_path / "real" / ".git").mkdir(parents=True)
    (tmp_path / "real" / ".git" / "HEAD").touch()
    (tmp_path / "link").symlink_to(tmp_path / "real")

    answer = client.post(URL, {"name": "Code", "path": f" {tmp_path}/link "})
    page = parse(client.get(URL).text)

    assert answer["Location"] == reverse("folder_list")
    folder = ListedFolder.objects.get()
    assert (folder.path, folder.added_by) == (str(tmp_path / "real"), olga)
    assert AuditEntry.objects.get(action="folder.added").data["path"] == folder.path
    [row] = page.find_all("tbody")
    assert row.words.startswith(f"Code {folder.path} Yes olga")


@pytest.mark.parametrize("path", ["relative", "/does/not/exist", "/", "/proc/version"])
def test_what_is_no_folder_to_open_is_refused_with_a_sentence(
    client: Client, path: str
) -> None:
    answer = client.post(URL, {"name": "Code", "path": path})

    assert answer.status_code == 422
    [field] = parse(answer.text).find_all("input", name="path")
    assert field.attributes["value"] == path
    assert field.attributes["aria-invalid"] == "true"
    assert not ListedFolder.objects.exists()


def test_the_sites_own_data_is_never_listed(client: Client) -> None:
    answer = client.post(URL, {"name": "Data", "path": str(settings.DATA_DIR)})

    assert "overlaps with the site’s own data" in answer.text
    assert not ListedFolder.objects.exists()


def test_a_folder_is_listed_once(client: Client, tmp_path: Path) -> None:
    for _ in range(2):
        answer = client.post(URL, {"name": "Code", "path": str(tmp_path)})

    assert answer.status_code == 422
    assert ListedFolder.objects.count() == 1


def test_a_removed_folder_keeps_its_files(client: Client, tmp_path: Path) -> None:
    folder = ListedFolder.objects.create(name="Code", path=str(tmp_path))

    client.post(reverse("folder_remove", args=[folder.pk]))

    assert not ListedFolder.objects.exists()
    assert tmp_path.is_dir()
    assert AuditEntry.objects.get(action="folder.removed").data["path"] == str(tmp_path)


@pytest.mark.parametrize(("role", "is_linked"), [("owner", True), ("member", False)])
def test_the_tab_is_there_for_owners(
    role: str, is_linked: bool, sign_in: Callable[[User], Client]
) -> None:
    page = parse(sign_in(person("anna", Role(role))).get("/settings/preferences/").text)

    assert bool(page.find_all("a", href=URL)) is is_linked


def test_the_icon_is_found_where_browsers_look_for_it() -> None:
    answer = browser().get("/favicon.ico")

    assert answer["Location"].endswith(".svg")
