"""Blocks of the prompts: connected servers; and what comes with a message besides its
words: tools, files, folders, skills.

Each part is a block of text for the model. What can't be shown says so in its place:
a turn never fails because a file is gone. Files come from the agent's own folders, so
nothing of them is trusted: paths pass the policy's guard, links are resolved before
they are judged, and what is read is known to be what was judged.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final
from xml.sax.saxutils import quoteattr

from agents.domain.mcp_offers import connected_servers, unconnected_servers
from agents.models import AgentSession, McpServer
from agents.rendering.text import clean_text

MAX_CHARACTERS: Final = 512_000
MAX_DEPTH: Final = 4
MAX_FOLDER_ENTRIES: Final = 1000
_PROBED_BYTES = 8192
_INDENT = "  "
# A file must not end its own fence.
_FENCE = re.compile(r"<(/?)(context_(?:file|directory)|forced_tools)", re.I)

_INTRO = (
    "These MCP servers are connected for the user. Prefer their tools where a task"
    " concerns the service behind them."
)
_UNCONNECTED = (
    "Configured but not connected; the user has to sign in, or to correct the"
    " credentials, under Settings → MCP servers:"
)

FORCED_INTRO = (
    "The user explicitly asked for these tools to be used for this message. Prefer"
    " them to others:"
)

Guard = Callable[[str], str | None]
"""Why a path must not be read; None if it may."""


@dataclass(frozen=True, slots=True)
class ToolNote:
    """What a person reads, and the model is told, about a tool."""

    name: str
    description: str = ""
    server: str = ""
    account: str = ""


def resolve_forced_tools(
    forced_tools: Iterable[str], load_all_tools_fn: Callable[[], Iterable[ToolNote]]
) -> str:
    """The block of the tools that the person chose; "" where none is offered now."""
    known = {note.name: note for note in load_all_tools_fn()}
    chosen = [known[name] for name in dict.fromkeys(forced_tools) if name in known]
    if not chosen:
        return ""
    lines = [line for note in chosen for line in _tool_lines(note)]
    return "\n".join(["<forced_tools>", FORCED_INTRO, *lines, "</forced_tools>"])


def _tool_lines(note: ToolNote) -> Iterator[str]:
    described = " ".join(_fenced(note.description).split())
    yield f"- {note.name}: {described}" if described else f"- {note.name}"
    if note.server:
        yield f"  (MCP server: {note.server})"
    if note.account:
        account = _fenced(note.account)
        yield (f"  (connected account: {account} — use this for any email parameter)")


def resolve_attached_skills(attached_skills: Iterable[Any]) -> list[str]:
    """A block for each skill, from the text that was kept when it was attached."""
    blocks = []
    for skill in attached_skills:
        if not isinstance(skill, Mapping) or not skill.get("content"):
            continue
        name = str(skill.get("name") or "Unknown")
        blocks.append(f"[Using skill: {name}]\n\n{skill['content']}")
    return blocks


def resolve_context_paths(
    context_paths: Iterable[Any],
    root: Path,
    guard: Guard,
    *,
    max_characters: int = MAX_CHARACTERS,
) -> list[str]:
    """A block for each path below `root`, with 512,000 characters in all of them."""
    blocks: list[str] = []
    left = max_characters
    for item in context_paths:
        path, wanted = _path_and_type(item)
        if not path:
            continue
        if left <= 0:
            blocks.append(_note(path, "left out: the files before it fill the message"))
            continue
        block = _resolve_path(path, wanted, root, guard, left)
        left -= len(block)
        blocks.append(block)
    return blocks


def _path_and_type(item: Any) -> tuple[str, str]:
    """A path and what it was when it was chosen; a folder's name ends in a slash."""
    if isinstance(item, Mapping):
        return str(item.get("path") or ""), str(item.get("type") or "")
    path = str(item)
    return path, "directory" if path.endswith("/") else ""


def _resolve_path(path: str, wanted: str, root: Path, guard: Guard, left: int) -> str:
    try:
        # Resolved before it is judged: what is read below is this very path.
        real = Path(os.path.realpath(root / path))
        refused = guard(path) or guard(str(real))
        if refused is not None:
            return _note(path, f"not allowed: {refused}")
        mode = real.lstat().st_mode
    except (FileNotFoundError, NotADirectoryError):
        return _note(path, "not found")
    except (OSError, ValueError) as error:
        return _note(path, f"error reading: {_reason(error)}")
    is_folder = stat.S_ISDIR(mode)
    if wanted and (wanted == "directory") is not is_folder:
        return _note(path, "type mismatch")
    if is_folder:
        return _folder_block(path, real, left)
    if not stat.S_ISREG(mode):
        return _note(path, "neither a file nor a folder")
    return _file_block(path, real, left)


def _folder_block(path: str, real: Path, left: int) -> str:
    tree = "\n".join(_cut_lines(build_dir_tree(real), left))
    return f"<context_directory path={_attribute(path)}>\n{tree}\n</context_directory>"


def _cut_lines(lines: Iterable[str], left: int) -> Iterator[str]:
    for line in lines:
        left -= len(line) + 1
        if left < 0:
            yield "[cut here: too long]"
            return
        yield line


def build_dir_tree(
    root: Path, max_depth: int = MAX_DEPTH, prefix: str = ""
) -> Iterator[str]:
    """The lines of a folder's tree: files before folders, what is hidden left out.

    A link is named and never followed, so the tree can't leave the folder.
    """
    try:
        files, folders, are_more = _listed(root)
    except OSError:
        yield f"{prefix}[permission denied]"
        return
    for name in files:
        yield f"{prefix}{_fenced(clean_text(name))}"
    for name in folders:
        yield f"{prefix}{_fenced(clean_text(name))}/"
        if max_depth > 1:
            yield from build_dir_tree(root / name, max_depth - 1, prefix + _INDENT)
    if are_more:
        yield f"{prefix}[more entries than {MAX_FOLDER_ENTRIES:,}]"


def _listed(root: Path) -> tuple[list[str], list[str], bool]:
    files: list[str] = []
    folders: list[str] = []
    with os.scandir(root) as entries:
        for entry in entries:
            if entry.name.startswith("."):
                continue
            if len(files) + len(folders) >= MAX_FOLDER_ENTRIES:
                return sorted(files), sorted(folders), True
            is_folder = entry.is_dir(follow_symlinks=False)
            (folders if is_folder else files).append(entry.name)
    return sorted(files), sorted(folders), False


def _file_block(path: str, real: Path, left: int) -> str:
    try:
        data, size = _read(real, 4 * left + _PROBED_BYTES)
    except OSError as error:
        return _note(path, f"error reading: {_reason(error)}")
    if b"\0" in data[:_PROBED_BYTES]:
        return _note(path, f"a binary file of {size:,} bytes, not shown")
    text = _fenced(clean_text(data.decode("utf-8", "replace")))
    cut = ""
    if len(text) > left or len(data) < size:
        text = text[:left]
        cut = f"\n{_note(path, f'cut after {len(text):,} characters')}"
    return f"<context_file path={_attribute(path)}>\n{text}{cut}\n</context_file>"


def _read(real: Path, limit: int) -> tuple[bytes, int]:
    """The file's beginning and its size.

    Raises: OSError, also where a link was put in its place since it was judged.
    """
    descriptor = os.open(real, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    with os.fdopen(descriptor, "rb") as file:
        found = os.fstat(descriptor)
        if not stat.S_ISREG(found.st_mode) or _opened(descriptor, real) != real:
            raise OSError("it was replaced just now")
        return file.read(limit), found.st_size


def _opened(descriptor: int, expected: Path) -> Path:
    """What is open, by its own name; as expected where the system can't tell."""
    try:
        return Path(f"/proc/self/fd/{descriptor}").readlink()
    except OSError:
        return expected


def _reason(error: Exception) -> str:
    return getattr(error, "strerror", None) or str(error)


def _note(path: str, what: str) -> str:
    return f"[Context: {_fenced(' '.join(path.split()))} — {what}]"


def _attribute(path: str) -> str:
    return quoteattr(path)


def _fenced(text: str) -> str:
    return _FENCE.sub(r"<\\\1\2", text)


def build_connected_tools_context(session: AgentSession) -> str:
    """The servers with their offered tools, and those that lack a sign-in.

    Empty without any. Only what changes rarely stands here: a new system prompt costs
    the session a new process.
    """
    parts = []
    if connected := connected_servers(session):
        blocks = ["\n".join(_describe(server, names)) for server, names in connected]
        parts.append("\n\n".join([_INTRO, *blocks]))
    if waiting := unconnected_servers(session):
        names = "\n".join(f"  - {server.slug}" for server in waiting)
        parts.append(f"{_UNCONNECTED}\n{names}")
    if not parts:
        return ""
    text = "\n\n".join(parts)
    return f"<connected_mcp_tools>\n{text}\n</connected_mcp_tools>"


def _describe(server: McpServer, names: list[str]) -> Iterator[str]:
    yield f"MCP server: {server.slug}"
    yield "  Status: connected"
    if server.account_email:
        yield f"  Connected account: {server.account_email}"
        yield (
            "  Where a tool wants the user's e-mail address, use this one; do not ask"
            " for it."
        )
    yield f"  Available tools ({len(names)}): {', '.join(names)}"
