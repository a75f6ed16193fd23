"""What is collected for serving: one stylesheet and one script, whole."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings
from django.core.management import call_command

STATIC = Path(settings.STATICFILES_DIRS[0])
ON_THEIR_OWN = {"css/app.css", "css/admin.css", "js/app.js"}


@pytest.fixture
def collected(settings: Any, tmp_path: Path) -> dict[str, str]:
    """Source name -> the text that is served for it."""
    settings.STATIC_ROOT = tmp_path
    settings.STORAGES = {
        **settings.STORAGES,
        "staticfiles": {"BACKEND": "openswarm.storage.JoiningStorage"},
    }
    settings.STATICFILES_FINDERS = [
        "django.contrib.staticfiles.finders.FileSystemFinder"  # not the admin's
    ]
    call_command("collectstatic", interactive=False, verbosity=0)
    served: dict[str, str] = json.loads((tmp_path / "staticfiles.json").read_text())[
        "paths"
    ]
    return {
        name: (tmp_path / served[name]).read_text()
        for name in ("css/app.css", "js/app.js")
    }


def test_nothing_is_left_to_fetch(collected: dict[str, str]) -> None:
    assert "@import" not in collected["css/app.css"]
    assert re.search(r"^import ", collected["js/app.js"], re.MULTILINE) is None


def test_every_file_is_in_its_whole(collected: dict[str, str]) -> None:
    pieces = {
        path.relative_to(STATIC).as_posix(): path.read_text().strip()
        for path in [*STATIC.glob("css/**/*.css"), *STATIC.glob("js/*.js")]
    }
    whole = "".join(collected.values())

    assert {name for name, text in pieces.items() if text not in whole} == ON_THEIR_OWN


def test_layers_and_media_are_kept(collected: dict[str, str]) -> None:
    css = collected["css/app.css"]

    assert css.index("@layer reset, tokens, base") < css.index("@layer reset {")
    assert re.search(r"@media print \{\n@layer pages \{", css)
    assert css.count("{") == css.count("}")
