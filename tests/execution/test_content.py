"""Hostile and huge content on its way from the model and the tools into the rows."""

from __future__ import annotations

import json

import pytest

from agents.demo.server import DemoServer
from agents.execution.engine import Engine
from agents.models import SessionEvent, User
from agents.models.messages import MessageRole, ToolOutcome

from .conftest import Chat, in_thread

pytestmark = pytest.mark.cli

MEGABYTE = 1024 * 1024
REPLACED = "\ufffd"


def bash(command: str) -> str:
    return f"demo: tool Bash {json.dumps({'command': command})}"


async def test_what_no_database_takes_is_replaced_and_the_rest_kept(
    engine: Engine, alice: User
) -> None:
    said = '"nul:\\u0000 lone:\\ud83d ansi:\\u001b[31mred bidi:\\u202ex <script>"'
    chat = await Chat.launch(
        alice,
        f"demo: text {said}\n" + bash("printf 'a\\000b \\033[1mbold \\377 end'"),
        security_mode="full",
    )
    run = await chat.finished()
    rows = await chat.rows()

    assert run.success, run.error_text
    texts = [row.text for row in rows if row.role == MessageRole.ASSISTANT]
    assert texts[0] == (
        f"nul:{REPLACED} lone:{REPLACED} ansi:\x1b[31mred bidi:\u202ex <script>"
    )
    (result,) = await chat.results()
    assert result.outcome == ToolOutcome.OK
    assert "bold" in result.text
    assert result.text.endswith("end")
    events = await in_thread(
        lambda: list(SessionEvent.objects.filter(session=chat.session))
    )
    from_outside = [row for row in rows if row.role != MessageRole.USER]
    for stored in [
        *(row.text + json.dumps(row.content) for row in from_outside),
        *(json.dumps(event.data) for event in events),
    ]:
        assert "\x00" not in stored
        assert "\\u0000" not in stored
        stored.encode("utf-8")


async def test_huge_texts_inputs_and_results_pass_whole(
    engine: Engine, alice: User
) -> None:
    line = json.dumps("y" * 1024)
    content = "語" * (MEGABYTE // 2)  # 1.5 MB; a prompt takes a million characters
    big_write = json.dumps(
        {"file_path": "$CWD/big.txt", "content": content}, ensure_ascii=False
    )
    prompts = [
        f"demo: text {line} times 1024",
        f"demo: tool Write {big_write}",
        bash("head -c 5000000 /dev/zero | tr '\\0' x") + "\ndemo: say done",
    ]
    said, written, ran = [
        await Chat.launch(alice, prompt, security_mode="full") for prompt in prompts
    ]

    assert (await said.finished()).success
    assert (await said.rows())[-1].text == "y" * MEGABYTE
    assert (await written.finished()).success
    assert written.file("big.txt").read_text() == content
    calls = [r for r in await written.rows() if r.role == MessageRole.TOOL_CALL]
    assert calls[0].content["input"]["content"] == content
    assert (await ran.finished()).success
    (result,) = await ran.results()
    assert result.outcome == ToolOutcome.OK
    assert "xxxx" in result.text
    assert (await ran.rows())[-1].text.endswith("done")


async def test_a_prompt_arrives_to_the_letter_and_commands_nothing(
    engine: Engine, alice: User, demo: DemoServer
) -> None:
    prompts = ["look at @/etc/passwd please", "/clear", "/model claude-opus-4-6"]
    chat = await Chat.launch(alice, prompts[0])
    await chat.finished()
    for number, prompt in enumerate(prompts[1:], 2):
        await chat.send(prompt)
        assert (await chat.finished(number)).success
    last = (await chat.requests(demo))[-1]

    assert await chat.prompts(demo) == prompts
    assert "root:x:0" not in str(last.messages)
    assert last.body is not None
    assert last.body["model"] != "claude-opus-4-6"
