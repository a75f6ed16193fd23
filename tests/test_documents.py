"""What the documents say must be so: commands, links, settings, stop reasons."""

from __future__ import annotations

import re
import subprocess
from dataclasses import fields
from pathlib import Path

import pytest
from django.core.management import get_commands

from agents.conf import Conf
from agents.models.runs import StopReason
from openswarm import env
from tests.server import ROOT

DOCUMENTS = sorted(
    path for path in (*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")) if path.is_file()
)
FENCE = re.compile(r"^```.*?^```", re.M | re.S)
LINK = re.compile(r"\]\(([^)\s]+)\)")
SETTING = re.compile(r"^\| `(OPENSWARM_\w+)` \| (.+?) \|", re.M)


def text_of(name: str) -> str:
    return (ROOT / name).read_text()


def anchors(path: Path) -> set[str]:
    headings = re.findall(r"^#+ (.+)$", FENCE.sub("", path.read_text()), re.M)
    plain = (re.sub(r"[^\w\- ]", "", heading.lower()) for heading in headings)
    return {heading.replace(" ", "-") for heading in plain}


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: path.name)
def test_links_lead_somewhere(path: Path) -> None:
    links = LINK.findall(FENCE.sub("", path.read_text()))

    for link in links:
        target, _, anchor = link.partition("#")
        if target.startswith("https://"):
            continue
        file = (path.parent / target).resolve() if target else path
        assert file.is_file(), f"{path.name}: {link}"
        assert file.is_relative_to(ROOT)
        assert not anchor or anchor in anchors(file), f"{path.name}: {link}"


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: path.name)
def test_commands_exist(path: Path) -> None:
    text = path.read_text()
    makefile = set(re.findall(r"^([a-z]+):", text_of("Makefile"), re.M))

    assert (
        set(re.findall(r"^(?:\w+=\S+ )*make ([a-z]+)\b", _code(text), re.M)) <= makefile
    )
    named = set(re.findall(r"manage\.py ([a-z]+)", text))
    assert named <= set(get_commands())


def _code(text: str) -> str:
    """Fences, and what stands alone in backticks and looks like a command."""
    inline = re.findall(r"`((?:\w+=\S+ )*make \w+(?: \w+=\S+)*)`", FENCE.sub("", text))
    return "\n".join([*FENCE.findall(text), *inline])


def test_the_readme_is_short_and_begins_with_two_commands() -> None:
    readme = text_of("README.md")

    assert len(readme.splitlines()) < 120
    first_fence = FENCE.search(readme)
    assert first_fence is not None
    assert re.findall(r"^make (\w+)", first_fence[0], re.M) == ["run", "doctor"]


def test_make_run_and_make_test_set_up_everything_themselves() -> None:
    for target in ("run PORT=8731", "test"):
        done = subprocess.run(
            ["make", "--dry-run", "--always-make", *target.split()],
            cwd=ROOT,
            capture_output=True,
            text=True,
            check=True,
        )
        steps = done.stdout
        positions = [
            steps.index(step)
            for step in (
                "-m venv .venv",
                "pip install",
                "serve --host 127.0.0.1 --port 8731" if "run" in target else "pytest",
            )
        ]
        assert positions == sorted(positions)
        assert "--require-hashes" in steps


def test_every_setting_is_documented_with_its_default() -> None:
    documented = dict(SETTING.findall(text_of("docs/howto/configuration.md")))
    # Those that settings.py has asked for; tests have no others set.
    assert set(documented) == env.known_variables()

    defaults = {
        f"OPENSWARM_{field.name.upper()}": _shown(field.default)
        for field in fields(Conf)
    }
    assert {name: documented[name] for name in defaults} == defaults


def _shown(default: object) -> str:
    if isinstance(default, bool):
        return "`on`" if default else "`off`"
    return f"`{default}`" if default != "" else "–"


def test_every_stop_reason_is_explained() -> None:
    rows = re.findall(r"^\| `(\w+)` \| ", text_of("docs/architecture.md"), re.M)

    assert rows == [reason.value for reason in StopReason]


def test_every_package_stands_in_the_map() -> None:
    text = text_of("docs/architecture.md").partition("## The map")[2]
    the_map = text.partition("```")[2].partition("```")[0]
    packages = {
        path.stem
        for path in (ROOT / "agents").iterdir()
        if path.suffix == ".py" or (path / "__init__.py").exists()
    }

    missing = packages - set(re.findall(r"\w+", the_map))
    assert missing == {"__init__", "apps", "checks", "migrations"}
