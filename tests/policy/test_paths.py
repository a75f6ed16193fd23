from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from agents.policy.calls import ToolCall
from agents.policy.paths import Place, Territory, find_outside, writes_plan


@pytest.fixture
def land(tmp_path: Path) -> Territory:
    """A session's folders, and around them what is none of its business."""
    for name in ("work/src", "results", "home/plans", "site/sessions/1", "other"):
        (tmp_path / name).mkdir(parents=True)
    for name in ("work/a.txt", "other/secret", "results/1.txt", "site/key"):
        (tmp_path / name).write_text("x")
    return Territory(
        place=Place(tmp_path / "work", tmp_path / "home"),
        roots=(tmp_path / "work", tmp_path / "site/sessions/1"),
        readable=(tmp_path / "results",),
        protected=(tmp_path / "site",),
        plan_dir=tmp_path / "home/plans",
    )


def reason(land: Territory, tool: str, **tool_input: object) -> str | None:
    call = ToolCall(tool, tool_input)
    writes = tool not in ("Read", "Glob", "Grep")
    found = find_outside(call, land, writes=writes)
    return found.reason if found else None


@pytest.mark.parametrize(
    "path", ["a.txt", "./a.txt", "src/../a.txt", "new/deep/file", "{work}/a.txt", "src"]
)
@pytest.mark.parametrize("tool", ["Read", "Write", "Edit"])
def test_paths_inside_the_roots_are_reachable(land, tool, path):
    path = path.format(work=land.place.cwd)

    assert reason(land, tool, file_path=path) is None


@pytest.mark.parametrize(
    "path",
    [
        "../other/secret",
        "src/../../other/secret",
        "{work}/../other/secret",
        "{work}-else/a.txt",
        "/etc/hosts",
        "//etc/hosts",
        "/",
        "..",
        "~/x",
        "~root/x",
        "/proc/self/cwd/a.txt",
        "/proc/self/root/etc/hosts",
        "/dev/fd/3",
        "a\0b",
        "",
    ],
)
@pytest.mark.parametrize("tool", ["Read", "Write", "Edit"])
def test_paths_outside_are_refused(land, tool, path):
    path = path.format(work=land.place.cwd)

    assert reason(land, tool, file_path=path) is not None


def test_symlinks_are_followed_before_a_path_is_judged(land, tmp_path):
    work = tmp_path / "work"
    (work / "out").symlink_to(tmp_path / "other")
    (work / "in").symlink_to(work / "src")
    (work / "file").symlink_to(tmp_path / "other/secret")
    (work / "chain").symlink_to(work / "out")
    (work / "loop").symlink_to(work / "loop")
    (work / "dangling").symlink_to(tmp_path / "other/new")

    assert reason(land, "Read", file_path="in/x") is None
    assert reason(land, "Read", file_path="loop") is None  # opening it fails anyway
    for path in ("out/secret", "out/new", "file", "chain/secret", "dangling", "out/.."):
        assert reason(land, "Write", file_path=path) is not None, path


def test_a_parent_of_a_symlink_is_the_parent_of_its_target(land, tmp_path):
    (tmp_path / "work/link").symlink_to(tmp_path / "other")

    found = reason(land, "Read", file_path="link/../work/a.txt")

    assert found is None  # the operating system goes the same way


def test_roots_may_be_symlinks_themselves(land, tmp_path):
    (tmp_path / "alias").symlink_to(tmp_path / "work")
    aliased = replace(
        land, place=Place(tmp_path / "alias"), roots=(tmp_path / "alias",)
    )

    assert reason(aliased, "Write", file_path="a.txt") is None
    assert reason(aliased, "Write", file_path=f"{tmp_path}/work/a.txt") is None


def test_readable_extras_are_not_writable(land, tmp_path):
    path = str(tmp_path / "results/1.txt")

    assert reason(land, "Read", file_path=path) is None
    assert reason(land, "Grep", path=path, pattern="x") is None
    assert reason(land, "Write", file_path=path) == (
        f"This path may be read, but not written: {path}"
    )


def test_the_sites_own_files_are_refused_except_the_roots_among_them(land, tmp_path):
    inside = str(tmp_path / "site/sessions/1/x")
    outside = str(tmp_path / "site/key")

    assert reason(land, "Write", file_path=inside) is None
    assert reason(land, "Read", file_path=outside) == (
        f"This path belongs to the site itself: {outside}"
    )
    everything = replace(land, roots=(tmp_path,))
    assert reason(everything, "Read", file_path=outside) is not None
    assert reason(everything, "Read", file_path=str(tmp_path / "other/secret")) is None


def test_a_refusal_names_the_folder_to_add(land, tmp_path):
    def folder(path: str) -> Path | None:
        found = find_outside(ToolCall("Read", {"file_path": path}), land, writes=False)
        assert found is not None
        return found.add_folder

    assert folder("../other/secret") == tmp_path / "other"
    assert folder("../other") == tmp_path / "other"
    assert folder("../site/key") is None
    assert folder("/x") is None
    assert folder("~root/x") is None


def test_without_a_home_folder_the_tilde_means_nothing(land):
    homeless = replace(land, place=Place(land.place.cwd))

    assert reason(homeless, "Read", file_path="~/x") == (
        "“~” has no meaning in this session."
    )


@pytest.mark.parametrize("value", [None, 7, ["a.txt"], {}])
def test_a_file_tool_without_a_path_is_refused(land, value):
    assert reason(land, "Read", file_path=value) == "The call names no path."
    assert reason(land, "NotebookEdit", notebook_path=value) is not None


def test_other_fields_do_not_stand_in_for_the_path(land):
    assert reason(land, "NotebookEdit", file_path="a.txt") is not None
    assert reason(land, "NotebookEdit", notebook_path="a.ipynb") is None


@pytest.mark.parametrize(
    ("tool", "tool_input"),
    [
        ("Glob", {"pattern": "**/*.py"}),
        ("Glob", {"pattern": "*.{py,txt}"}),
        ("Glob", {"pattern": "src/*.py", "path": ""}),
        ("Glob", {"pattern": "*", "path": "src"}),
        ("Glob", {"pattern": "../*.txt", "path": "src"}),
        ("Glob", {"pattern": "{work}/**"}),
        ("Glob", {"pattern": "a..b/*"}),
        ("Glob", {"pattern": "a.txt"}),
        ("Glob", {"pattern": None}),
        ("Grep", {"pattern": "/etc/passwd|\\.\\./x"}),
        ("Grep", {"pattern": "x", "glob": "*.py", "path": "src"}),
    ],
)
def test_searches_inside_the_roots_are_fine(land, tool, tool_input):
    work = str(land.place.cwd)
    filled = {
        key: value.replace("{work}", work) if isinstance(value, str) else value
        for key, value in tool_input.items()
    }

    assert reason(land, tool, **filled) is None


@pytest.mark.parametrize(
    ("tool", "tool_input"),
    [
        ("Glob", {"pattern": "/etc/*"}),
        ("Glob", {"pattern": "/*"}),
        ("Glob", {"pattern": "/etc/hosts"}),
        ("Glob", {"pattern": "~/*"}),
        ("Glob", {"pattern": "../*"}),
        ("Glob", {"pattern": "../other/secret"}),
        ("Glob", {"pattern": "*/../../other/*"}),
        ("Glob", {"pattern": "{..,src}/other/*"}),
        ("Glob", {"pattern": "{src,../other}/*"}),
        ("Glob", {"pattern": ".{.,x}/other/*"}),
        ("Glob", {"pattern": "a/../..{,/}other/*"}),
        ("Glob", {"pattern": "{/etc,src}/*"}),
        ("Glob", {"pattern": "*", "path": "../other"}),
        ("Grep", {"pattern": "x", "path": "/etc"}),
        ("Grep", {"pattern": "x", "glob": "../other/*"}),
        ("Grep", {"pattern": "x", "path": ["src"]}),
    ],
)
def test_searches_that_leave_the_roots_are_refused(land, tool, tool_input):
    assert reason(land, tool, **tool_input) is not None


def plan_write(path: str, mode: str = "plan", tool: str = "Write") -> ToolCall:
    return ToolCall(tool, {"file_path": path}, permission_mode=mode)


def test_exactly_the_plan_file_is_a_plan(land, tmp_path):
    plans = tmp_path / "home/plans"
    (plans / "evil.md").symlink_to(tmp_path / "other/secret")

    assert writes_plan(plan_write(f"{plans}/quiet-fox.md"), land)
    assert writes_plan(plan_write("~/plans/quiet-fox.md", tool="Edit"), land)
    for path in (
        *("quiet-fox.md", f"{plans}/a/b.md", f"{plans}/../x.md", f"{plans}/x.sh"),
        *(f"{plans}/.md", f"{plans}/evil.md", f"{plans}", "~nobody/x.md"),
    ):
        assert not writes_plan(plan_write(path), land), path


def test_a_plan_is_only_written_while_planning(land, tmp_path):
    path = f"{tmp_path}/home/plans/x.md"

    assert not writes_plan(plan_write(path, mode="default"), land)
    assert not writes_plan(plan_write(path, tool="Bash"), land)
    assert not writes_plan(plan_write(path), replace(land, plan_dir=None))
    assert not writes_plan(ToolCall("Write", {}, permission_mode="plan"), land)
    assert reason(land, "Read", file_path=path) is None
    assert reason(land, "Write", file_path=path) is not None


def test_a_path_that_cannot_be_resolved_is_refused(land):
    assert reason(land, "Read", file_path="\ud800") is not None
