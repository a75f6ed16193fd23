"""Skills as files: what is read of them, and what is refused."""

from __future__ import annotations

import io
import stat
import zipfile
from collections.abc import Mapping

import pytest

from agents.errors import InvalidInputError
from agents.workspaces import skill_packages
from agents.workspaces.skill_packages import (
    SkillPackage,
    pack,
    parse_skill,
    read_package,
    slug,
)

MAIN = (
    b"---\nname: Code Review\ndescription: When a review is wanted\n---\nLook twice.\n"
)


def zipped(files: Mapping[str, bytes]) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        for path, data in files.items():
            archive.writestr(path, data)
    return out.getvalue()


def refusal(data: bytes, name: str = "skill.zip") -> str:
    with pytest.raises(InvalidInputError) as caught:
        read_package(data, name)
    return caught.value.user_message


def test_a_markdown_file_is_a_skill() -> None:
    assert read_package(MAIN, "SKILL.md") == SkillPackage(
        "code-review", "When a review is wanted", "Look twice."
    )


def test_without_frontmatter_the_file_name_and_the_first_line_tell() -> None:
    package = read_package(b"# Release notes\n\nWrite them.", "Release Notes.md")

    assert (package.name, package.description) == ("release-notes", "Release notes")
    assert read_package(b"Just text", "SKILL.md").name == ""


def test_only_name_and_description_are_taken_from_the_frontmatter() -> None:
    text = (
        "---\nname: x\nallowed-tools: Bash(*)\nhooks:\n  PreToolUse: evil\n"
        "description: >\n  Folded\n  twice\n---\nBody"
    )

    package = parse_skill(text)

    assert (package.name, package.description) == ("x", "Folded twice")
    name, data = pack(package)
    assert name == "x.md"
    assert data == b'---\nname: x\ndescription: "Folded twice"\n---\n\nBody\n'


@pytest.mark.parametrize("folder", ["", "review/"])
def test_a_folder_is_unpacked_with_its_files(folder: str) -> None:
    data = zipped(
        {
            f"{folder}SKILL.md": MAIN,
            f"{folder}scripts/run.sh": b"#!/bin/sh\n",
            "__MACOSX/._SKILL.md": b"litter",
        }
    )

    package = read_package(data, "any.zip")

    assert package.name == "code-review"
    assert package.files == {"scripts/run.sh": b"#!/bin/sh\n"}


def test_what_is_packed_is_read_back() -> None:
    package = SkillPackage("x", 'Say "\\" twice', "Body", {"a/b.txt": b"\x00\x01"})
    name, data = pack(package)

    assert name == "x.zip"
    assert read_package(data, name) == package


@pytest.mark.parametrize(
    "path",
    [
        *("../evil", "/etc/evil", "a/../../evil", "a//b", "a\\..\\b", "C:evil"),
        *("a/./b", "a/.. /b", "a\x01b", "/".join("abcdefghi"), "x" * 200),
    ],
)
def test_a_path_that_leaves_the_folder_is_refused(path: str) -> None:
    assert "not a path" in refusal(zipped({"SKILL.md": MAIN, path: b"x"}))


def test_a_link_is_refused() -> None:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        archive.writestr("SKILL.md", MAIN)
        link = zipfile.ZipInfo("secrets")
        link.external_attr = (stat.S_IFLNK | 0o777) << 16
        archive.writestr(link, "/etc/passwd")

    assert refusal(out.getvalue()) == "“secrets” is a link; only files can be unpacked."


def test_a_bomb_is_refused_by_what_comes_out_of_it() -> None:
    size = skill_packages.MAX_PACKAGE_BYTES + 1
    data = zipped({"SKILL.md": MAIN, "zeros": bytes(size)})

    assert len(data) < 100_000
    assert refusal(data) == "Unpacked, the skill is larger than 5 MB."


@pytest.mark.parametrize(
    ("files", "sentence"),
    [
        ({"README.md": b"x"}, "holds no SKILL.md"),
        ({"a/b/SKILL.md": MAIN}, "holds no SKILL.md"),
        ({"a/SKILL.md": MAIN, "b/x": b""}, "outside the skill's folder"),
        ({"SKILL.md": MAIN, "a": b"", "a/b": b""}, "lies in a file"),
        ({"SKILL.md": MAIN, "Read.md": b"", "READ.md": b""}, "there twice"),
        ({"SKILL.md": b"---\nname: x\n---\n"}, "no text"),
        ({"SKILL.md": b"\xff\xfe\x00"}, "neither text"),
        ({f"{n}": b"" for n in range(201)}, "200 files"),
    ],
)
def test_other_archives_are_refused_with_a_sentence(
    files: dict[str, bytes], sentence: str
) -> None:
    assert sentence in refusal(zipped(files))


def test_broken_files_are_refused_with_a_sentence() -> None:
    assert refusal(b"PK\x03\x04 broken") == "The ZIP file can't be read."
    assert refusal(b"\xff\xfe", "x.md").startswith("The file is neither text")
    assert refusal(b"x" * (5 * 1024 * 1024 + 1)) == "The file is larger than 5 MB."
    assert "200,000 characters" in refusal(b"x" * 200_001, "x.md")


def test_names_become_commands() -> None:
    assert slug("  Größe & Ünit_Tests! ") == "gr-e-nit-tests"
    assert slug("x" * 100) == "x" * 64
