"""Standing rules: which calls they speak about, and the rule a card would create.

A rule is written `Tool(matcher)`. Deny beats ask, ask beats allow, whatever the
scope. Matchers by tool: Bash `git status:*` (that command with any arguments) or an
exact text; file tools a glob; `domain:` for fetch; the kind of agent for Agent.
A matcher that makes no sense for its tool never allows, and always tightens.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from .calls import ToolCall, is_path_tool, named_path
from .commands import ParsedCommand, Part, parse_command
from .modes import Effect
from .paths import Place, UnusablePathError, lexical, real
from .tools import PERSON_TOOLS, canonical_name

MAX_MATCHER_CHARS: Final = 1000
_NOTATION: Final = re.compile(r"([^()\s]+)(?:\((.*)\))?", re.DOTALL)
PREFIX_MARK: Final = ":*"

# Programs that only look: allowing them with any argument gives nothing away.
_LOOKERS: Final = frozenset(
    {
        *("basename", "cat", "cut", "date", "df", "diff", "dirname", "du", "echo"),
        *("file", "find", "grep", "head", "id", "jq", "ls", "nl", "ps"),
        *("pwd", "readlink", "realpath", "rg", "sort", "stat", "tail", "tr", "tree"),
        *("true", "uname", "uniq", "wc", "which", "whoami"),
    }
)
# Programs whose first argument is the actual command: `git status`, `npm test`.
_TWO_WORD_PROGRAMS: Final = frozenset(
    {"cargo", "git", "go", "make", "npm", "pip", "pnpm", "poetry", "uv", "yarn"}
)
# ... unless that command runs anything, or what it undoes can't be brought back.
_ONLY_EXACTLY: Final = frozenset(
    {
        *("bisect", "clean", "config", "dlx", "exec", "filter-branch", "push"),
        *("rebase", "reset", "run", "submodule", "tool", "x"),
    }
)
_SUBCOMMAND: Final = re.compile(r"[a-z][a-z0-9_-]*")


class RuleScope(StrEnum):
    SESSION = "session"
    MODE = "mode"
    USER = "user"
    SITE = "site"


@dataclass(frozen=True, slots=True)
class Rule:
    tool: str  # a tool's name, `mcp__server` for all of a server, `*` for all tools
    effect: Effect
    scope: RuleScope = RuleScope.SESSION
    matcher: str = ""  # empty: every call of the tool
    rule_id: str | None = None

    def __str__(self) -> str:
        return f"{self.tool}({self.matcher})" if self.matcher else self.tool

    @classmethod
    def parse(
        cls,
        notation: str,
        effect: Effect,
        scope: RuleScope = RuleScope.SESSION,
        rule_id: str | None = None,
    ) -> Rule:
        """Read `Tool` or `Tool(matcher)`.

        Raises:
            ValueError: it is neither.
        """
        found = _NOTATION.fullmatch(notation.strip())
        if found is None:
            raise ValueError(f"Not a rule: {notation!r}")
        matcher = (found[2] or "").strip()
        if found[1] == "Bash" and matcher == "*":
            matcher = ""
        return cls(found[1], effect, scope, matcher, rule_id)


def find_tightening(
    rules: Iterable[Rule], call: ToolCall, place: Place, effect: Effect
) -> Rule | None:
    """The first rule of an effect, deny or ask, that speaks about the call."""
    for rule in rules:
        if rule.effect is effect and _tightens(rule, call, place):
            return rule
    return None


def find_allowing(rules: Iterable[Rule], call: ToolCall, place: Place) -> Rule | None:
    """The rule that allows the call.

    A compound command is allowed by several rules together, each part by one of them;
    the rule of its first part is then the answer.
    """
    allowing = [
        rule
        for rule in rules
        if rule.effect is Effect.ALLOW and _names_tool(rule, call.tool_name)
    ]
    if call.tool_name == "Bash":
        return _find_allowing_command(allowing, call)
    return next((rule for rule in allowing if _allows(rule, call, place)), None)


def would_match(rule: Rule, call: ToolCall, place: Place) -> bool:
    """Whether the rule, standing alone, speaks about the call."""
    if rule.effect is Effect.ALLOW:
        return find_allowing([rule], call, place) is not None
    return _tightens(rule, call, place)


def unsure_about(rules: Iterable[Rule], call: ToolCall) -> Rule | None:
    """A deny or ask rule about commands which an unclear command might slip past."""
    if call.tool_name != "Bash":
        return None
    command = _command(call)
    if not command.unparsable and all(part.words[0].static for part in command.parts):
        return None
    for rule in rules:
        about_commands = rule.matcher and _names_tool(rule, "Bash")
        if about_commands and rule.effect is not Effect.ALLOW:
            return rule
    return None


def suggest_rule(
    call: ToolCall, place: Place, scope: RuleScope = RuleScope.SESSION
) -> Rule | None:
    """The rule that “Approve for this session” or “Always allow” would create.

    It is never wider than what a person sees on the card suggests. None: this call can
    only be answered each time.
    """
    if call.tool_name in PERSON_TOOLS:
        return None
    matcher = _suggest_matcher(call, place)
    if matcher is None or len(matcher) > MAX_MATCHER_CHARS:
        return None
    rule = Rule(call.tool_name, Effect.ALLOW, scope, matcher)
    return rule if would_match(rule, call, place) else None


def _names_tool(rule: Rule, tool_name: str) -> bool:
    if rule.tool in (tool_name, canonical_name(tool_name)):
        return True
    if rule.tool.endswith("*"):
        return tool_name.startswith(rule.tool[:-1])
    return is_server(rule.tool) and tool_name.startswith(f"{rule.tool}__")


def is_server(tool: str) -> bool:
    """Whether a rule about `tool` is about all tools of a server."""
    return tool.startswith("mcp__") and tool.count("__") == 1


def _tightens(rule: Rule, call: ToolCall, place: Place) -> bool:
    if not _names_tool(rule, call.tool_name):
        return False
    if not rule.matcher:
        return True
    if call.tool_name == "Bash":
        command = _command(call)
        return _is_exactly(rule, command) or any(
            _covers(rule.matcher, part, by_program=True) for part in command.parts
        )
    if is_path_tool(call.tool_name):
        return any(
            _glob(rule.matcher, place).fullmatch(path)
            for path in _path_texts(call, place)
        )
    matched = _matches_special(rule.matcher, call)
    return True if matched is None else matched


def _allows(rule: Rule, call: ToolCall, place: Place) -> bool:
    if not rule.matcher:
        return True
    if is_path_tool(call.tool_name):
        paths = _path_texts(call, place)
        return bool(paths) and all(
            _glob(rule.matcher, place).fullmatch(path) for path in paths[-1:]
        )
    return _matches_special(rule.matcher, call) or False


def _matches_special(matcher: str, call: ToolCall) -> bool | None:
    """Judge the matchers of single tools; None: the tool has no matchers."""
    if canonical_name(call.tool_name) == "fetch" and matcher.startswith("domain:"):
        return _is_in_domain(call.tool_input.get("url"), matcher[len("domain:") :])
    if call.tool_name == "Agent":
        return call.tool_input.get("subagent_type") == matcher
    return None


def _is_in_domain(url: object, domain: str) -> bool:
    host = _host(url)
    domain = domain.lower().strip().strip(".")
    return bool(host and domain) and (host == domain or host.endswith(f".{domain}"))


def _host(url: object) -> str:
    if not isinstance(url, str):
        return ""
    try:
        return (urlsplit(url).hostname or "").rstrip(".")
    except ValueError:
        return ""


def _command(call: ToolCall) -> ParsedCommand:
    text = call.tool_input.get("command")
    if not isinstance(text, str):
        return ParsedCommand("", unparsable="The call has no command.")
    return parse_command(text)


def _find_allowing_command(rules: Sequence[Rule], call: ToolCall) -> Rule | None:
    command = _command(call)
    if command.unparsable:
        return None
    for rule in rules:
        if not rule.matcher or _is_exactly(rule, command):
            return rule
    if command.doubts:
        return None
    parts = [part for part in command.parts if not part.transparent]
    found = [_rule_for(part, rules) for part in parts]
    return found[0] if found and all(found) else None


def _rule_for(part: Part, rules: Iterable[Rule]) -> Rule | None:
    return next((rule for rule in rules if _covers(rule.matcher, part)), None)


def _is_exactly(rule: Rule, command: ParsedCommand) -> bool:
    return rule.matcher == command.text.strip()


def _covers(matcher: str, part: Part, *, by_program: bool = False) -> bool:
    """Whether a command matcher speaks about one simple command.

    Args:
        by_program: `/bin/rm` counts as `rm`, and words need not be certain. Only for
            tightening: what a path leads to is anybody's guess.
    """
    words = part.words
    is_prefix = matcher.endswith(PREFIX_MARK)
    wanted = _matcher_words(matcher.removesuffix(PREFIX_MARK))
    if not wanted or len(words) < len(wanted):
        return False
    if not is_prefix and len(words) != len(wanted):
        return False
    if not by_program and not all(word.static for word in words[: len(wanted)]):
        return False
    texts = [word.text for word in words[: len(wanted)]]
    if by_program and "/" not in wanted[0]:
        texts[0] = part.program
    return tuple(texts) == wanted


@lru_cache(maxsize=512)
def _matcher_words(text: str) -> tuple[str, ...]:
    """The words of a matcher, read as the shell reads those of a command."""
    command = parse_command(text)
    if command.unparsable or command.doubts or not command.parts:
        return tuple(text.split())
    outer = command.parts[0].words
    return tuple(word.text for word in outer)


def _path_texts(call: ToolCall, place: Place) -> list[str]:
    """The path as it was named, and last the path to which that really leads."""
    raw = named_path(call)
    if raw is None:
        return []
    try:
        named = lexical(raw, Place(real(place.cwd), place.home))
        return [os.path.normpath(named), str(real(named))]
    except UnusablePathError:
        return []


@lru_cache(maxsize=512)
def _glob(matcher: str, place: Place) -> re.Pattern[str]:
    """A glob over absolute paths: `*` stays in a folder, `**` does not.

    Relative globs start in the working directory.
    """
    try:
        base = real(place.cwd)
        anchored = lexical(matcher, Place(base, place.home))
    except UnusablePathError:
        return re.compile(r"(?!)")
    text = os.path.normpath(anchored)
    fixed = str(base) if text.startswith(f"{base}/") else ""
    pieces = re.split(r"(/\*\*(?=/|$)|\*\*|\*|\?)", text[len(fixed) :])
    glob = "".join(_GLOB_PIECES.get(piece, re.escape(piece)) for piece in pieces)
    return re.compile(re.escape(fixed) + glob, re.DOTALL)


_GLOB_PIECES: Final = {
    "/**": r"(?:/.*)?",
    "**": r".*",
    "*": r"[^/]*",
    "?": r"[^/]",
}


def _suggest_matcher(call: ToolCall, place: Place) -> str | None:
    if call.tool_name == "Bash":
        return _suggest_command(_command(call))
    if is_path_tool(call.tool_name):
        return _suggest_glob(call, place)
    if canonical_name(call.tool_name) == "fetch":
        host = _host(call.tool_input.get("url"))
        return f"domain:{host}" if host else None
    if call.tool_name == "Agent":
        kind = call.tool_input.get("subagent_type")
        return kind if isinstance(kind, str) else ""
    return ""


def _suggest_command(command: ParsedCommand) -> str | None:
    text = command.text.strip()
    if command.unparsable or not text or text.endswith(PREFIX_MARK):
        return None
    parts = [part for part in command.parts if not part.transparent]
    if command.doubts or len(parts) != 1:
        return text
    words = [word.text for word in parts[0].words]
    if words[0] in _LOOKERS:
        return f"{words[0]}{PREFIX_MARK}"
    second = words[1] if len(words) > 1 else ""
    is_plain = _SUBCOMMAND.fullmatch(second) and second not in _ONLY_EXACTLY
    if words[0] in _TWO_WORD_PROGRAMS and is_plain:
        return f"{words[0]} {second}{PREFIX_MARK}"
    return text


def _suggest_glob(call: ToolCall, place: Place) -> str | None:
    """The files of the same folder, and below it unless it is the working directory."""
    paths = _path_texts(call, place)
    if not paths:
        return None
    path, cwd = Path(paths[-1]), real(place.cwd)
    folder = path if path.is_dir() else path.parent
    if folder == cwd:
        return "**" if path == cwd else "*"
    named = folder.relative_to(cwd) if folder.is_relative_to(cwd) else folder
    is_literal = not set("*?").intersection(str(named))
    return f"{named}/**" if is_literal else None
