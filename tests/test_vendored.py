"""Files that others wrote are listed with their origin, and unchanged."""

from __future__ import annotations

import hashlib
import tomllib
from pathlib import Path

from django.conf import settings

STATIC = Path(settings.STATICFILES_DIRS[0])
ROWS = tomllib.loads((STATIC / "vendor/VENDORED.toml").read_text())["file"]


def test_vendored_files_are_what_their_rows_say():
    for row in ROWS:
        content = (STATIC / row["file"]).read_bytes()
        assert hashlib.sha256(content).hexdigest() == row["sha256"], row["file"]


def test_every_row_says_where_the_file_came_from():
    for row in ROWS:
        assert {"name", "version", "tarball", "licence"} <= set(row)


def test_every_file_in_the_vendor_folder_has_a_row():
    listed = {row["file"] for row in ROWS if row["file"].startswith("vendor/")}
    found = {
        path.relative_to(STATIC).as_posix()
        for path in (STATIC / "vendor").rglob("*")
        if path.is_file() and path.name != "VENDORED.toml"
    }

    assert found == listed
