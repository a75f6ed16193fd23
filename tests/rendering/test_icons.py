"""The icon sprite and its names."""

from __future__ import annotations

import re
from pathlib import Path
from xml.etree import ElementTree

from django.conf import settings

from agents.rendering.icons import ICON_NAMES, icon_svg

ROOT = Path(settings.STATICFILES_DIRS[0]).parent
SVG = "{http://www.w3.org/2000/svg}"
IN_TEMPLATES = re.compile(r"""{%\s*icon\s+["']([^"']+)["']""")
IN_CODE = re.compile(r"""\b(?:icon_svg\(|icon=|_Tool\(|icon_name=)\s*"([^"]+)\"""")


def test_the_names_are_the_sprites_symbols():
    sprite = ElementTree.parse(ROOT / "static/icons/lucide.svg").getroot()  # noqa: S314 - our own file

    symbols = [symbol.get("id") for symbol in sprite.iter(f"{SVG}symbol")]

    assert len(symbols) == len(set(symbols))
    assert set(symbols) == ICON_NAMES


def test_every_icon_that_is_used_exists():
    used = {
        name
        for folder, suffix, pattern in (
            ("agents", "*.py", IN_CODE),
            ("templates", "*.html", IN_TEMPLATES),
        )
        for path in (ROOT / folder).rglob(suffix)
        for name in pattern.findall(path.read_text())
    }

    assert "square-terminal" in used
    assert used - ICON_NAMES == set()


def test_an_icon_is_decoration():
    assert icon_svg("bot") == (
        '<svg class="icon" aria-hidden="true">'
        '<use href="/static/icons/lucide.svg#bot"></use></svg>'
    )


def test_a_labelled_icon_is_an_image_of_that_name():
    assert icon_svg("bell", label="3 <new>") == (
        '<svg class="icon" role="img" aria-label="3 &lt;new&gt;">'
        '<use href="/static/icons/lucide.svg#bell"></use></svg>'
    )


def test_an_unknown_icon_is_a_question_mark():
    assert icon_svg('"><script>') == icon_svg("circle-help")
