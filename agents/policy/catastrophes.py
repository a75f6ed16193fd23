"""Commands that end badly wherever they run: the catalogue behind the hard bounds."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Final

from .commands import ParsedCommand, Part
from .paths import Territory, UnusablePathError, lexical, real
from .wrappers import SHELLS, reads_script_from_input

_TOP_FOLDERS: Final = frozenset(
    {
        *("/", "/bin", "/boot", "/dev", "/etc", "/home", "/lib", "/lib64", "/mnt"),
        *("/opt", "/proc", "/root", "/run", "/sbin", "/srv", "/sys", "/usr", "/var"),
        *("/Applications", "/Library", "/System", "/Users"),
    }
)
_DOWNLOADERS: Final = frozenset({"curl", "wget", "aria2c", "fetch", "http", "https"})
_DECODERS: Final = frozenset({"base64", "base32", "xxd", "uudecode", "openssl"})
_INTERPRETERS: Final = re.compile(r"python[\d.]*|node|perl|ruby|php")
_SQL_CLIENTS: Final = frozenset(
    {"psql", "mysql", "mariadb", "sqlcmd", "clickhouse-client", "cockroach"}
)
_SQL_LOSS: Final = re.compile(
    r"\b(drop\s+(database|schema|table)|truncate\s+(table\s+)?\w)", re.IGNORECASE
)
_DISK_TOOLS: Final = frozenset({"fdisk", "sfdisk", "sgdisk", "cfdisk", "parted"})
_DISK_WIPERS: Final = frozenset({"wipefs", "blkdiscard", "mkswap"})
_MOVERS: Final = frozenset({"cd", "pushd"})
_POWER_COMMANDS: Final = frozenset({"shutdown", "reboot", "halt", "poweroff"})
_POWER_VERBS: Final = _POWER_COMMANDS | {"kexec", "emergency", "rescue"}


def find_catastrophe(command: ParsedCommand, territory: Territory) -> str | None:
    """The sentence that says what a command would destroy, if it would."""
    if command.fork_bomb:
        return "A function that multiplies itself would exhaust the machine."
    return next(_find_all(command, territory), None)


def _find_all(command: ParsedCommand, territory: Territory) -> Iterator[str]:
    for part in command.parts:
        for check in _CHECKS:
            if reason := check(part):
                yield reason
        if reason := _destroys_tree(part, command.parts, territory):
            yield reason


# Each check reads one simple command.


def _runs_download(part: Part) -> str | None:
    """`curl … | sh`, `sh -c "$(curl …)"`, `source <(wget …)`."""
    takes_input = reads_script_from_input(part.words) or (
        _INTERPRETERS.fullmatch(part.program) and part.arguments in ((), ("-",))
    )
    sources = {source.program for source in part.fed_by} if takes_input else set()
    if part.program in SHELLS | {"eval", "source", "."}:
        names = (name for word in part.words for name in word.sources)
        sources |= {name.rpartition("/")[2] for name in names}
    if sources & _DOWNLOADERS:
        return "A download would be run without anybody having seen it."
    if sources & _DECODERS:
        return "A decoded text would be run without anybody having seen it."
    return None


def _ends_power(part: Part) -> str | None:
    arguments = part.arguments
    ends = (
        part.program in _POWER_COMMANDS
        or (part.program in ("init", "telinit") and bool({"0", "6"} & {*arguments}))
        or (part.program == "systemctl" and bool(_POWER_VERBS & {*arguments}))
    )
    return "The machine would be shut down or restarted." if ends else None


def _kills_everything(part: Part) -> str | None:
    arguments = list(part.arguments)
    if part.program == "killall5":
        return "Every process would be ended."
    if part.program == "pkill" and set(arguments) & {".", ".*", "", "^"}:
        return "Every process would be ended."
    if part.program != "kill":
        return None
    if arguments[:1] in (["-s"], ["-n"]):
        arguments = arguments[2:]
    elif arguments[:1] and re.fullmatch(r"-\w+", arguments[0]) and arguments[1:]:
        arguments = arguments[1:]
    if {"1", "-1"} & set(arguments):
        return "The first process, or every process, would be ended."
    return None


def _flushes_firewall(part: Part) -> str | None:
    arguments = set(part.arguments)
    flushes = (
        (part.program in ("iptables", "ip6tables") and arguments & {"-F", "--flush"})
        or (part.program == "nft" and {"flush", "ruleset"} <= arguments)
        or (part.program == "ufw" and arguments & {"disable", "reset"})
    )
    return "The firewall would be switched off." if flushes else None


def _overwrites_disk(part: Part) -> str | None:
    touches_device = any("/dev/" in text for text in part.arguments)
    wipes = (
        part.program.startswith("mkfs")
        or part.program in _DISK_WIPERS
        or (part.program in _DISK_TOOLS and touches_device)
        or (part.program == "cryptsetup" and "luksFormat" in part.arguments)
    )
    return "A disk would be overwritten." if wipes else None


def _drops_data(part: Part) -> str | None:
    if part.program == "dropdb":
        return "A database would be dropped."
    if part.program not in _SQL_CLIENTS:
        return None
    texts = [*part.arguments, part.input_text or ""]
    texts += [" ".join((*s.arguments, s.input_text or "")) for s in part.fed_by]
    if any(_SQL_LOSS.search(text) for text in texts):
        return "Tables or whole databases would be dropped or emptied."
    return None


_CHECKS: Final[Sequence[Callable[[Part], str | None]]] = (
    _runs_download,
    _ends_power,
    _kills_everything,
    _flushes_firewall,
    _overwrites_disk,
    _drops_data,
)


def _destroys_tree(
    part: Part, parts: Sequence[Part], territory: Territory
) -> str | None:
    """`rm -r /`, `chmod -R 777 ~`, `find / -delete`, `mv /* x` and their like."""
    if not _works_on_trees(part, parts):
        return None
    texts = [text for text in part.arguments if text and text[0] != "-"]
    if part.program == "mv":
        texts = texts[:-1]  # the last one is where things go
    if part.program in ("find", "gfind"):
        first_test = next(
            (i for i, text in enumerate(part.arguments) if text.startswith("-")), None
        )
        texts = list(part.arguments[:first_test])
    places = [_cd_target(other) for other in parts if other.program in _MOVERS]
    reached = [*texts, *(f"{p}/{t}" for p in places for t in texts if t[0] not in "/~")]
    targets = [text for text in reached if _is_whole_tree(text, territory)]
    if targets or "--no-preserve-root" in part.arguments:
        return f"A whole system or home folder would be changed: {' '.join(targets)}"
    return None


def _cd_target(part: Part) -> str:
    """Where `cd` goes: what follows may start there."""
    return next((text for text in part.arguments if text[:1] != "-"), "~")


def _works_on_trees(part: Part, parts: Sequence[Part]) -> bool:
    recursive = any(
        text == "--recursive" or re.fullmatch(r"-[A-Za-z]*[rR][A-Za-z]*", text)
        for text in part.arguments
    )
    match part.program:
        case "rm" | "chmod" | "chown" | "chgrp":
            return recursive
        case "mv" | "shred":
            return True
        case "find" | "gfind":
            inner = {other.program for other in parts}
            executes = {"-exec", "-execdir"} & set(part.arguments)
            deletes = "-delete" in part.arguments
            return deletes or bool(executes and inner & {"rm", "shred", "unlink"})
        case _:
            return False


def _is_whole_tree(text: str, territory: Territory) -> bool:
    """Whether a target is a top folder, a home, or around the session's folders."""
    place = territory.place
    text = re.sub(r"^(\$HOME|\$\{HOME\}|~)(?=/|$)", "~", text)
    text = re.sub(r"/(\*|\.\*|\{.*\}|\.)$", "", text) or "/"
    if text in ("~", "~/"):
        return True
    try:
        path = Path(os.path.normpath(lexical(text, place)))
    except UnusablePathError:
        return text.startswith("~")
    # POSIX lets a path begin with two slashes; Linux means the root by it.
    path = Path("/" + str(path).lstrip("/"))
    homes = [place.home] if place.home else []
    return str(path) in _TOP_FOLDERS or any(
        inner == path if inner in homes else path in inner.parents
        for folder in (*territory.roots, *homes)
        for inner in {folder, real(folder)}
    )
