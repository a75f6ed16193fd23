"""Rules that a person wrote: what is wrong with them, in a sentence for the form.

A matcher that makes no sense is stored nowhere. `rules` would take it for one that
never allows and always tightens, which is safe but not what anybody meant.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Mapping
from typing import Final

from .calls import PATH_FIELDS, is_path_tool
from .commands import parse_command
from .modes import Effect
from .rules import MAX_MATCHER_CHARS, PREFIX_MARK, Rule, is_server
from .tools import PERSON_TOOLS, TOOLS, canonical_name

_TOOL: Final = re.compile(r"[A-Za-z][A-Za-z0-9_-]*\*?|\*")
_SERVER_TOOL: Final = re.compile(r"mcp__[A-Za-z0-9_-]+\*?")
_HOST: Final = re.compile(r"[a-z0-9]([a-z0-9-]*[a-z0-9])?(\.[a-z0-9-]+)*", re.I)
_KIND_OF_AGENT: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9_:.-]*")
_COMMAND_CALLED: Final = "Bash"
_DOMAIN: Final = "domain:"

# The one field of a tool's input that its matcher is about.
MATCHED_FIELDS: Final[Mapping[str, str]] = {
    **PATH_FIELDS,
    _COMMAND_CALLED: "command",
    "fetch": "url",
    "Agent": "subagent_type",
}


def matched_field(tool: str) -> str | None:
    """The field that a rule's matcher reads; None: the tool has no matchers."""
    return MATCHED_FIELDS.get(canonical_name(tool))


def tool_names(tool: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Under which names the model calls what a rule is about.

    Returns: whole names, and beginnings of names.
    """
    if tool.endswith("*"):
        return (), (tool[:-1],)
    spec = TOOLS.get(canonical_name(tool))
    if spec is not None:
        return (spec.name, spec.full_name), ()
    return (tool,), (f"{tool}__",) if is_server(tool) else ()


def find_tool_fault(rule: Rule) -> str | None:
    """Why no rule can be about this tool; None if one can."""
    tool = rule.tool
    if not _TOOL.fullmatch(tool):
        return "Give a tool’s name, mcp__server for all tools of a server, or *."
    if rule.effect is Effect.ALLOW and tool in PERSON_TOOLS:
        return f"{tool} exists to reach a person, so no rule can allow it."
    if tool.endswith("*") or _SERVER_TOOL.fullmatch(tool):
        return None
    spec = TOOLS.get(tool)
    if spec is None:
        return f"There is no tool “{tool}”. Names are written as the agent writes them."
    if spec.why_not is not None:
        instead = f" Use {spec.replacement} instead." if spec.replacement else ""
        return f"{tool} is not offered to agents. {spec.why_not}{instead}"
    return None


def find_matcher_fault(rule: Rule) -> str | None:
    """Why the matcher makes no sense for the rule's tool; None if it does."""
    matcher, tool = rule.matcher, canonical_name(rule.tool)
    if not matcher:
        return None
    if len(matcher) > MAX_MATCHER_CHARS:
        return f"Keep it below {MAX_MATCHER_CHARS} characters."
    if tool == _COMMAND_CALLED:
        return _find_command_fault(matcher)
    if is_path_tool(tool):
        return _find_glob_fault(matcher)
    check = _CHECKS.get(tool)
    if check is None:
        return f"A rule about {rule.tool} speaks about all its calls: leave this empty."
    return check(matcher)


def _find_command_fault(matcher: str) -> str | None:
    is_prefix = matcher.endswith(PREFIX_MARK)
    text = matcher.removesuffix(PREFIX_MARK).strip()
    if not text:
        return f"Write the command before the {PREFIX_MARK}."
    command = parse_command(text)
    if command.unparsable:
        return f"This can’t be read as a command. {command.unparsable}"
    if not is_prefix:
        return _find_star_fault(text)
    outer = command.parts[0].words if command.parts else ()
    if command.doubts or [word.text for word in outer] != _split(text):
        return f"Only one plain command can stand before {PREFIX_MARK}."
    if not all(word.static for word in outer):
        return f"Before {PREFIX_MARK} each word must be certain: no variables or stars."
    return None


def _split(text: str) -> list[str]:
    try:
        return shlex.split(text)
    except ValueError:
        return []


def _find_star_fault(text: str) -> str | None:
    first, star = text.removesuffix("*").rstrip(), text.endswith("*")
    if star and first != text and (text.endswith((" *", ":*")) or not first):
        wanted = f"{first or 'git status'}{PREFIX_MARK}"
        return f"A star is no wildcard here. Write {wanted} for any arguments."
    return None


def _find_glob_fault(matcher: str) -> str | None:
    if matcher.startswith("~") and not matcher.startswith("~/") and matcher != "~":
        return "Another user’s home folder can’t be reached."
    if "\0" in matcher:
        return "A path has no NUL byte."
    if re.search(r"[\[{!]", matcher):
        return "Only *, ** and ? are wildcards here; name other files one by one."
    return None


def _find_domain_fault(matcher: str) -> str | None:
    host = matcher.removeprefix(_DOMAIN).strip()
    if matcher.startswith(_DOMAIN) and _HOST.fullmatch(host):
        return None
    return "Write domain: and a host’s name, such as domain:docs.python.org."


def _find_kind_fault(matcher: str) -> str | None:
    if _KIND_OF_AGENT.fullmatch(matcher):
        return None
    return "Write the kind of agent, such as general-purpose."


_CHECKS: Final[Mapping[str, Callable[[str], str | None]]] = {
    "fetch": _find_domain_fault,
    "Agent": _find_kind_fault,
}
