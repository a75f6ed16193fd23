"""Accounts and folders: what the admin may change."""

from __future__ import annotations

import pytest
from django.conf import settings
from django.urls import reverse

from agents.models import AuditEntry, ListedFolder, User
from agents.models.users import Role
from tests.people import PASSWORD, browser, person

ADD_FOLDER = "/admin/agents/listedfolder/add/"


@pytest.fixture
def olga(db):
    return person("olga", Role.OWNER)


@pytest.fixture
def client(olga):
    return browser(olga)


def change(client, user, **changes):
    data = {
        "username": user.username,
        "email": user.email,
        "role": user.role,
        "security_ceiling": user.security_ceiling,
        "is_active": "on",
    }
    url = reverse("admin:agents_user_change", args=[user.pk])
    return client.post(url, data | changes)


def test_a_role_carries_staff_and_superuser_along(client, olga):
    anna = person("anna")

    change(client, anna, role="owner")
    anna.refresh_from_db()
    assert (anna.role, anna.is_staff, anna.is_superuser) == ("owner", True, True)

    change(client, anna, role="viewer")
    anna.refresh_from_db()
    assert (anna.role, anna.is_staff, anna.is_superuser) == ("viewer", False, False)
    entries = AuditEntry.objects.filter(action="account.changed")
    assert {entry.actor for entry in entries} == {olga}


def test_staff_cannot_be_ticked_past_the_role(client):
    anna = person("anna")

    change(client, anna, is_staff="on", is_superuser="on")

    anna.refresh_from_db()
    assert (anna.is_staff, anna.is_superuser) == (False, False)


def test_the_last_owner_stays(client, olga):
    response = change(client, olga, role="member")

    olga.refresh_from_db()
    assert olga.role == "owner"
    assert "The site needs an owner" in response.text


def test_it_adds_an_account(client):
    response = client.post(
        reverse("admin:agents_user_add"),
        {
            "username": "dora",
            "usable_password": "true",
            "password1": "plenty of letters 7",
            "password2": "plenty of letters 7",
            "role": "member",
            "security_ceiling": "ask",
        },
    )

    dora = User.objects.get(username="dora")
    assert response.status_code == 302
    assert (dora.role, dora.is_staff, dora.security_ceiling) == ("member", False, "ask")
    assert dora.check_password("plenty of letters 7")
    assert dora.preferences.theme == "auto"


@pytest.mark.parametrize("name", ["Olga", "оlga", "olga o"])  # the second is Cyrillic
def test_no_name_may_look_like_another_one(client, name):
    anna = person("anna")

    response = change(client, anna, username=name)

    anna.refresh_from_db()
    assert anna.username == "anna"
    assert response.context["errors"]


def test_nobody_is_deleted_with_their_history(client):
    anna = person("anna")
    url = reverse("admin:agents_user_delete", args=[anna.pk])

    assert client.post(url, {"post": "yes"}).status_code == 403
    assert User.objects.filter(pk=anna.pk).exists()


def test_a_password_set_here_is_audited_and_ends_the_persons_sessions(client, olga):
    anna = person("anna")
    theirs = browser(anna)
    url = reverse("admin:auth_user_password_change", args=[anna.pk])
    new = "plenty of letters 7"

    client.post(url, {"usable_password": "true", "password1": new, "password2": new})

    anna.refresh_from_db()
    assert anna.check_password(new)
    assert not anna.check_password(PASSWORD)
    assert theirs.get("/settings/preferences/").status_code == 302
    entry = AuditEntry.objects.get(action="password.changed")
    assert (entry.actor, entry.target_id) == (olga, str(anna.pk))


def test_a_folder_is_listed_under_its_real_path(client, olga, tmp_path):
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real")

    client.post(ADD_FOLDER, {"name": "Code", "path": str(tmp_path / "link")})

    folder = ListedFolder.objects.get()
    assert (folder.path, folder.added_by) == (str(tmp_path / "real"), olga)
    assert AuditEntry.objects.get(action="folder.added").data["path"] == folder.path


@pytest.mark.parametrize("path", ["relative", "/does/not/exist", "/"])
def test_a_folder_that_cannot_be_opened_is_refused(client, path):
    response = client.post(ADD_FOLDER, {"name": "Code", "path": path})

    assert response.status_code == 200
    assert response.context["errors"]
    assert not ListedFolder.objects.exists()


def test_the_sites_own_data_is_never_listed(client):
    (settings.DATA_DIR / "workspaces").mkdir(exist_ok=True)

    for path in (settings.DATA_DIR, settings.DATA_DIR / "workspaces"):
        client.post(ADD_FOLDER, {"name": "Code", "path": str(path)})

    assert not ListedFolder.objects.exists()


@pytest.mark.parametrize("at_once", [True, False])
def test_a_folder_taken_back_is_audited(client, tmp_path, at_once):
    folder = ListedFolder.objects.create(name="Code", path=str(tmp_path))
    one = reverse("admin:agents_listedfolder_delete", args=[folder.pk])
    several = reverse("admin:agents_listedfolder_changelist")
    selected = {"action": "delete_selected", "_selected_action": [folder.pk]}

    client.post(
        several if at_once else one, {"post": "yes"} | (selected if at_once else {})
    )

    assert not ListedFolder.objects.exists()
    assert AuditEntry.objects.get(action="folder.removed").data["path"] == str(tmp_path)
