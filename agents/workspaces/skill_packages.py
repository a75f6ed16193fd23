"""Skills as files: SKILL.md read and written, ZIP files unpacked without trust.

A package is one SKILL.md with what lies beside it. Of its frontmatter only the name
and the description are kept: the CLI would take others from it, as tools that need
no permission, hooks, or another model.
"""

from __future__ import annotations

import io
import re
import zipfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import PurePosixPath
from typing import Final

from agents.errors import InvalidInputError

MAX_PACKAGE_BYTES: Final = 5 * 1024 * 1024
MAX_FILES: Final = 200
MAX_CONTENT_CHARACTERS: Final = 200_000
MAX_DESCRIPTION: Final = 1024
MAIN_FILE: Final = "SKILL.md"
_MAX_DEPTH = 8
_MAX_PATH = 300
_FRONTMATTER = re.compile(r"\A---[ \t]*\n(.*?)^---[ \t]*$\n?", re.S | re.M)
_KEY = re.compile(r"([A-Za-z][\w-]*):[ \t]*(.*)")
_SAFE_PART = re.compile(r"[^\x00-\x1f\x7f\\:*?\"<>|/]{1,100}")
_LITTER = {"__MACOSX", ".DS_Store", "Thumbs.db", ".git"}
_CHUNK = 64 * 1024
_LINK, _KIND_MASK = 0o120000, 0o170000


@dataclass(frozen=True, slots=True)
class SkillPackage:
    name: str
    """As its frontmatter or its file is named; "" where neither tells."""
    description: str
    content: str
    files: Mapping[str, bytes] = field(default_factory=dict)


def read_package(data: bytes, filename: str) -> SkillPackage:
    """A package from an uploaded .md or .zip file.

    Raises: InvalidInputError with a sentence.
    """
    if len(data) > MAX_PACKAGE_BYTES:
        raise _refused(f"The file is larger than {MAX_PACKAGE_BYTES >> 20} MB.")
    stem = PurePosixPath(filename.replace("\\", "/")).stem
    if data.startswith(b"PK"):
        return _read_zip(data, stem)
    return parse_skill(_decoded(data), "" if stem.lower() == "skill" else stem)


def parse_skill(text: str, fallback_name: str = "") -> SkillPackage:
    """SKILL.md as text; a missing description is its first line."""
    text = text.removeprefix("\ufeff").replace("\r\n", "\n")
    found = _FRONTMATTER.match(text)
    facts = _facts(found[1]) if found else {}
    content = (text[found.end() :] if found else text).strip()
    if not content:
        raise _refused("The skill has no text.")
    if len(content) > MAX_CONTENT_CHARACTERS:
        raise _refused(
            f"A skill's text can have {MAX_CONTENT_CHARACTERS:,} characters;"
            f" this one has {len(content):,}."
        )
    described = facts.get("description") or _first_line(content)
    return SkillPackage(
        name=slug(facts.get("name") or fallback_name),
        description=" ".join(described.split())[:MAX_DESCRIPTION],
        content=content,
    )


def slug(name: str) -> str:
    """The name as a command and a folder: small letters, digits and dashes."""
    return re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")[:64].strip("-")


def skill_file(name: str, description: str, content: str) -> str:
    """SKILL.md with a frontmatter of our own."""
    return f"---\nname: {name}\ndescription: {_quoted(description)}\n---\n\n{content}\n"


def pack(package: SkillPackage) -> tuple[str, bytes]:
    """The file that a person downloads, and its name: .md, or with files .zip."""
    main = skill_file(package.name, package.description, package.content)
    if not package.files:
        return f"{package.name}.md", main.encode()
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(f"{package.name}/{MAIN_FILE}", main)
        for path, data in sorted(package.files.items()):
            archive.writestr(f"{package.name}/{path}", data)
    return f"{package.name}.zip", out.getvalue()


def _facts(frontmatter: str) -> dict[str, str]:
    """`key: value` lines of the top level; lines that go on are joined."""
    facts: dict[str, str] = {}
    key = ""
    for line in frontmatter.splitlines():
        found = _KEY.fullmatch(line)
        if found:
            key = found[1].lower()
            value = found[2].strip()
            facts[key] = "" if value in ("|", ">", "|-", ">-") else _unquoted(value)
        elif key and line[:1] in (" ", "\t"):
            facts[key] = f"{facts[key]} {line.strip()}".strip()
    return facts


def _unquoted(value: str) -> str:
    if len(value) > 1 and value[0] == value[-1] == '"':
        return value[1:-1].replace('\\"', '"').replace("\\\\", "\\")
    if len(value) > 1 and value[0] == value[-1] == "'":
        return value[1:-1].replace("''", "'")
    return value


def _quoted(value: str) -> str:
    one_line = " ".join(value.split())
    return '"' + one_line.replace("\\", "\\\\").replace('"', '\\"') + '"'


def _first_line(content: str) -> str:
    return next(line.strip("# \t") for line in content.splitlines() if line.strip("# "))


def _decoded(data: bytes) -> str:
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise _refused("The file is neither text in UTF-8 nor a ZIP file.") from error


def _read_zip(data: bytes, stem: str) -> SkillPackage:
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            files = dict(_unpack(archive))
    except (zipfile.BadZipFile, NotImplementedError, RuntimeError, EOFError) as error:
        raise _refused("The ZIP file can't be read.") from error
    mains = [path for path in files if PurePosixPath(path).name == MAIN_FILE]
    main = min(mains, key=lambda path: path.count("/"), default="")
    folder = main.removesuffix(MAIN_FILE)
    if not main or folder.count("/") > 1:
        raise _refused(f"The ZIP file holds no {MAIN_FILE} at its top.")
    outside = [path for path in files if not path.startswith(folder)]
    if outside:
        raise _refused(f"“{outside[0]}” lies outside the skill's folder.")
    package = parse_skill(_decoded(files.pop(main)), folder.strip("/") or stem)
    inside = {path.removeprefix(folder): data for path, data in files.items()}
    _check_names(inside)
    return SkillPackage(package.name, package.description, package.content, inside)


def _unpack(archive: zipfile.ZipFile) -> Iterator[tuple[str, bytes]]:
    """Every file within the limits; sizes are counted while they are read, since
    what the archive says of them may be a lie."""
    entries = [entry for entry in archive.infolist() if not _is_litter(entry)]
    if len(entries) > MAX_FILES:
        raise _refused(f"A skill can have {MAX_FILES} files.")
    left = MAX_PACKAGE_BYTES
    for entry in entries:
        path = safe_path(entry.filename)
        if entry.external_attr >> 16 & _KIND_MASK == _LINK:
            raise _refused(f"“{path}” is a link; only files can be unpacked.")
        if entry.flag_bits & 1:
            raise _refused(f"“{path}” is encrypted.")
        data = _read_bounded(archive, entry, left)
        left -= len(data)
        yield path, data


def _is_litter(entry: zipfile.ZipInfo) -> bool:
    parts = set(entry.filename.split("/"))
    return entry.is_dir() or bool(parts & _LITTER)


def _read_bounded(
    archive: zipfile.ZipFile, entry: zipfile.ZipInfo, limit: int
) -> bytes:
    parts: list[bytes] = []
    with archive.open(entry) as file:
        while chunk := file.read(_CHUNK):
            limit -= len(chunk)
            if limit < 0:
                raise _refused(
                    f"Unpacked, the skill is larger than {MAX_PACKAGE_BYTES >> 20} MB."
                )
            parts.append(chunk)
    return b"".join(parts)


def safe_path(path: str) -> str:
    """The path itself, if it can only be one below the skill's own folder.

    Raises: InvalidInputError.
    """
    parts = path.split("/")
    is_safe = (
        len(path) <= _MAX_PATH
        and len(parts) <= _MAX_DEPTH
        and all(_SAFE_PART.fullmatch(part) for part in parts)
        and not any(part.strip(". ") == "" or part.endswith(" ") for part in parts)
    )
    if not is_safe:
        raise _refused(f"“{path[:100]}” is not a path that can be unpacked.")
    return path


def _check_names(files: Mapping[str, bytes]) -> None:
    """No file may also be a folder, and no two differ in case alone."""
    seen: set[str] = {MAIN_FILE.lower()}
    for path in files:
        if path.lower() in seen:
            raise _refused(f"“{path}” is there twice.")
        seen.add(path.lower())
    for path in seen:
        if any(str(parent) in seen for parent in PurePosixPath(path).parents):
            raise _refused(f"“{path}” lies in a file.")


def _refused(sentence: str) -> InvalidInputError:
    return InvalidInputError(sentence, field="file")
