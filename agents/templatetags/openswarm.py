"""The template library `{% load openswarm %}`: thin names for `agents.rendering`.

{% icon "shield-check" %}   {% icon "bell" label="Needs you" %}
{% dom_id "message" message.public_id "body" %}
{{ text|markdown }}  {{ text|terminal }}  {{ text|reveal }}  {{ data|pretty_json }}
{{ micros|usd }}  {{ count|tokens }}  {{ ms|duration_ms }}  {{ at|relative_time }}
"""

from __future__ import annotations

from typing import Any

from django import template
from django.utils.safestring import SafeString

from agents.rendering import dom, figures
from agents.rendering.code import highlight_code
from agents.rendering.icons import icon_svg
from agents.rendering.markdown import render_markdown
from agents.rendering.terminal import render_terminal
from agents.rendering.text import json_text, reveal_invisible, truncate_bytes

_MAX_JSON_BYTES = 64 * 1024

register = template.Library()
register.simple_tag(icon_svg, name="icon")
register.simple_tag(dom.dom_id, name="dom_id")
register.filter("usd", figures.usd)
register.filter("tokens", figures.tokens)
register.filter("duration_ms", figures.duration_ms)
register.filter("relative_time", figures.relative_time)


@register.filter
def markdown(value: str | None) -> SafeString:
    return render_markdown(value or "")


@register.filter
def terminal(value: str | None) -> SafeString:
    return render_terminal(value or "")


@register.filter
def reveal(value: object) -> SafeString:
    """The text with hidden characters made visible; HTML we made stays as it is."""
    if isinstance(value, SafeString):
        return value
    return reveal_invisible("" if value is None else str(value))


@register.filter
def pretty_json(value: Any) -> SafeString:
    """Highlighted, indented JSON for a `<pre>`; cut at 64 kB."""
    text, was_cut = truncate_bytes(json_text(value), _MAX_JSON_BYTES)
    return highlight_code(f"{text}\n…" if was_cut else text, language="json")
