"""Hard bounds: what no mode, rule or person allows in OpenSwarm, not even `full`.

Only what a call would *do* is judged: the command of an execute-class tool and the
path of a file tool. A text that merely mentions a disaster is a text.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from .calls import ToolCall, is_path_tool, named_path, shell_inputs
from .catastrophes import find_catastrophe
from .commands import ParsedCommand, Part, parse_command
from .modes import Effect
from .paths import Territory, UnusablePathError, depth_inside, lexical, real
from .tools import ToolClass
from .words import Word

_CREDENTIALS: Final = re.compile(
    r"/\.(ssh|gnupg|aws|azure|password-store)(/|$)"
    r"|/\.(netrc|git-credentials|pypirc|credentials\.json)$"
    r"|/\.kube/config$|/\.docker/config\.json$"
    r"|/\.config/(gcloud(/|$)|gh/hosts\.yml$)|/\.local/share/keyrings(/|$)"
    r"|/(id_(rsa|dsa|ecdsa|ed25519)|authorized_keys)$"
    r"|/Library/Keychains(/|$)"
    r"|^/etc/(shadow|gshadow|sudoers|master\.passwd)"
    r"|^/proc/[^/]+/(environ|mem|maps|fd(/|$)|root(/|$))"
)
# The same, where it stands in a program's text and not as a path of its own.
_CREDENTIALS_IN_CODE: Final = re.compile(
    r"/etc/g?shadow\b|/etc/sudoers\b|\.ssh/(id_|authorized_keys)|\.aws/credentials"
    r"|\.git-credentials|/proc/(self|\d+)/environ"
)
# Files that run or redirect programs when they lie in a home folder.
_HOME_FILES: Final = frozenset(
    {
        *(".bashrc", ".bash_profile", ".bash_login", ".bash_logout", ".profile"),
        *(".zshrc", ".zshenv", ".zprofile", ".zlogin", ".gitconfig", ".npmrc"),
    }
)
_SYSTEM_FOLDERS: Final = tuple(
    Path(folder)
    for folder in (
        *("/bin", "/boot", "/dev", "/etc", "/lib", "/lib32", "/lib64", "/proc"),
        *("/run", "/sbin", "/sys", "/usr", "/var", "/System", "/Library"),
    )
)
_OPEN_SYSTEM_PLACES: Final = tuple(
    Path(place)
    for place in (
        *("/dev/null", "/dev/zero", "/dev/full", "/dev/stdin", "/dev/stdout"),
        *("/dev/stderr", "/dev/tty", "/dev/fd", "/dev/random", "/dev/urandom"),
        *("/dev/shm", "/var/tmp", "/var/folders"),  # noqa: S108 - excused, never used
    )
)
# Programs that write to all their arguments, or only to the last one.
_WRITE_ALL: Final = frozenset(
    {
        *("chattr", "chgrp", "chmod", "chown", "mkdir", "mv", "rm", "rmdir"),
        *("shred", "tee", "touch", "truncate", "unlink"),
    }
)
_WRITE_LAST: Final = frozenset({"cp", "install", "ln", "rsync", "scp"})
_WRITE_IN_PLACE: Final = frozenset({"sed", "gsed", "perl", "ruby"})
# Their arguments are texts; a path among them is only mentioned.
_TALKERS: Final = frozenset({"echo", "printf", ":", "true", "false"})
# Their first argument is a pattern or a program.
_PATTERN_FIRST: Final = frozenset(
    {"grep", "egrep", "fgrep", "rg", "ag", "sed", "awk", "gawk", "mawk"}
)
_INTERPRETERS: Final = re.compile(r"(python[\d.]*|node|deno|bun|perl|ruby|php|g?awk)")


@dataclass(frozen=True, slots=True)
class BoundFinding:
    effect: Effect
    reason: str


def find_bound(
    call: ToolCall, tool_class: ToolClass, territory: Territory
) -> BoundFinding | None:
    """The hard bound that a call touches, if any."""
    if is_path_tool(call.tool_name):
        reason = _find_bound_path(call, tool_class, territory)
        return BoundFinding(Effect.DENY, reason) if reason else None
    findings = [
        _find_bound_command(parse_command(text), territory)
        for text in shell_inputs(call, tool_class)
    ]
    found = [finding for finding in findings if finding]
    return max(found, key=lambda finding: finding.effect.strictness, default=None)


def protects(path: Path, territory: Territory, *, writes: bool) -> str | None:
    """Why nobody may touch a path; None if there is no such reason."""
    if _CREDENTIALS.search(str(path)):
        return f"Credentials are never open to agents: {path}"
    if not writes:
        return None
    home = territory.place.home
    if home is not None and path.name in _HOME_FILES and path.parent == real(home):
        return f"Files that start programs in a home folder are protected: {path}"
    if any(path.is_relative_to(place) for place in _OPEN_SYSTEM_PLACES):
        return None
    inside = max(
        (len(f.parts) for f in _SYSTEM_FOLDERS if path.is_relative_to(f)), default=0
    )
    if inside and depth_inside(path, territory.roots) <= inside:
        return f"System files are never written by agents: {path}"
    return None


def _find_bound_path(
    call: ToolCall, tool_class: ToolClass, territory: Territory
) -> str | None:
    raw = named_path(call)
    writes = tool_class is not ToolClass.READ
    return _protects_text(raw, territory, writes=writes) if raw else None


def _protects_text(raw: str, territory: Territory, *, writes: bool) -> str | None:
    """Judge a path as it is written and as it resolves; either may be protected."""
    try:
        named = Path(os.path.normpath(lexical(raw, territory.place)))
        candidates = (named, real(named))
    except UnusablePathError:
        return None  # the path guard refuses it, or it is no path
    reasons = (protects(path, territory, writes=writes) for path in candidates)
    return next(filter(None, reasons), None)


def _find_bound_command(
    command: ParsedCommand, territory: Territory
) -> BoundFinding | None:
    reason = find_catastrophe(command, territory) or _find_protected(command, territory)
    if reason:
        return BoundFinding(Effect.DENY, reason)
    if command.unparsable:
        # The bounds can't be checked, so a person has to look.
        return BoundFinding(Effect.ASK, command.unparsable)
    return None


def _find_protected(command: ParsedCommand, territory: Territory) -> str | None:
    for redirect in command.redirects:
        raw = _path_text(redirect.target, territory)
        reason = _protects_text(raw, territory, writes=redirect.writes)
        if reason:
            return reason
    reasons = (_find_protected_argument(part, territory) for part in command.parts)
    return next(filter(None, reasons), None)


def _find_protected_argument(part: Part, territory: Territory) -> str | None:
    if part.program in _TALKERS:
        return None
    if _INTERPRETERS.fullmatch(part.program):
        code = "\n".join((*part.arguments, part.input_text or ""))
        if _CREDENTIALS_IN_CODE.search(code):
            return "Credentials are never open to agents: this program names some."
    written = _written(part)
    for word in _path_words(part):
        raw = _path_text(word, territory)
        reason = _protects_text(raw, territory, writes=word in written)
        if reason:
            return reason
    return None


def _path_words(part: Part) -> list[Word]:
    """The words that may be paths, also as values of options."""
    words = [word for word in part.words[1:] if not re.search(r"\s", word.text)]
    if part.program in _PATTERN_FIRST:
        first = next((w for w in words if not w.text.startswith("-")), None)
        words = [word for word in words if word is not first]
    return [_value(word) for word in words]


def _value(word: Word) -> Word:
    """`--file=PATH`, `if=PATH` and `@PATH` name a path, too."""
    text = re.sub(r"^(-{0,2}[A-Za-z][\w-]*=)?@?", "", word.text)
    return Word(text, word.static)


def _written(part: Part) -> list[Word]:
    words = [word for word in part.words[1:] if not word.text.startswith("-")]
    if part.program in _WRITE_ALL:
        return words
    if part.program in _WRITE_LAST:
        named = [_value(w) for w in part.words if w.text.startswith("--target-dir")]
        return words[-1:] + named
    if part.program == "dd":
        return [_value(word) for word in words if word.text.startswith("of=")]
    in_place = any(a.startswith(("-i", "--in-place", "-pi")) for a in part.arguments)
    return words if part.program in _WRITE_IN_PLACE and in_place else []


def _path_text(word: Word, territory: Territory) -> str:
    """Put the home folder where the shell would."""
    home = str(territory.place.home or "~")
    return re.sub(r"^(\$HOME|\$\{HOME\})(?=/|$)", lambda _: home, word.text)
