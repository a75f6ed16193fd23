"""Texts that databases, sockets and pages choke on."""

from __future__ import annotations

from hypothesis import strategies as st

NASTY = ["\x00", "\ud800", "\udfff", "\ud83d\ude00", "\r\n", " ", "é", "😀", "<b>"]

HOSTILE = st.lists(st.sampled_from(NASTY), max_size=6).map("".join) | st.text()
