"""Each check of what is stored: when all is well, and when it is not."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from channels.layers import InMemoryChannelLayer
from django.conf import settings as django_settings
from django.db import connection
from django.db.migrations.loader import MigrationLoader
from django.db.migrations.recorder import MigrationRecorder

from agents.management.doctor import storage
from agents.management.doctor.findings import Finding


class DeafLayer(InMemoryChannelLayer):
    async def group_send(self, group: str, message: dict[str, Any]) -> None:
        """Loses everything, as a full channel does."""


class DownLayer(InMemoryChannelLayer):
    async def group_add(self, group: str, channel: str) -> None:
        raise ConnectionRefusedError("nobody listens")


@pytest.fixture
def data_dir(tmp_path: Path, settings: Any) -> Path:
    settings.DATA_DIR = folder = tmp_path / "data"
    for each in (folder, folder / "workspaces", folder / "cli"):
        each.mkdir(mode=0o700)
    return folder


def test_the_data_folder_must_be_private(data_dir: Path) -> None:
    assert storage.check_data_folder().level == "ok"
    assert [path.name for path in data_dir.iterdir()] == ["workspaces", "cli"]

    (data_dir / "cli").chmod(0o750)
    finding = storage.check_data_folder()
    assert finding.level == "failed"
    assert f"chmod 700 {data_dir / 'cli'}" in finding.text


def test_the_data_folder_must_be_writable(tmp_path: Path, settings: Any) -> None:
    settings.DATA_DIR = tmp_path / "file"
    settings.DATA_DIR.touch()

    assert storage.check_data_folder().level == "failed"


def test_the_data_folders_path_must_be_short(tmp_path: Path, settings: Any) -> None:
    settings.DATA_DIR = tmp_path / ("long" * 25)
    settings.DATA_DIR.mkdir(mode=0o700)

    finding = storage.check_data_folder()
    assert finding.level == "failed"
    assert "too long" in finding.text


@pytest.mark.parametrize("name", storage.SECRETS)
def test_secrets_must_be_for_this_user_alone(data_dir: Path, name: str) -> None:
    (data_dir / name).touch(mode=0o600)
    assert storage.check_secrets().level == "ok"

    (data_dir / name).chmod(0o640)
    finding = storage.check_secrets()
    assert finding.level == "failed"
    assert f"chmod 600 {data_dir / name}" in finding.text


@pytest.mark.django_db
def test_the_database_is_left_as_it_was() -> None:
    before = connection.introspection.table_names()

    assert storage.check_database().level == "ok"
    assert connection.introspection.table_names() == before


@pytest.mark.django_db(transaction=True)
@pytest.mark.database("sqlite")  # query_only is SQLite's
def test_a_database_that_cant_be_written_fails() -> None:
    with connection.cursor() as cursor:
        cursor.execute("PRAGMA query_only = ON")
    try:
        finding = storage.check_database()
    finally:
        with connection.cursor() as cursor:
            cursor.execute("PRAGMA query_only = OFF")

    assert finding.level == "failed"
    assert "readonly" in finding.text


@pytest.mark.django_db
def test_migrations_must_be_those_of_this_code() -> None:
    recorder = MigrationRecorder(connection)
    assert storage.check_migrations().level == "ok"

    recorder.record_applied("agents", "9999_from_the_future")
    newer = storage.check_migrations()
    assert newer.level == "failed"
    assert "agents.9999_from_the_future" in newer.text

    recorder.record_unapplied("agents", "9999_from_the_future")
    (newest,) = MigrationLoader(connection).graph.leaf_nodes("agents")
    recorder.record_unapplied(*newest)
    assert storage.check_migrations().level == "failed"

    recorder.migration_qs.all().delete()
    assert storage.check_migrations() == Finding(
        "warning", "Migrations", "no tables yet: the first start makes them"
    )


def test_the_channel_layer_must_carry_a_message(
    settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(storage, "BELL_SECONDS", 0.1)
    assert storage.check_channel_layer().level == "ok"

    for layer, words in ((DeafLayer, "nothing within"), (DownLayer, "nobody listens")):
        name = f"{__name__}.{layer.__name__}"
        settings.CHANNEL_LAYERS = {"default": {"BACKEND": name}}
        finding = storage.check_channel_layer()
        assert finding.level == "failed"
        assert words in finding.text


def test_static_files_must_be_there(tmp_path: Path, settings: Any) -> None:
    settings.STATIC_ROOT = tmp_path
    settings.STORAGES = {
        **django_settings.STORAGES,
        "staticfiles": {
            "BACKEND": "django.contrib.staticfiles.storage.ManifestStaticFilesStorage"
        },
    }
    assert storage.check_static_files().level == "warning"

    manifest = '{"version": "1.1", "hash": "", "paths": {"css/app.css": "css/a.1.css"}}'
    (tmp_path / "staticfiles.json").write_text(manifest)
    settings.STORAGES = {**settings.STORAGES}  # the storage reads it once
    assert storage.check_static_files().level == "failed"

    (tmp_path / "css").mkdir()
    (tmp_path / "css" / "a.1.css").touch()
    assert storage.check_static_files().level == "ok"
