"""The demo model over HTTP, spoken to by the official client and by hand."""

from __future__ import annotations

import asyncio
import http.client
import json
import socket
import threading
import time
from typing import Any

import anthropic
import pytest
from anthropic.types import Message, MessageParam

from agents.demo.script import Refusal
from agents.demo.server import DemoServer, serve_demo
from agents.demo.state import DemoState


@pytest.fixture
def demo():
    with DemoServer(DemoState(required_key="right")) as server:
        yield server


@pytest.fixture
def client(demo):
    with anthropic.Anthropic(
        api_key="right", base_url=demo.url, max_retries=0
    ) as anthropic_client:
        yield anthropic_client


def ask(
    client: anthropic.Anthropic, prompt: str, **more: Any
) -> anthropic.types.Message:
    arguments = {"model": "claude-sonnet-5-5", "max_tokens": 1000, **more}
    messages: list[MessageParam] = [{"role": "user", "content": prompt}]
    message: Message = client.messages.create(messages=messages, **arguments)
    return message


def stream_text(client: anthropic.Anthropic, prompt: str) -> str:
    with client.messages.stream(
        model="claude-sonnet-5-5",
        max_tokens=1000,
        messages=[{"role": "user", "content": prompt}],
    ) as stream:
        return "".join(stream.text_stream)


def text_of(message: Message) -> str:
    return "".join(block.text for block in message.content if block.type == "text")


def post(demo: DemoServer, body: bytes) -> tuple[int, str]:
    connection = http.client.HTTPConnection("127.0.0.1", demo.port)
    try:
        connection.request("POST", "/v1/messages", body, {"x-api-key": "right"})
        response = connection.getresponse()
        return response.status, response.read().decode()
    finally:
        connection.close()


def test_a_whole_message_has_each_block(client):
    message = ask(
        client, 'demo: think hm\ndemo: say hi\ndemo: tool Bash {"command": "ls"}'
    )

    assert [block.type for block in message.content] == ["thinking", "text", "tool_use"]
    assert message.stop_reason == "tool_use"
    call = message.content[2]
    assert call.type == "tool_use"
    assert call.input == {"command": "ls"}


def test_a_stream_says_the_same_as_a_whole_message(client):
    prompt = 'demo: say one   two\ndemo: text "\\n\\tthree "\ndemo: stream 3 words'

    whole = text_of(ask(client, prompt))

    assert whole == "one   two\n\tthree amber-1 birch-2 cedar-3"
    assert stream_text(client, prompt) == whole


def test_a_stamp_is_taken_after_the_pause_before_its_word(client):
    asked_at = time.monotonic_ns()

    words = stream_text(client, "demo: stream 3 words at 10/s stamped").split()

    # At the earliest: the pace only ever gets slower.
    earliest = [asked_at + number * 100_000_000 for number in range(3)]
    stamps = [int(word.removeprefix("t")) for word in words]
    assert [max(pair) for pair in zip(stamps, earliest, strict=True)] == stamps


def test_a_huge_text_arrives_whole(client):
    assert stream_text(client, 'demo: text "ab" times 500000') == "ab" * 500_000


def test_numbers_are_logged_as_they_were_sent(client, demo):
    message = ask(client, "demo: usage input 7 output 8 cache_read 9 cache_write 10")

    (entry,) = demo.state.usage_log
    assert (message.usage.input_tokens, message.usage.output_tokens) == (7, 8)
    assert (entry.message_id, entry.model) == (message.id, "claude-sonnet-5-5")
    assert (entry.input_tokens, entry.output_tokens) == (7, 8)
    assert entry.cache_read_input_tokens == 9
    assert entry.cache_creation_input_tokens == 10
    assert entry.finished


def test_a_stream_that_breaks_is_logged_as_unfinished(client, demo):
    with pytest.raises(anthropic.APIError):
        stream_text(client, "demo: inband after 2 words")

    (entry,) = demo.state.usage_log
    assert (entry.output_tokens, entry.finished) == (1, False)


def test_a_wrong_key_is_refused_and_recorded(demo):
    with (
        anthropic.Anthropic(
            api_key="wrong", base_url=demo.url, max_retries=0
        ) as stranger,
        pytest.raises(anthropic.AuthenticationError),
    ):
        ask(stranger, "hello")

    (request,) = demo.state.requests
    assert (request.key, request.outcome) == ("wrong", "refused")


def test_a_bearer_token_is_a_key_too(demo):
    with anthropic.Anthropic(auth_token="right", base_url=demo.url) as bearer:
        ask(bearer, "hello")

    assert demo.state.requests[0].key == "right"


def test_an_error_carries_its_kind_and_retry_after(client):
    with pytest.raises(anthropic.RateLimitError) as caught:
        ask(client, "demo: error 429 retry-after 2")

    assert caught.value.response.headers["retry-after"] == "2"
    assert isinstance(caught.value.body, dict)
    assert caught.value.body["error"]["type"] == "rate_limit_error"


def test_each_session_has_its_own_failures(client):
    prompt = "demo: error 529 times 1\ndemo: say fine"
    for session in ("one", "two"):
        metadata = {"user_id": json.dumps({"session_id": session})}
        with pytest.raises(anthropic.InternalServerError):
            ask(client, prompt, metadata=metadata)

        assert text_of(ask(client, prompt, metadata=metadata)) == "fine"


def test_ordered_refusals_are_used_up(client, demo):
    demo.state.refuse_next(Refusal(500, times=2))

    for _ in range(2):
        with pytest.raises(anthropic.InternalServerError):
            ask(client, "say hi")

    assert text_of(ask(client, "say hi")) == "hi"


@pytest.mark.parametrize("line", ["error dropped", "cut after 2 words"])
def test_a_dropped_connection_has_no_end(client, demo, line):
    with pytest.raises(Exception, match=r"[Cc]onnection|peer"):
        stream_text(client, f"demo: {line}")

    assert demo.state.model_calls[0].outcome == "cut"


def test_a_gate_holds_the_rest_back_until_it_is_released(client, demo):
    with client.messages.stream(
        model="m",
        max_tokens=100,
        messages=[{"role": "user", "content": "demo: hold here after 2 words"}],
    ) as stream:
        texts = iter(stream.text_stream)
        first = [next(texts), next(texts)]
        demo.state.wait_until_held("here")
        demo.state.release("here")

        assert first == ["amber-1", " birch-2"]
        assert list(texts) == [" cedar-3", " dune-4"]


def test_a_released_gate_stays_open_until_it_is_held_again(client, demo):
    demo.state.release("here")
    assert stream_text(client, "demo: hold here after 1 word") == "amber-1 birch-2"

    demo.state.hold("here")
    reader = threading.Thread(
        target=stream_text, args=(client, "demo: hold here after 1 word")
    )
    reader.start()
    demo.state.wait_until_held("here", arrivals=2)
    assert demo.state.model_calls[1].outcome == "pending"
    demo.state.release("here")
    reader.join(30)

    assert demo.state.model_calls[1].outcome == "answered"


def test_a_caller_that_hangs_up_is_noticed(client, demo):
    with client.messages.stream(
        model="m",
        max_tokens=100,
        messages=[{"role": "user", "content": "demo: stall after 1 word"}],
    ) as stream:
        assert next(iter(stream.text_stream)) == "amber-1"

    demo.state.wait_for(lambda state: state.model_calls[0].outcome == "hung up")


def test_tokens_are_counted(client):
    counted = client.messages.count_tokens(
        model="m", messages=[{"role": "user", "content": "x" * 4000}]
    )

    assert 1000 <= counted.input_tokens < 1100


def test_models_are_listed(client):
    names = [model.id for model in client.models.list()]

    assert names == ["claude-opus-5-5", "claude-sonnet-5-5", "claude-haiku-5-5"]


@pytest.mark.parametrize("method", ["GET", "HEAD"])
def test_probes_are_answered(demo, method):
    connection = http.client.HTTPConnection("127.0.0.1", demo.port)
    connection.request(method, "/")
    response = connection.getresponse()
    body = response.read()
    connection.close()

    assert response.status == 200
    assert bool(body) == (method == "GET")


@pytest.mark.parametrize("body", [b"", b"[1]", b"{", b"\xff"])
def test_a_body_that_is_no_object_is_refused(demo, body):
    status, content = post(demo, body)

    assert status == 400
    assert json.loads(content)["error"]["type"] == "invalid_request_error"


def test_an_unknown_path_is_refused(client):
    with pytest.raises(anthropic.NotFoundError):
        client.post("/v1/complete", cast_to=object, body={})


def test_a_title_is_made_from_the_text(client):
    message = ask(
        client,
        "Fix the login page, please, because nobody gets in",
        system="Write a short title for this conversation.",
    )

    assert text_of(message) == "Fix the login page please because"


def test_a_structured_title_fits_its_schema(client):
    schema = {"type": "object", "properties": {"title": {"type": "string"}}}
    message = ask(
        client,
        "Fix the login page",
        extra_body={"output_config": {"format": {"schema": schema}}},
    )

    assert json.loads(text_of(message)) == {"title": "Fix the login page"}


def test_a_structured_output_tool_is_used(client):
    schema = {
        "type": "object",
        "properties": {"tags": {"type": "array", "items": {"type": "string"}}},
    }
    tool = {"name": "StructuredOutput", "input_schema": schema}
    (call,) = ask(client, "Name it", tools=[tool]).content

    assert call.type == "tool_use"
    assert call.input == {"tags": ["Name it"]}


def test_an_agent_without_tools_is_no_title_request(client):
    message = ask(client, "say hi", system="You are an agent. " * 200 + "title")

    assert text_of(message) == "hi"


def test_broken_tool_input_is_sent_as_it_is(demo):
    prompt = 'demo: broken-tool Bash {"x": nope'
    messages = [{"role": "user", "content": prompt}]
    body = json.dumps({"model": "m", "stream": True, "messages": messages})

    _, events = post(demo, body.encode())

    lines = [line for line in events.splitlines() if line.startswith("data: ")]
    deltas = [json.loads(line[6:]).get("delta", {}) for line in lines]
    parts = [delta["partial_json"] for delta in deltas if "partial_json" in delta]
    assert "".join(parts) == '{"x": nope'


def test_connections_are_refused_for_a_while(client, demo):
    with demo.refusing(), pytest.raises(anthropic.APIConnectionError):
        ask(client, "hello")

    assert text_of(ask(client, "say back")) == "back"


def test_a_taken_port_is_reported():
    with socket.create_server(("127.0.0.1", 0)) as taken:
        server = DemoServer(port=taken.getsockname()[1])
        with pytest.raises(OSError, match="in use"):
            server.start()


def test_stopping_hangs_up_on_everybody(client, demo):
    with client.messages.stream(
        model="m",
        max_tokens=100,
        messages=[{"role": "user", "content": "demo: stall after 1 word"}],
    ) as stream:
        assert next(iter(stream.text_stream)) == "amber-1"
        demo.stop()

    assert demo.state.model_calls[0].outcome == "hung up"


async def test_it_serves_in_a_running_loop_and_records_nothing():
    running = await serve_demo()
    client = anthropic.AsyncAnthropic(api_key="any", base_url=running.url)
    message = await client.messages.create(
        model="m", max_tokens=10, messages=[{"role": "user", "content": "say hi"}]
    )
    await client.close()
    await running.stop()
    await running.stop()

    assert text_of(message) == "hi"
    assert running.state.requests == []
    assert running.state.usage_log == []
    with pytest.raises(ConnectionRefusedError):
        await asyncio.open_connection("127.0.0.1", running.port)


def test_waiting_for_what_never_comes_ends(demo):
    with pytest.raises(TimeoutError):
        demo.state.wait_for(lambda state: bool(state.requests), timeout=0)
