"""The house rules that no linter knows: sizes, docstrings, edges, access.

Layers and siblings are import-linter's (`pyproject.toml`); the sibling test here says
the same without it, so that the test run alone notices.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from statistics import quantiles

import pytest
from django.db import models
from django.urls import URLPattern, URLResolver, get_resolver

from agents.models import (
    AgentSession,
    ApiToken,
    ApprovalRequest,
    Invite,
    ListedFolder,
    McpServer,
    Memory,
    Message,
    MessageBranch,
    Mode,
    PermissionRule,
    PromptTemplate,
    Provider,
    Run,
    Share,
    Skill,
    Task,
    Ticket,
    User,
)

ROOT = Path(__file__).resolve().parent.parent
SOURCES = sorted(
    path
    for folder in ("agents", "openswarm")
    for path in (ROOT / folder).rglob("*.py")
    if "migrations" not in path.parts
)
TESTS = sorted((ROOT / "tests").rglob("*.py"))
TEMPLATES = sorted((ROOT / "templates").rglob("*.html"))
SYNC_PACKAGES = ("domain", "models", "policy", "rendering", "web", "admin")
SIBLINGS = (
    ("web", "live", "api", "admin", "management"),
    ("mcp", "demo"),
    ("policy", "rendering", "workspaces"),
)
Function = ast.FunctionDef | ast.AsyncFunctionDef


def name_of(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


@cache
def tree_of(path: Path) -> ast.Module:
    return ast.parse(path.read_text(), filename=str(path))


def functions() -> Iterator[tuple[str, int]]:
    """Every function with its length in lines, decorators not counted."""
    for path in SOURCES:
        for node in ast.walk(tree_of(path)):
            if isinstance(node, Function):
                assert node.end_lineno is not None
                length = node.end_lineno - node.lineno + 1
                yield f"{name_of(path)}:{node.lineno} {node.name}", length


def imports_of(path: Path) -> Iterator[str]:
    """The full names of what a module imports, relative ones resolved."""
    package = path.relative_to(ROOT).parent.parts
    for node in ast.walk(tree_of(path)):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else ()
            module = ".".join([*base, *([node.module] if node.module else [])])
            yield module
            yield from (f"{module}.{alias.name}" for alias in node.names)


# Sizes


@pytest.mark.parametrize("path", [*SOURCES, *TESTS], ids=name_of)
def test_no_module_has_more_than_600_lines(path: Path) -> None:
    assert len(path.read_text().splitlines()) <= 600


def test_functions_are_short() -> None:
    lengths = dict(functions())

    assert {name: length for name, length in lengths.items() if length > 60} == {}
    deciles = quantiles(lengths.values(), n=10)
    assert deciles[4] <= 10
    assert deciles[8] <= 35


# Docstrings


@pytest.mark.parametrize("path", SOURCES, ids=name_of)
def test_every_module_says_what_lives_in_it(path: Path) -> None:
    tree = tree_of(path)

    is_empty = not tree.body and path.name == "__init__.py"
    assert is_empty or ast.get_docstring(tree)


# Edges


def test_siblings_do_not_import_each_other() -> None:
    crossed = [
        f"{name_of(path)} imports {name}"
        for group in SIBLINGS
        for package in group
        for path in (ROOT / "agents" / package).rglob("*.py")
        for name in imports_of(path)
        if any(
            (name + ".").startswith(f"agents.{other}.")
            for other in group
            if other != package
        )
    ]

    assert crossed == []


@pytest.mark.parametrize("package", SYNC_PACKAGES)
def test_the_synchronous_layers_have_no_coroutines(package: str) -> None:
    found = [
        f"{name_of(path)}:{node.lineno}"
        for path in (ROOT / "agents" / package).rglob("*.py")
        for node in ast.walk(tree_of(path))
        if isinstance(node, ast.AsyncFunctionDef)
    ]

    assert found == []


def test_only_rendering_calls_html_safe() -> None:
    users = {
        name_of(path)
        for path in SOURCES
        if any(name.endswith(".mark_safe") for name in imports_of(path))
    }

    assert {name for name in users if not name.startswith("agents/rendering/")} == set()


@pytest.mark.parametrize("path", TEMPLATES, ids=name_of)
def test_no_template_trusts_html_or_runs_inline_scripts(path: Path) -> None:
    text = path.read_text()

    assert not re.search(r"\|\s*safe\b|autoescape\s+off", text)
    assert not re.search(r"<script(?![^>]*\bsrc=)|\son\w+=|hx-on", text)
    assert not re.search(r"<style|\sstyle=", text)


def test_one_module_reads_the_environment_for_settings() -> None:
    readers = {
        name_of(path)
        for path in SOURCES
        if re.search(r"os\.environ(?!\.setdefault)|getenv", path.read_text())
    }

    # Commands hand their own environment on to the processes that they start.
    readers = {name for name in readers if not name.startswith("agents/management/")}
    assert readers == {"openswarm/env.py"}


# Access


NOUNS: dict[str, type[models.Model]] = {
    "session_id": AgentSession,
    "message_id": Message,
    "memory_id": Memory,
    "task_id": Task,
    "ticket_id": Ticket,
    "branch_id": MessageBranch,
    "approval_id": ApprovalRequest,
    "rule_id": PermissionRule,
    "folder_id": ListedFolder,
    "run_id": Run,
    "provider_id": Provider,
    "server_id": McpServer,
    "invite_id": Invite,
    "share_id": Share,
    "mode_id": Mode,
    "skill_id": Skill,
    "template_id": PromptTemplate,
    "user_id": User,
    "token_id": ApiToken,
}
ONLY_FOR_OWNERS = {Invite, ListedFolder, User}  # their pages open for nobody else


def ids_in_urls(resolver: URLResolver | None = None, route: str = "") -> set[str]:
    found: set[str] = set()
    for pattern in (resolver or get_resolver()).url_patterns:
        whole = route + str(pattern.pattern)
        if whole.startswith("admin/"):  # staff only, and each look is audited
            continue
        if isinstance(pattern, URLResolver):
            found |= ids_in_urls(pattern, whole)
        elif isinstance(pattern, URLPattern):
            found |= set(re.findall(r"<uuid:(\w+)>", whole))
    return found


def test_every_id_in_a_url_is_of_a_known_model() -> None:
    found = ids_in_urls()

    assert "session_id" in found
    assert found <= set(NOUNS)


def test_every_model_with_a_url_says_who_may_see_it() -> None:
    silent = {
        NOUNS[name]
        for name in ids_in_urls()
        if not hasattr(NOUNS[name]._default_manager, "visible_to")
    }

    assert silent <= ONLY_FOR_OWNERS


def test_ids_in_urls_are_random() -> None:
    for name in ids_in_urls():
        assert isinstance(NOUNS[name]._meta.pk, models.UUIDField)
