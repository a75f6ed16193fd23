"""Bash input, taken apart: every command that it would run, and what is unsure.

The text is parsed with tree-sitter's Bash grammar, never split at characters. Two
kinds of honesty matter more than completeness. `unparsable` says that the text could
not be read at all. A *doubt* is a reason why no rule about single commands may allow
the text, because it does more than run the commands listed in `parts`. Whatever the
reader does not know is a doubt, so a gap in it asks a person instead of passing.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from itertools import pairwise
from typing import Final

import tree_sitter_bash
from tree_sitter import Language, Node, Parser

from .words import Word, commands_within, find_disguise, read_word, source_text
from .wrappers import TooTangledError, reads_script_from_input, unwrap

_LANGUAGE: Final = Language(tree_sitter_bash.language())

MAX_COMMAND_CHARS: Final = 100_000
_MAX_SCRIPT_DEPTH: Final = 8  # bash -c "bash -c …"
_MAX_WORDS: Final = 10_000  # of all commands, those inside of others included

_HARMLESS_TARGETS: Final = frozenset({"/dev/null", "/dev/stdout", "/dev/stderr"})
_NETWORK_TARGET: Final = re.compile(r"/dev/(tcp|udp)/")
# Variables that change language or colours, and no more.
_HARMLESS_VARIABLE: Final = re.compile(r"(LANG|LC_[A-Z]+|TZ|NO_COLOR|FORCE_COLOR|CI)=")
_LOOP_VARIABLE: Final = re.compile(r"[a-z_][a-z0-9_]*")
_BACKTICKS: Final = re.compile(r"`((?:[^`\\]|\\.)*)`", re.DOTALL)

_RESERVED: Final = frozenset(
    {
        *("!", "{", "}", "if", "then", "elif", "else", "fi", "for", "while", "until"),
        *("do", "done", "case", "esac", "in", "select", "function", "[[", "]]"),
    }
)
_PLAIN_STRUCTURE: Final = frozenset(
    {
        "program",
        "list",
        "subshell",
        "negated_command",
        "do_group",
        "if_statement",
        "elif_clause",
        "else_clause",
        "while_statement",
    }
)


@dataclass(frozen=True, slots=True)
class Redirect:
    operator: str
    target: Word

    @property
    def writes(self) -> bool:
        return ">" in self.operator


@dataclass(frozen=True, slots=True)
class Part:
    """One simple command, with nothing hidden in it."""

    words: tuple[Word, ...]
    fed_by: tuple[Part, ...] = ()  # the commands before it in its pipeline
    input_text: str | None = None  # what it reads, where that stands in the text
    transparent: bool = False  # adds nothing to the command that it runs

    @property
    def name(self) -> str:
        return self.words[0].text

    @property
    def program(self) -> str:
        return self.name.rpartition("/")[2]

    @property
    def arguments(self) -> tuple[str, ...]:
        return tuple(word.text for word in self.words[1:])


@dataclass(frozen=True, slots=True)
class ParsedCommand:
    text: str
    parts: tuple[Part, ...] = ()
    redirects: tuple[Redirect, ...] = ()
    doubts: tuple[str, ...] = ()
    unparsable: str | None = None
    fork_bomb: bool = False


class _UnreadableError(Exception):
    """The text, or a script inside of it, is not Bash that can be read."""


@lru_cache(maxsize=512)
def parse_command(text: str) -> ParsedCommand:
    """Read a command line; never raises."""
    if len(text) > MAX_COMMAND_CHARS:
        return ParsedCommand(text, unparsable="The command is too long to be read.")
    reader = _Reader()
    if disguise := find_disguise(text):
        reader.doubts.append(disguise)
    try:
        for variant in _readings(text):
            reader.read_script(variant, depth=0)
    except _UnreadableError as error:
        return reader.result(text, unparsable=str(error))
    except RecursionError:
        return reader.result(text, unparsable="The command is nested too deeply.")
    if reader.comparable and not _second_opinion(text, reader.outer_words):
        reader.doubts.append("Two ways of reading the command disagree.")
    return reader.result(text)


def _readings(text: str) -> Iterable[str]:
    """The text, and the text with line continuations joined as Bash joins them.

    The grammar takes a continuation inside a word for the end of the word.
    """
    yield text
    if "\\\n" in text:
        yield text.replace("\\\n", "")


def _second_opinion(text: str, words: Sequence[Word]) -> bool:
    """Whether `shlex`, another reader of shell words, finds the same ones."""
    lexer = shlex.shlex(text, posix=True, punctuation_chars=True)
    lexer.whitespace_split, lexer.commenters = True, ""
    try:
        tokens = list(lexer)
    except ValueError:
        return False
    return _plain(tokens) == _plain(word.text for word in words)


def _plain(tokens: Iterable[str]) -> list[str]:
    """Tokens without operators, and without backslashes, on which the two differ."""
    return [token.replace("\\", "") for token in tokens if set(token) - set("();|&")]


@dataclass(slots=True)
class _Reader:
    parts: list[Part] = field(default_factory=list)
    redirects: list[Redirect] = field(default_factory=list)
    doubts: list[str] = field(default_factory=list)
    outer_words: list[Word] = field(default_factory=list)
    comparable: bool = True  # shlex could read the text, too
    fork_bomb: bool = False
    depth: int = 0
    words_left: int = _MAX_WORDS
    fed_by: tuple[Part, ...] = ()

    def result(self, text: str, unparsable: str | None = None) -> ParsedCommand:
        return ParsedCommand(
            text,
            parts=tuple(self.parts),
            redirects=tuple(self.redirects),
            doubts=tuple(dict.fromkeys(self.doubts)),
            unparsable=unparsable,
            fork_bomb=self.fork_bomb,
        )

    def read_script(self, text: str, *, depth: int) -> None:
        if depth > _MAX_SCRIPT_DEPTH:
            raise _UnreadableError("The command hides scripts in scripts.")
        if "\0" in text:
            raise _UnreadableError("The command contains a NUL byte.")
        root = Parser(_LANGUAGE).parse(text.encode("utf-8", "replace")).root_node
        outer, self.depth = self.depth, depth
        self.comparable = self.comparable and "\\\n" not in text
        self.visit(root)
        self.depth = outer
        if root.has_error:
            raise _UnreadableError("The command can't be read for certain.")

    def visit(self, node: Node) -> None:
        visitor = _VISITORS.get(node.type)
        if visitor is not None:
            visitor(self, node)
        elif node.is_named and node.type not in ("comment", "ERROR"):
            if node.type not in _PLAIN_STRUCTURE:
                self.doubts.append(_uses(node.type))
            if node.type not in ("program", "list"):
                self.comparable = False
            self.visit_all(node.children)
        elif node.type == "ERROR":
            self.visit_all(node.children)
        elif node.type == "comment":
            self.comparable = False

    def visit_all(self, nodes: Iterable[Node]) -> None:
        for node in nodes:
            self.visit(node)

    def visit_pipeline(self, node: Node) -> None:
        before = self.fed_by
        for child in node.named_children:
            start = len(self.parts)
            self.visit(child)
            self.fed_by = (*self.fed_by, *self.parts[start:])
        self.fed_by = before

    def visit_redirected(self, node: Node) -> None:
        body = node.child_by_field_name("body")
        redirects = [child for child in node.named_children if child != body]
        extra = [word for child in redirects for word in _trailing_words(child)]
        if body is not None and body.type == "command":
            self.read_command(body, extra=extra)
        else:
            if extra:
                self.doubts.append("A redirection is followed by more words.")
            if body is not None:
                self.visit(body)
        for redirect in redirects:
            self.visit(redirect)

    def visit_compound(self, node: Node) -> None:
        self.comparable = False
        if node.children and node.children[0].type == "((":
            self.doubts.append(_uses("arithmetic"))
        self.visit_all(node.named_children)

    def visit_for(self, node: Node) -> None:
        self.comparable = False
        variable = node.child_by_field_name("variable")
        name = source_text(variable) if variable is not None else ""
        if node.children[0].type != "for" or not _LOOP_VARIABLE.fullmatch(name):
            self.doubts.append("It loops in a way that could change other commands.")
        for child in node.named_children:
            if child.type == "do_group":
                self.visit(child)
            else:
                self.read_words([child])

    def visit_function(self, node: Node) -> None:
        name, body = (node.child_by_field_name(key) for key in ("name", "body"))
        self.doubts.append("It defines a function.")
        if name is not None and body is not None:
            calls = commands_within(body).count(source_text(name))
            self.fork_bomb |= calls > 1 and "|" in source_text(body)
            self.visit(body)

    def visit_assignment(self, node: Node) -> None:
        self.comparable = False
        self.doubts.append("It sets a variable.")
        self.visit_substitutions(node)

    def visit_declaration(self, node: Node) -> None:
        """`export`, `declare`, `unset`: commands with a syntax of their own."""
        self.comparable = False
        name = Word(source_text(node.children[0]))
        self.add_part((name, *self.read_words(node.named_children)))

    def visit_command(self, node: Node) -> None:
        self.read_command(node)

    def visit_file_redirect(self, node: Node) -> None:
        self.comparable = False
        operator = next((c.type for c in node.children if not c.is_named), "")
        destination = node.child_by_field_name("destination")
        if destination is None:  # `2>&-` closes a descriptor
            return
        (target,) = self.read_words([destination])
        if operator in (">&", "<&") and target.text.isdigit():
            return
        redirect = Redirect(operator, target)
        self.redirects.append(redirect)
        if redirect.writes and target.text not in _HARMLESS_TARGETS:
            self.doubts.append(f"It writes to a file: {target.text}")
        if _NETWORK_TARGET.match(target.text) or not target.static:
            self.doubts.append("It redirects to a place that can't be told.")

    def visit_heredoc(self, node: Node) -> None:
        self.comparable = False
        quoted, body = False, None
        for child in node.named_children:
            if child.type == "heredoc_start":
                quoted = re.search(r"['\"\\]", source_text(child)) is not None
            elif child.type == "heredoc_body":
                body = child
            elif child.type == "pipeline":  # cat <<END | next
                before, self.fed_by = self.fed_by, (*self.fed_by, *self.parts[-1:])
                self.visit(child)
                self.fed_by = before
            elif child.type == "file_redirect":
                self.visit(child)
            elif child.type != "heredoc_end":
                self.doubts.append("A here-document is followed by more words.")
                self.visit(child)
        if body is not None:
            self.read_input(source_text(body))
            if not quoted:
                self.read_expanding_text(body)

    def visit_herestring(self, node: Node) -> None:
        self.comparable = False
        for word in self.read_words(node.named_children):
            self.read_input(word.text)

    def read_expanding_text(self, body: Node) -> None:
        """Substitutions in a here-document; the grammar overlooks backticks there."""
        self.visit_substitutions(body)
        text = source_text(body)
        if "`" in text:
            self.doubts.append("Backticks stand in a here-document.")
        for script in _BACKTICKS.findall(text):
            self.read_script(script, depth=self.depth + 1)

    def read_input(self, text: str) -> None:
        """Give a text to the last command; a shell would run it."""
        if not self.parts:
            return
        last = self.parts[-1] = replace(self.parts[-1], input_text=text)
        if reads_script_from_input(last.words):
            self.read_script(text, depth=self.depth + 1)

    def read_command(self, node: Node, extra: Sequence[Node] = ()) -> None:
        words: list[Node] = []
        redirects: list[Node] = []
        for child in node.children:
            if child.type in ("file_redirect", "herestring_redirect"):
                redirects.append(child)
                words.extend(_trailing_words(child))
            elif child.type == "variable_assignment":
                self.read_environment(child)
            elif child.type == "subshell":  # time (…)
                self.doubts.append(_uses("subshell"))
                self.visit(child)
            elif child.is_named:
                words.append(child)
            else:
                self.doubts.append("It is written in an unusual way.")
        if _touching(words):
            self.doubts.append("Its words can't be told apart.")
        self.add_part(self.read_words([*words, *extra]))
        self.visit_all(redirects)

    def read_environment(self, node: Node) -> None:
        self.comparable = False
        word = read_word(node)
        if not (word.static and _HARMLESS_VARIABLE.match(word.text)):
            self.doubts.append("It runs a command in a changed environment.")
        self.visit_substitutions(node)

    def read_words(self, nodes: Iterable[Node]) -> tuple[Word, ...]:
        words = []
        for node in nodes:
            words.append(read_word(node))
            self.visit_substitutions(node)
        if self.depth == 0:
            self.outer_words.extend(words)
        self.comparable = self.comparable and all(word.static for word in words)
        return tuple(words)

    def visit_substitutions(self, node: Node) -> None:
        """Find the commands inside of a word."""
        if node.type in ("command_substitution", "process_substitution"):
            before, self.fed_by = self.fed_by, ()
            self.visit_all(node.named_children)
            self.fed_by = before
            return
        if node.type == "expansion" and not _is_plain_expansion(node):
            self.doubts.append("It uses a parameter expansion with an operator.")
        elif node.type in ("arithmetic_expansion", "subscript", "array"):
            self.doubts.append(_uses(node.type))
        for child in node.named_children:
            self.visit_substitutions(child)

    def add_part(self, words: tuple[Word, ...], nesting: int = 0) -> None:
        """Note a command, then the commands that it runs in turn."""
        if not words:
            return
        self.words_left -= len(words)
        if self.words_left < 0 or nesting > _MAX_SCRIPT_DEPTH:
            raise _UnreadableError("The command is too tangled to be read.")
        if not words[0].static:
            self.doubts.append("Which command runs is only known when it runs.")
        if words[0].text in _RESERVED:  # the grammar takes `time { rm x; }` for words
            self.doubts.append(_uses(words[0].text))
            self.add_part(words[1:], nesting + 1)
        self.add_inner(words, nesting)

    def add_inner(self, words: tuple[Word, ...], nesting: int) -> None:
        try:
            found = unwrap(words)
        except TooTangledError as error:
            raise _UnreadableError("The command is too tangled to be read.") from error
        part = Part(words, fed_by=self.fed_by, transparent=found.transparent)
        self.parts.append(part)
        self.doubts.extend(found.doubts)
        for inner in found.commands:
            self.add_part(inner, nesting + 1)
        for script in found.scripts:
            self.read_script(script, depth=self.depth + 1)
        if reads_script_from_input(words):
            for text in filter(None, map(_printed_text, self.fed_by)):
                self.read_script(text, depth=self.depth + 1)


def _touching(nodes: Sequence[Node]) -> bool:
    """Whether two words stand together without a blank: one word to the shell."""
    return any(before.end_byte == after.start_byte for before, after in pairwise(nodes))


def _trailing_words(redirect: Node) -> list[Node]:
    """What the grammar takes for further targets are arguments of the command."""
    if redirect.type != "file_redirect":
        return []
    return redirect.children_by_field_name("destination")[1:]


def _is_plain_expansion(node: Node) -> bool:
    return [child.type for child in node.children] == ["${", "variable_name", "}"]


def _printed_text(part: Part) -> str | None:
    """The text that a command passes on, where it is plain to see."""
    if part.program in ("echo", "printf"):
        return " ".join(part.arguments)
    return part.input_text if part.program == "cat" else None


def _uses(node_type: str) -> str:
    return f"It uses a part of the shell that rules can't judge: {node_type}."


_VISITORS: Final[Mapping[str, Callable[[_Reader, Node], None]]] = {
    "command": _Reader.visit_command,
    "pipeline": _Reader.visit_pipeline,
    "redirected_statement": _Reader.visit_redirected,
    "compound_statement": _Reader.visit_compound,
    "for_statement": _Reader.visit_for,
    "function_definition": _Reader.visit_function,
    "variable_assignment": _Reader.visit_assignment,
    "variable_assignments": _Reader.visit_assignment,
    "declaration_command": _Reader.visit_declaration,
    "unset_command": _Reader.visit_declaration,
    "file_redirect": _Reader.visit_file_redirect,
    "heredoc_redirect": _Reader.visit_heredoc,
    "herestring_redirect": _Reader.visit_herestring,
    "command_substitution": _Reader.visit_substitutions,
    "process_substitution": _Reader.visit_substitutions,
    "word": _Reader.visit_substitutions,
}
