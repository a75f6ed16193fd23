"""Whatever is done to a workspace, a restore puts back exactly what was."""

from __future__ import annotations

import os
import shutil
import tempfile
from contextlib import suppress
from pathlib import Path
from uuid import uuid4

from hypothesis import given, settings
from hypothesis import strategies as st

from agents.workspaces import snapshots

from .test_snapshots import tree_of

# Few names, so that the same path is a file, then a folder, then a link.
NAMES = st.sampled_from(["a", "b", "c d", "é", "a\udcff", "n\nl", ".hidden"])
PATHS = st.lists(NAMES, min_size=1, max_size=3).map("/".join)
OPERATIONS = st.one_of(
    st.tuples(st.just("write"), PATHS, st.binary(max_size=20)),
    st.tuples(st.just("program"), PATHS, st.binary(max_size=5)),
    st.tuples(st.just("link"), PATHS, st.sampled_from(["a", "..", "/etc", "b/c d"])),
    st.tuples(st.just("folder"), PATHS, st.none()),
    st.tuples(st.just("remove"), PATHS, st.none()),
    st.tuples(st.just("rename"), PATHS, PATHS),
)


def carry_out(folder: Path, operation: tuple) -> None:
    """What can't be done is left: a parent that is a file, say."""
    kind, relative, value = operation
    path = folder / relative
    if any(parent.is_symlink() for parent in path.parents):
        return  # it may lead out of the folder
    with suppress(OSError):
        match kind:
            case "write" | "program":
                path.parent.mkdir(parents=True, exist_ok=True)
                path.unlink(missing_ok=True)
                path.write_bytes(value)
                path.chmod(0o755 if kind == "program" else 0o644)
            case "link":
                path.parent.mkdir(parents=True, exist_ok=True)
                path.symlink_to(value)
            case "folder":
                path.mkdir(parents=True)
            case "remove":
                is_folder = path.is_dir() and not path.is_symlink()
                shutil.rmtree(path) if is_folder else path.unlink()
            case "rename":
                os.rename(path, folder / value)  # noqa: PTH104 - doesn't follow links


@settings(max_examples=25, deadline=None)
@given(histories=st.lists(st.lists(OPERATIONS, max_size=12), min_size=2, max_size=3))
def test_every_state_is_put_back_exactly(histories):
    session_id = uuid4()
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary, "workspace")
        folder.mkdir()
        states = []
        for history in histories:
            for operation in history:
                carry_out(folder, operation)
            taken = snapshots.take(folder, session_id)
            states.append((taken.commit, tree_of(folder)))

        for commit, tree in reversed(states):
            restored = snapshots.restore(folder, session_id, commit)
            assert restored.kept == []
            assert tree_of(folder) == tree
    snapshots.delete_snapshots(session_id)
