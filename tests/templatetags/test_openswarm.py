"""`{% load openswarm %}` in templates."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest
from django.template import Context, Template
from django.utils.safestring import mark_safe


def render(source: str, **context: Any) -> str:
    return Template("{% load openswarm %}" + source).render(Context(context))


@pytest.mark.parametrize(
    ("source", "value", "html"),
    [
        ("{{ value|markdown }}", "*a*", "<p><em>a</em></p>\n"),
        ("{{ value|markdown }}", None, ""),
        ("{{ value|terminal }}", "\x1b[31ma", '<span class="ansi-fg-1">a</span>'),
        ("{{ value|terminal }}", None, ""),
        ("{{ value|reveal }}", "<b>", "&lt;b&gt;"),
        ("{{ value|reveal }}", None, ""),
        ("{{ value|reveal }}", mark_safe("<b>a</b>"), "<b>a</b>"),
        ("{{ value|usd }}", 12_300, "$0.0123"),
        ("{{ value|usd }}", 1, "&lt;$0.0001"),
        ("{{ value|tokens }}", 12_345, "12.3k"),
        ("{{ value|duration_ms }}", 850, "850 ms"),
        ("{{ value|pretty_json }}", 1, '<span class="tok-mi">1</span>'),
        ("{% dom_id 'block' value 'text' %}", 7, "block-7-text"),
        ("{% dom_id 'block' value %}", "<", "block-_3c_"),
    ],
)
def test_tags_and_filters_render(source, value, html):
    assert render(source, value=value) == html


def test_an_icon_can_have_a_label():
    assert render("{% icon 'bell' label=words %}", words="<new>") == (
        '<svg class="icon" role="img" aria-label="&lt;new&gt;">'
        '<use href="/static/icons/lucide.svg#bell"></use></svg>'
    )


def test_a_time_keeps_its_markup():
    html = render("{{ at|relative_time }}", at=datetime(2020, 1, 2, tzinfo=UTC))

    assert html.startswith('<time datetime="2020-01-02T00:00:00+00:00" title="')


def test_long_json_is_cut():
    html = render("{{ value|pretty_json }}", value="x" * 100_000)

    assert html.endswith("…")
    assert len(html) < 70_000
