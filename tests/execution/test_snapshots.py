"""The engine records the files around each turn, and puts them back when asked."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import pytest

from agents.domain import branches, changes, snapshots
from agents.execution.engine import Engine
from agents.models import Message, Run, User
from agents.rendering.diffs import FileDiff

from .conftest import Chat, in_thread

pytestmark = pytest.mark.cli


async def listed(
    changes: Callable[[Any], list[FileDiff]], of: Run | Message
) -> list[tuple[str, str]]:
    return [(file.path, file.status) for file in await in_thread(changes, of)]


async def test_files_follow_the_conversation(engine: Engine, alice: User) -> None:
    chat = await Chat.launch(alice, "write the file one.txt with the text 1")
    await chat.decide(is_approved=True)
    first = await chat.finished()
    message = await chat.send("write the file two.txt with the text 2")
    await chat.decide(is_approved=True)
    second = await chat.finished(2)

    assert await listed(changes.diff_of_run, first) == [("one.txt", "added")]
    assert await listed(changes.diff_of_run, second) == [("two.txt", "added")]
    preview = await listed(snapshots.preview_restore_before, message)
    assert preview == [("two.txt", "deleted")]

    await in_thread(
        branches.edit_message,
        message,
        author=alice,
        text="say: another way",
        attachments={snapshots.RESTORE_FLAG: True},
    )
    await chat.finished(3)

    assert await in_thread(os.listdir, chat.session.cwd) == ["one.txt"]
