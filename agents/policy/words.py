"""Shell words: what a piece of a command says, and how sure that is.

A word is *static* when the shell can only see the text given here. Variables, globs,
braces and substitutions make it dynamic: the text is then the source's own, good for
refusing, never for allowing.
"""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass
from typing import Final

from tree_sitter import Node

# Wildcards and braces that the shell expands when they stand outside quotes.
_EXPANDS: Final = re.compile(r"(?<!\\)(?:\\\\)*[*?\[{]")
_ESCAPED: Final = re.compile(r"\\(\n|.)", re.DOTALL)
_ESCAPED_IN_QUOTES: Final = re.compile(r'\\(["\\$`\n])')
# Letters of these scripts look like Latin ones.
_LOOKALIKE_SCRIPTS: Final = ("CYRILLIC", "GREEK", "ARMENIAN", "CHEROKEE")


@dataclass(frozen=True, slots=True)
class Word:
    text: str
    static: bool = True
    sources: tuple[str, ...] = ()  # the commands whose output becomes part of it

    def then(self, other: Word) -> Word:
        return Word(
            self.text + other.text,
            self.static and other.static,
            self.sources + other.sources,
        )


def source_text(node: Node) -> str:
    return (node.text or b"").decode("utf-8", "replace")


def read_word(node: Node) -> Word:
    """The word that a node of the syntax tree stands for."""
    text = source_text(node)
    match node.type:
        case "number":
            return Word(text)
        case "word":
            return _read_plain(text)
        case "raw_string":
            return Word(text[1:-1])
        case "string":
            return _read_string(node)
        case "ansi_c_string":
            return Word(text[2:-1], static="\\" not in text)
        case "concatenation":
            return _read_concatenation(node)
        case "command_name":
            return read_word(node.children[0]) if node.children else Word("", False)
        case "variable_assignment":
            return Word(text, static=_has_plain_value(node))
        case "variable_name":
            return Word(text)
        case _:
            return Word(text, static=False, sources=commands_within(node))


def commands_within(node: Node) -> tuple[str, ...]:
    """The names of all commands below a node."""
    names: list[str] = []
    pending = [node]
    while pending:
        current = pending.pop()
        if current.type == "command_name":
            names.append(read_word(current).text)
        pending.extend(current.children)
    return tuple(names)


def find_disguise(text: str) -> str | None:
    """What in a text could make a person read another command than the shell does."""
    for char in text:
        if char in "\n\t" or " " <= char <= "~":
            continue
        kind = unicodedata.category(char)
        if kind in ("Cc", "Cf", "Cs", "Co", "Cn", "Zs", "Zl", "Zp"):
            return "It contains invisible or control characters."
        if unicodedata.normalize("NFKC", char).isascii():
            return "It contains characters that only look like ordinary ones."
    if any(_mixes_scripts(word) for word in text.split()):
        return "It mixes letters of different alphabets in one word."
    return None


def _mixes_scripts(word: str) -> bool:
    if word.isascii() or not re.search(r"[A-Za-z]", word):
        return False
    names = (unicodedata.name(char, "") for char in word if not char.isascii())
    return any(name.startswith(_LOOKALIKE_SCRIPTS) for name in names)


def _read_plain(text: str) -> Word:
    static = _EXPANDS.search(text) is None or text == "{}"
    return Word(_ESCAPED.sub(_unescaped, text), static)


def _read_concatenation(node: Node) -> Word:
    if source_text(node) == "{}":  # not a brace expansion: find's and xargs' own
        return Word("{}")
    word = Word("")
    for child in node.children:
        word = word.then(read_word(child))
    return word


def _read_string(node: Node) -> Word:
    """Join a quoted string; what the tree leaves out between nodes is literal too."""
    raw = node.text or b""
    word, position = Word(""), 1
    for child in node.named_children:
        start = child.start_byte - node.start_byte
        word = word.then(_read_quoted(raw[position:start]))
        if child.type == "string_content":
            word = word.then(_read_quoted(child.text or b""))
        else:
            word = word.then(read_word(child))
        position = child.end_byte - node.start_byte
    return word.then(_read_quoted(raw[position:-1]))


def _read_quoted(raw: bytes) -> Word:
    text = raw.decode("utf-8", "replace")
    return Word(_ESCAPED_IN_QUOTES.sub(_unescaped, text))


def _unescaped(match: re.Match[str]) -> str:
    return "" if match[1] == "\n" else match[1]


def _has_plain_value(node: Node) -> bool:
    name, value = node.child_by_field_name("name"), node.child_by_field_name("value")
    plain_name = name is not None and name.type == "variable_name"
    return plain_name and (value is None or read_word(value).static)
