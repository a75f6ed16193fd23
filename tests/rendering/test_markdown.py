"""Markdown of models and tools."""

from __future__ import annotations

import pytest

from agents.rendering.markdown import render_markdown
from tests.rendering.harmless import assert_harmless, read, text_of
from tests.rendering.hostile import BIG, HOSTILE


@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE)
def test_hostile_text_renders_harmless(text):
    assert_harmless(render_markdown(text))


@pytest.mark.parametrize("text", BIG.values(), ids=BIG)
def test_big_text_is_shown_whole_and_bounded(text):
    html = render_markdown(text)

    assert_harmless(html)
    assert len(html) < 12 * len(text) + 1_000_000


def test_prose_becomes_elements():
    html = render_markdown("# Title\n\n*a* **b** ~~c~~ `d`\n\n3. one\n4. two")

    assert html == (
        "<h1>Title</h1>\n"
        "<p><em>a</em> <strong>b</strong> <s>c</s> <code>d</code></p>\n"
        '<ol start="3">\n<li>one</li>\n<li>two</li>\n</ol>\n'
    )


def test_web_links_tell_the_other_site_nothing():
    html = render_markdown("[site](https://example.org/?a=1&b=2)")

    assert html == (
        '<p><a href="https://example.org/?a=1&amp;b=2"'
        ' rel="noopener noreferrer nofollow">site</a></p>\n'
    )


@pytest.mark.parametrize("target", ["src/app.py", "/settings/", "#top", "//e.example"])
def test_a_path_is_no_link_into_our_site(target):
    links = [attrs for tag, attrs in read(render_markdown(f"[x]({target})")).found]

    assert all("href" not in attrs for attrs in links)


def test_a_remote_image_is_replaced_by_its_words():
    html = render_markdown("![a chart](https://evil.example/pixel.png)")

    assert html == '<p><span class="image-alt">a chart</span></p>\n'


def test_a_fence_names_its_language_and_can_be_copied():
    html = render_markdown("```python\nreturn 1\n```")

    assert html == (
        '<div class="code-block"><div class="code-block__header">'
        '<span class="code-block__language">Python</span>'
        '<button type="button" class="code-block__copy" data-copy="">Copy</button>'
        '</div><pre class="code-block__body" tabindex="0"><code>'
        '<span class="tok-k">return</span> <span class="tok-mi">1</span>\n'
        "</code></pre></div>\n"
    )


def test_a_hidden_character_in_the_name_of_a_language_is_shown():
    html = render_markdown("```\u202e\nx\n```")

    assert "\u202e" not in html
    assert text_of(html) == "U+202ECopyx\n\n"


def test_a_fence_in_an_unknown_language_is_plain():
    html = render_markdown("```klingon\nqapla' <b>\n```")

    assert "tok-" not in html
    assert text_of(html) == "klingonCopyqapla' <b>\n\n"


def test_table_cells_are_aligned_by_class():
    html = render_markdown("|a|b|\n|:-:|--:|\n|1|2|")

    assert '<th class="align-center">a</th>' in html
    assert '<td class="align-right">2</td>' in html


def test_hidden_characters_are_shown_in_prose_and_code():
    html = render_markdown("x\u202ey `a\u200db`\n\n```\nc\u200bd\n```")

    assert "xU+202Ey aU+200Db" in text_of(html)
    assert "cU+200Bd" in text_of(html)


@pytest.mark.parametrize(
    "text",
    [
        "> " * 50 + "deep",
        "\n".join(" " * 2 * depth + f"- level {depth}" for depth in range(100)),
        "word " * 100_000,
    ],
    ids=["quotes", "lists", "length"],
)
def test_what_is_too_much_for_the_parser_is_shown_as_written(text):
    html = render_markdown(text)

    assert html.startswith('<pre class="plain-text">')
    assert text_of(html) == text


def test_a_huge_fence_is_shown_plain():
    html = render_markdown("```python\n" + "x = 1\n" * 20_000 + "```")

    assert "tok-" not in html
    assert text_of(html).count("x = 1\n") == 20_000
