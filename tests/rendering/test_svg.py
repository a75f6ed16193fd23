"""Icons that a model draws: plain shapes come out, everything else is no icon."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agents.rendering.svg import MAX_SVG_CHARACTERS, clean_svg, icon_of

HEAD = '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 24 24">'
PLAIN = '<svg viewBox="0 0 24 24"><path d="M3 3h18"/></svg>'


@pytest.mark.parametrize(
    ("drawn", "clean"),
    [
        (PLAIN, PLAIN),
        (f'{HEAD}<path d="M3 3h18"></path></svg>', PLAIN),
        (f"\n {HEAD}\n  <path d='M3  3h18' />\n</svg>\n", PLAIN),
        ('<SVG width="24" height="24px"><PATH D="M3 3h18"/></SVG>', PLAIN),
        (
            f'{HEAD}<g fill="none" stroke="currentColor" stroke-width="2">'
            '<circle cx="12" cy="12" r="9.5"/><line x1="1" y1="-1" x2="2" y2=".5"/>'
            "</g></svg>",
            '<svg viewBox="0 0 24 24"><g fill="none" stroke="currentColor"'
            ' stroke-width="2"><circle cx="12" cy="12" r="9.5"/>'
            '<line x1="1" y1="-1" x2="2" y2=".5"/></g></svg>',
        ),
    ],
)
def test_plain_shapes_are_written_anew(drawn: str, clean: str) -> None:
    assert clean_svg(drawn) == clean


@pytest.mark.parametrize(
    "inside",
    [
        "",
        "<script>alert(1)</script>",
        '<path d="M3 3" onload="alert(1)"/>',
        '<path d="M3 3" style="fill:url(//evil)"/>',
        '<path d="M3 3" class="x"/>',
        '<path d="M3 3" fill="red"/>',
        '<path d="M3 3" fill="url(#x)"/>',
        '<path d="M3 3" d="M4 4"/>',
        '<path d="M3 3&quot; onload=&quot;x"/>',
        '<path d="javascript:alert(1)"/>',
        '<path d="M3 3">text</path>',
        '<path d="M3 3"><path d="M3 3"/></path>',
        '<path d="M3 3"/></g>',
        '<g><path d="M3 3"/>',
        '<g/><path d="M3 3"/>text',
        '<image href="https://evil.example/x.png"/>',
        '<a href="https://evil.example"><path d="M3 3"/></a>',
        '<foreignObject><p xmlns="http://www.w3.org/1999/xhtml">x</p></foreignObject>',
        '<use href="#icon"/>',
        '<animate attributeName="href" values="javascript:alert(1)"/>',
        "<style>@import url(//evil)</style>",
        "<text>hello</text>",
        "<title>x</title>",
        '<svg viewBox="0 0 24 24"><path d="M3 3"/></svg>',
        '<!-- --><path d="M3 3"/>',
        '<![CDATA[<script>]]><path d="M3 3"/>',
        '<svg:path d="M3 3"/>',
        "<path d=M3/>",
    ],
)
def test_anything_else_is_no_icon(inside: str) -> None:
    assert clean_svg(f"{HEAD}{inside}</svg>") == ""


@pytest.mark.parametrize(
    "text",
    [
        "",
        "an icon",
        "<svg></svg>",
        '<svg viewBox="0 0 48 48"><path d="M3 3"/></svg>',
        '<svg onload="alert(1)"><path d="M3 3"/></svg>',
        '<svg xmlns="http://www.w3.org/1999/xhtml"><path d="M3 3"/></svg>',
        f"<!DOCTYPE svg>{PLAIN}",
        f'<?xml version="1.0"?>{PLAIN}',
        f"{PLAIN}{PLAIN}",
        f"{PLAIN}<script>alert(1)</script>",
        f"```svg\n{PLAIN}\n```",
        '<svg><path d="' + "M3 3" * MAX_SVG_CHARACTERS + '"/></svg>',
        '<svg><path d="' + "M3 3 " * 79 + '"/></svg>',
    ],
)
def test_a_text_around_or_in_place_of_it_is_no_icon(text: str) -> None:
    assert clean_svg(text) == ""


def test_an_icon_on_the_page_has_its_class_and_is_decoration() -> None:
    assert icon_of(PLAIN) == (
        '<svg class="icon" aria-hidden="true" viewBox="0 0 24 24">'
        '<path d="M3 3h18"/></svg>'
    )


def test_what_the_database_holds_is_checked_again() -> None:
    assert icon_of('<svg onload="alert(1)"><path d="M3 3"/></svg>') == ""


WRITTEN = re.compile(
    r'<svg viewBox="0 0 24 24"(?: [a-z-]+="[^"<>&]*")*>'
    r"(?:<(?:path|circle|ellipse|rect|line|polyline|polygon)"
    r'(?: [a-z0-9-]+="[^"<>&]*")*/>'
    r'|<g(?: [a-z-]+="[^"<>&]*")*>|</g>)+</svg>'
)
PIECES = st.sampled_from(
    [
        *(HEAD, "<svg>", "</svg>", "<g>", "</g>", '<path d="M3 3"/>', "<path", "/>"),
        *('<circle r="1"/>', " onload=", '"', "'", "<", ">", "&lt;", "&#60;", "script"),
        *(' d="M0 0"', ' fill="none"', ' href="#"', "<!--", "-->", "javascript:", " "),
        *('<path d="M3 3">', "</path>", "<script>", "</script>", "\x00", "\n", "<a>"),
    ]
)


@given(st.lists(PIECES, max_size=12).map("".join) | st.text(max_size=120))
def test_whatever_comes_out_is_only_shapes(text: str) -> None:
    clean = clean_svg(text)

    assert clean == "" or WRITTEN.fullmatch(clean)
    assert len(clean) <= MAX_SVG_CHARACTERS
    assert clean_svg(clean) == clean
