"""Markdown to HTML in three steps: markdown-it (no raw HTML), Pygments, nh3.

The parser already refuses raw HTML and dangerous links; the sanitiser is a second,
independent lock that knows nothing of the first. What is too big or nested too deep
to parse in good time is shown as it was written.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from importlib.util import find_spec
from typing import Any
from urllib.parse import urlsplit

import nh3
from django.utils.html import escape, format_html
from django.utils.safestring import SafeString, mark_safe
from markdown_it import MarkdownIt
from markdown_it.renderer import RendererHTML
from markdown_it.token import Token
from markdown_it.utils import EnvType, OptionsDict

from .code import PARSER_FAULTS, highlight_code, language_name
from .text import clean_text, preview, reveal_invisible

MAX_MARKDOWN_CHARS = 400_000
MAX_FENCE_CHARS = 100_000
_MAX_NESTING = 32
# These two patterns cost the parser seconds and mean nothing to a reader.
_DEEP_QUOTE = re.compile(r"^[ \t]*(?:>[ \t]?){12}", re.MULTILINE)
_MANY_BRACKETS = re.compile(r"(?:!?\[){60}")
_LINK_SCHEMES = {"http", "https", "mailto"}
_LANGUAGE = re.compile(r"[A-Za-z0-9_+#.-]{1,40}")

_TAGS = """
    a blockquote br button code del div em h1 h2 h3 h4 h5 h6 hr li ol p pre s span
    strong table tbody td th thead tr ul
"""
_CLEANER = nh3.Cleaner(
    tags=set(_TAGS.split()),
    attributes={
        "a": {"href"},
        "button": {"type", "class", "data-copy"},
        "code": {"class"},
        "div": {"class"},
        "ol": {"start"},
        "pre": {"class", "tabindex"},
        "span": {"class", "title"},
        "td": {"class"},
        "th": {"class"},
    },
    url_schemes=_LINK_SCHEMES,
    link_rel="noopener noreferrer nofollow",
)


class _Renderer(RendererHTML):
    """Our markup for what differs from CommonMark's plain HTML."""

    def text(
        self, tokens: Sequence[Token], idx: int, options: OptionsDict, env: EnvType
    ) -> str:
        return reveal_invisible(tokens[idx].content, in_prose=True)

    def code_inline(
        self, tokens: Sequence[Token], idx: int, options: OptionsDict, env: EnvType
    ) -> str:
        return format_html("<code>{}</code>", reveal_invisible(tokens[idx].content))

    def code_block(
        self, tokens: Sequence[Token], idx: int, options: OptionsDict, env: EnvType
    ) -> str:
        return _code_block(tokens[idx].content, "")

    def fence(
        self, tokens: Sequence[Token], idx: int, options: OptionsDict, env: EnvType
    ) -> str:
        return _code_block(tokens[idx].content, tokens[idx].info)

    def image(
        self, tokens: Sequence[Token], idx: int, options: OptionsDict, env: EnvType
    ) -> str:
        # Loading it would tell a stranger's server who reads this page, and when.
        alt = self.renderInlineAsText(tokens[idx].children, options, env)
        shown = reveal_invisible(alt or "image", in_prose=True)
        return format_html('<span class="image-alt">{}</span>', shown)

    def link_open(
        self, tokens: Sequence[Token], idx: int, options: OptionsDict, env: EnvType
    ) -> str:
        href = str(tokens[idx].attrGet("href") or "")
        # A path in the agent's folder is no page of this site: text, not a link.
        return f'<a href="{escape(href)}">' if _is_web_link(href) else "<a>"

    def th_open(
        self, tokens: Sequence[Token], idx: int, options: OptionsDict, env: EnvType
    ) -> str:
        return _cell_open("th", tokens[idx])

    def td_open(
        self, tokens: Sequence[Token], idx: int, options: OptionsDict, env: EnvType
    ) -> str:
        return _cell_open("td", tokens[idx])


def _is_web_link(href: str) -> bool:
    try:
        return urlsplit(href).scheme in _LINK_SCHEMES
    except ValueError:
        return False


def _cell_open(tag: str, token: Token) -> str:
    style = str(token.attrGet("style") or "")  # the CSP forbids inline styles
    align = style.removeprefix("text-align:")
    if align in {"left", "right", "center"}:
        return f'<{tag} class="align-{align}">'
    return f"<{tag}>"


def _code_block(content: str, info: str) -> str:
    match = _LANGUAGE.match(info.strip())
    language = match[0].lower() if match else None
    html = (
        highlight_code(content, language=language)
        if len(content) <= MAX_FENCE_CHARS
        else reveal_invisible(content)
    )
    return format_html(
        '<div class="code-block"><div class="code-block__header">'
        '<span class="code-block__language">{}</span>'
        '<button type="button" class="code-block__copy" data-copy>Copy</button></div>'
        '<pre class="code-block__body" tabindex="0"><code>{}</code></pre></div>\n',
        language_name(language=language)
        or reveal_invisible(preview(info, 40))
        or "text",
        html,
    )


def _parser() -> MarkdownIt:
    options: dict[str, Any] = {"html": False, "maxNesting": _MAX_NESTING}
    rules = ["table", "strikethrough"]
    if find_spec("linkify_it"):
        options["linkify"] = True
        rules.append("linkify")
    return MarkdownIt("commonmark", options, renderer_cls=_Renderer).enable(rules)


_PARSER = _parser()


def render_markdown(text: str) -> SafeString:
    """Safe HTML of a message's Markdown; of anything else, its text in a `<pre>`."""
    text = clean_text(text)
    if not _is_reasonable(text):
        return _plain(text)
    try:
        tokens = _PARSER.parse(text)
        if any(token.level >= _MAX_NESTING - 1 for token in tokens):
            return _plain(text)  # the parser drops what is nested deeper
        html = _PARSER.renderer.render(tokens, _PARSER.options, {})
    except PARSER_FAULTS:
        return _plain(text)
    return mark_safe(_CLEANER.clean(html))  # noqa: S308 - the sanitiser's output


def _is_reasonable(text: str) -> bool:
    return (
        len(text) <= MAX_MARKDOWN_CHARS
        and _DEEP_QUOTE.search(text) is None
        and _MANY_BRACKETS.search(text) is None
    )


def _plain(text: str) -> SafeString:
    return format_html('<pre class="plain-text">{}</pre>', reveal_invisible(text))
