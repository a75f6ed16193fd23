from __future__ import annotations

from agents.rendering.web_text import html_to_text, title_of

PAGE = """<!doctype html><html><head><title>Bees &amp; more</title>
<style>p {color: red}</style><script>alert(1)</script></head>
<body><h1>Bees</h1><p>They   like
<a href="https://x.example/heather">heather</a>,<br>and <b>thyme</b>.</p>
<ul><li>one</li><li>two</li></ul>
<table><tr><th>a</th><td>b</td></tr></table>
<pre>  x = 1
  y = 2</pre><a href="javascript:alert(1)">no</a></body></html>"""


def test_a_page_becomes_readable_text():
    assert html_to_text(PAGE) == (
        "# Bees\n\nThey like heather (https://x.example/heather),\nand thyme.\n\n"
        "- one\n- two\n\n| a | b\n\n  x = 1\n  y = 2\n\nno"
    )
    assert title_of(PAGE) == "Bees & more"


def test_a_page_without_a_title_has_none():
    assert title_of("<p>hello</p>") == ""
