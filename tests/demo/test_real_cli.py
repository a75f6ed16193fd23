"""The real SDK and CLI against the demo model: each scenario as an agent meets it."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import uuid
from pathlib import Path
from typing import Any

import pytest
from claude_agent_sdk import (
    AssistantMessage,
    ClaudeAgentOptions,
    ClaudeSDKClient,
    HookMatcher,
    InMemorySessionStore,
    Message,
    PermissionResultAllow,
    PermissionResultDeny,
    ResultMessage,
    StreamEvent,
    TextBlock,
    ThinkingBlock,
    ToolPermissionContext,
    ToolResultBlock,
    ToolUseBlock,
    UserMessage,
)

from agents.demo.script import Refusal
from agents.demo.server import DemoServer

pytestmark = pytest.mark.cli

TOOLS = [
    *("Read", "Write", "Edit", "Glob", "Grep", "Bash", "Task", "TodoWrite"),
    *("AskUserQuestion", "EnterPlanMode", "ExitPlanMode"),
]
TURN_SECONDS = 60


class Person:
    """Answers what the agent asks, and remembers having been asked."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, dict[str, Any]]] = []
        self.denials: dict[str, str] = {}

    async def decide(
        self, tool: str, tool_input: dict[str, Any], context: ToolPermissionContext
    ) -> PermissionResultAllow | PermissionResultDeny:
        self.asked.append((tool, tool_input))
        if tool in self.denials:
            return PermissionResultDeny(message=self.denials[tool])
        if tool == "AskUserQuestion":
            question = tool_input["questions"][0]["question"]
            answers = {question: "Blue"}
            return PermissionResultAllow(
                updated_input={**tool_input, "answers": answers}
            )
        return PermissionResultAllow()


class Agent:
    """One connected client with its workspace."""

    def __init__(
        self, client: ClaudeSDKClient, person: Person, workspace: Path
    ) -> None:
        self.client = client
        self.person = person
        self.workspace = workspace

    async def turn(self, prompt: str) -> list[Message]:
        async with asyncio.timeout(TURN_SECONDS):
            await self.client.query(prompt)
            return [message async for message in self.client.receive_response()]


@pytest.fixture
def demo():
    with DemoServer() as server:
        yield server


@pytest.fixture
def retries():
    return 0


@pytest.fixture
def options(demo, tmp_path, retries):
    workspace, home = tmp_path / "ws", tmp_path / "home"
    workspace.mkdir()
    home.mkdir()
    options = _options(demo.url, workspace, home)
    options.env["CLAUDE_CODE_MAX_RETRIES"] = str(retries)
    return options


@pytest.fixture
async def agent(options, tmp_path):
    person = Person()
    options.can_use_tool = person.decide
    async with ClaudeSDKClient(options) as client:
        yield Agent(client, person, tmp_path / "ws")


def _options(url: str, workspace: Path, home: Path):
    async def ask(*_: object) -> Any:
        output = {"hookEventName": "PreToolUse", "permissionDecision": "ask"}
        return {"hookSpecificOutput": output}

    return ClaudeAgentOptions(
        cwd=workspace,
        model="claude-sonnet-5-5",
        tools=TOOLS,
        hooks={"PreToolUse": [HookMatcher(hooks=[ask], on_failure="block")]},
        setting_sources=[],
        strict_mcp_config=True,
        verbatim_prompts=True,
        include_partial_messages=True,
        stderr=lambda line: None,
        extra_args={"restricted": None},
        env={
            "HOME": str(home),
            "CLAUDE_CONFIG_DIR": str(home / "config"),
            "ANTHROPIC_BASE_URL": url,
            "ANTHROPIC_AUTH_TOKEN": "demo-token",
            "ANTHROPIC_API_KEY": "",
            "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
            "CLAUDE_CODE_DISABLE_BACKGROUND_TASKS": "1",
            "CLAUDE_CODE_DISABLE_AUTO_MEMORY": "1",
            "CLAUDE_CODE_ENABLE_TASKS": "0",
            "CLAUDE_BYTE_STREAM_IDLE_TIMEOUT_MS": "2000",
        },
    )


def texts(messages: list[Message]) -> list[str]:
    return [b.text for b in blocks(messages) if isinstance(b, TextBlock)]


def blocks(messages: list[Message]) -> list[Any]:
    own = [m for m in messages if isinstance(m, AssistantMessage)]
    return [b for m in own if not m.parent_tool_use_id for b in m.content]


def calls(messages: list[Message]) -> list[str]:
    return [b.name for b in blocks(messages) if isinstance(b, ToolUseBlock)]


def results(messages: list[Message]) -> list[ToolResultBlock]:
    users = [m for m in messages if isinstance(m, UserMessage)]
    found = [b for m in users if isinstance(m.content, list) for b in m.content]
    return [b for b in found if isinstance(b, ToolResultBlock)]


def result(messages: list[Message]) -> ResultMessage:
    last = messages[-1]
    assert isinstance(last, ResultMessage)
    return last


async def test_a_stream_arrives_word_by_word(agent):
    messages = await agent.turn("demo: stream 5 words")

    deltas = [
        m.event["delta"]["text"]
        for m in messages
        if isinstance(m, StreamEvent) and m.event["type"] == "content_block_delta"
    ]
    assert deltas == ["amber-1", " birch-2", " cedar-3", " dune-4", " ember-5"]
    assert texts(messages) == ["amber-1 birch-2 cedar-3 dune-4 ember-5"]


async def test_a_gate_withholds_the_second_half(agent, demo):
    await agent.client.query("demo: hold half after 2 words")
    seen = ""
    async with asyncio.timeout(TURN_SECONDS):
        async for message in agent.client.receive_response():
            if isinstance(message, StreamEvent):
                seen += message.event.get("delta", {}).get("text", "")
            if seen == "amber-1 birch-2":
                demo.state.release("half")

    assert seen == "amber-1 birch-2 cedar-3 dune-4"


async def test_a_file_is_written_where_the_agent_works(agent):
    messages = await agent.turn("write the file notes.txt with the text Hello there")

    assert (agent.workspace / "notes.txt").read_text() == "Hello there"
    assert [tool for tool, _ in agent.person.asked] == ["Write"]
    assert "Done. Write answered: File created" in texts(messages)[-1]


async def test_a_denial_is_quoted_and_the_next_step_follows(agent):
    agent.person.denials["Write"] = "not in my house"

    messages = await agent.turn(
        "write the file a.txt with the text hi then run echo ok"
    )

    assert not (agent.workspace / "a.txt").exists()
    assert texts(messages) == [
        "I will write `a.txt`.",
        "That did not work. Write answered: not in my house\n\nI will run `echo ok`.",
        "Done. Bash answered: ok",
    ]


async def test_files_are_read_side_by_side(agent, demo):
    for name in ("a.txt", "b.txt"):
        (agent.workspace / name).write_text(f"this is {name}")

    messages = await agent.turn("read a.txt and b.txt")

    assert calls(messages) == ["Read", "Read"]
    assert len(results(messages)) == 2
    assert len(demo.state.model_calls) == 2
    assert "this is a.txt" in texts(messages)[-1]
    assert "this is b.txt" in texts(messages)[-1]


async def test_a_file_is_read_and_then_edited(agent):
    (agent.workspace / "a.txt").write_text("good morning")

    await agent.turn("edit a.txt replace morning with evening")

    assert (agent.workspace / "a.txt").read_text() == "good evening"


async def test_a_script_names_the_workspace(agent):
    call = {"file_path": "$CWD/deep/x.txt", "content": "<script>\n\tx"}

    await agent.turn(f"demo: tool Write {json.dumps(call, indent=1)}\ndemo: say done")

    assert (agent.workspace / "deep/x.txt").read_text() == "<script>\n\tx"


async def test_parallel_calls_stand_in_one_message(agent):
    messages = await agent.turn(
        "demo: parallel\n"
        'demo: tool Bash {"command": "echo one"}\n'
        'demo: tool Bash {"command": "echo two"}\n'
        "demo: end\n"
        "demo: say both done"
    )

    assert calls(messages) == ["Bash", "Bash"]
    assert texts(messages) == ["both done"]


async def test_a_question_is_asked_and_its_answer_quoted(agent):
    messages = await agent.turn("ask me a question")

    assert [tool for tool, _ in agent.person.asked] == ["AskUserQuestion"]
    assert '"Which colour should it have?"="Blue"' in texts(messages)[-1]


async def test_a_sub_agent_does_its_own_work(agent, demo):
    messages = await agent.turn("start a sub-agent to run echo from-below")

    assert calls(messages) == ["Agent"]
    assert agent.person.asked[-1] == ("Bash", agent.person.asked[-1][1])
    assert "Done. Bash answered: from-below" in texts(messages)[-1]
    agents = [call.agent_id for call in demo.state.model_calls]
    assert [bool(agent_id) for agent_id in agents] == [False, True, True, False]


async def test_thinking_is_a_block_of_its_own(agent):
    messages = await agent.turn("think about the sea")

    thinking, answer = blocks(messages)
    assert isinstance(thinking, ThinkingBlock)
    assert thinking.thinking.startswith("The person wants me to think about the sea.")
    assert isinstance(answer, TextBlock)


async def test_a_plan_is_written_and_handed_in(agent):
    messages = await agent.turn("plan a picnic")

    assert calls(messages) == ["EnterPlanMode", "Write", "ExitPlanMode"]
    handed_in = agent.person.asked[-1]
    assert handed_in[0] == "ExitPlanMode"
    assert handed_in[1]["plan"].startswith("# Plan: a picnic")
    assert not result(messages).is_error


async def test_a_plan_that_is_sent_back_is_quoted(agent):
    agent.person.denials["ExitPlanMode"] = "please revise: bring tea"

    messages = await agent.turn("plan a picnic")

    assert "please revise: bring tea" in texts(messages)[-1]


async def test_a_todo_list_is_kept(agent):
    messages = await agent.turn("make a todo list: buy tea, boil water and pour")

    call = next(b for b in blocks(messages) if isinstance(b, ToolUseBlock))
    assert [todo["content"] for todo in call.input["todos"]] == [
        *("buy tea", "boil water", "pour")
    ]
    assert not results(messages)[0].is_error


@pytest.mark.parametrize(
    ("status", "error"),
    [
        (400, "unknown"),
        (401, "authentication_failed"),
        (403, "authentication_failed"),
        (404, "model_not_found"),
        (429, "rate_limit"),
        (500, "server_error"),
        (529, "server_error"),
    ],
)
async def test_errors_reach_the_result(agent, status, error):
    messages = await agent.turn(f"demo: error {status}")

    assert result(messages).is_error
    assert result(messages).api_error_status == status
    assert error in [m.error for m in messages if isinstance(m, AssistantMessage)]


async def test_a_counted_error_ends_and_the_script_goes_on(agent):
    prompt = "demo: error 529 times 1\ndemo: say better now"

    failed, answered = await agent.turn(prompt), await agent.turn(prompt)

    assert result(failed).is_error
    assert texts(answered) == ["better now"]


async def test_a_refused_connection_is_an_error(agent, demo):
    with demo.refusing():
        messages = await agent.turn("hello")

    assert result(messages).is_error


async def test_a_dropped_connection_is_an_error(agent):
    messages = await agent.turn("demo: error dropped")

    assert result(messages).is_error


@pytest.mark.parametrize("retries", [2])
@pytest.mark.parametrize("fault", ["cut", "early", "inband", "stall"])
async def test_a_broken_stream_is_asked_for_again(agent, demo, fault):
    messages = await agent.turn(f"demo: {fault} after 2 words times 1\ndemo: say end")

    assert result(messages).result == "amber-1 birch-2 end"
    assert not result(messages).is_error
    assert len(demo.state.model_calls) == 2
    assert demo.state.model_calls[0].outcome != "answered"


@pytest.mark.parametrize("retries", [2])
@pytest.mark.parametrize("fault", ["early", "inband"])
async def test_a_finished_block_is_kept_and_the_rest_follows(agent, fault):
    messages = await agent.turn(
        "demo: say begin\n"
        "demo: think hm\n"
        f"demo: {fault} after 2 words times 1\n"
        "demo: say end"
    )

    assert texts(messages) == ["begin", "end"]


async def test_a_message_that_ran_out_of_tokens_is_continued(agent):
    messages = await agent.turn("demo: stop max_tokens\ndemo: say begin")

    assert texts(messages) == ["begin", "That is the rest."]


async def test_ordered_refusals_come_before_any_prompt(agent, demo):
    demo.state.refuse_next(Refusal(403))

    failed, answered = await agent.turn("say one"), await agent.turn("say two")

    assert result(failed).api_error_status == 403
    assert texts(answered) == ["two"]


async def test_earlier_messages_are_listed_to_the_letter(agent):
    first = "say *one*\n\n  with <b>marks</b>"
    await agent.turn(first)
    await agent.turn("count to 3")

    messages = await agent.turn("what did I say before?")

    assert texts(messages) == [
        f"Before this you sent me 2 messages:\n\n1. {first}\n2. count to 3"
    ]


async def test_an_interrupted_step_is_taken_up_again(agent, demo):
    await agent.client.query("demo: hold never after 2 words")
    await asyncio.to_thread(demo.state.wait_until_held, "never")
    await agent.client.interrupt()
    stopped = [message async for message in agent.client.receive_response()]
    demo.state.release("never")

    messages = await agent.turn("continue")

    assert result(stopped).terminal_reason == "aborted_streaming"
    assert demo.state.model_calls[0].outcome == "hung up"
    assert texts(messages) == ["amber-1 birch-2 cedar-3 dune-4"]


async def test_usage_is_what_the_script_says(agent, demo):
    messages = await agent.turn(
        "demo: usage input 1000 output 50 cache_read 10 cache_write 5\ndemo: say hi"
    )

    usage = result(messages).usage
    assert usage is not None
    assert usage["input_tokens"] == 1000
    assert usage["output_tokens"] == 50
    assert usage["cache_read_input_tokens"] == 10
    assert usage["cache_creation_input_tokens"] == 5
    (entry,) = demo.state.usage_log
    assert (entry.input_tokens, entry.output_tokens) == (1000, 50)
    assert entry.session_id == result(messages).session_id


async def test_lone_surrogates_arrive(agent):
    messages = await agent.turn(r'demo: text "a\ud83dz\u0000"')

    assert texts(messages) == ["a\ud83dz\x00"]


async def test_context_usage_is_counted(agent, demo):
    await agent.turn("hello")

    await agent.client.get_context_usage()

    counted = [r for r in demo.state.requests if r.path.endswith("count_tokens")]
    assert {request.outcome for request in counted} == {"answered"}


class CallStore(InMemorySessionStore):
    """Tells when a tool call has reached the transcript."""

    def __init__(self) -> None:
        super().__init__()
        self.has_call = asyncio.Event()

    async def append(self, key: Any, entries: Any) -> None:
        await super().append(key, entries)
        if '"tool_use"' in json.dumps(entries):
            self.has_call.set()


async def test_a_killed_session_makes_the_approved_call_again(options, tmp_path):
    asked = asyncio.Event()

    async def wait_for_ever(*_: object) -> PermissionResultDeny:
        asked.set()
        await asyncio.Event().wait()
        return PermissionResultDeny(message="never")

    options.can_use_tool = wait_for_ever
    options.session_id = str(uuid.uuid4())
    options.session_store = store = CallStore()
    options.session_store_flush = "eager"
    client = ClaudeSDKClient(options)
    await client.connect()
    await client.query("write the file a.txt with the text one then run echo done")
    async with asyncio.timeout(TURN_SECONDS):
        await asked.wait()
        await store.has_call.wait()
    _kill_cli(tmp_path / "home")
    await client.disconnect()
    call = {"file_path": str(tmp_path / "ws" / "a.txt"), "content": "two"}
    decision = f"Approved. Make this call again.\ncall: Write {json.dumps(call)}"

    person = Person()
    options.can_use_tool = person.decide
    options.resume, options.session_id = options.session_id, None
    async with ClaudeSDKClient(options) as resumed:
        agent = Agent(resumed, person, tmp_path / "ws")
        messages = await agent.turn(f"The server was restarted.\n\n{decision}")

    assert (tmp_path / "ws" / "a.txt").read_text() == "two"
    assert calls(messages) == ["Write", "Bash"]
    assert texts(messages)[-1] == "Done. Bash answered: done"


def _kill_cli(home: Path) -> None:
    """Kill the CLI that was started with this home, as a crash would."""
    mark = f"HOME={home}\0".encode()
    killed = 0
    for children in Path(f"/proc/{os.getpid()}/task").glob("*/children"):
        for child in children.read_text().split():
            if mark in Path(f"/proc/{child}/environ").read_bytes():
                os.kill(int(child), signal.SIGKILL)
                killed += 1
    assert killed == 1
