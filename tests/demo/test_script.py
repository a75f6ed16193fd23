"""The script language, read without any server."""

from __future__ import annotations

import pytest

from agents.demo.script import (
    PLAN,
    Call,
    Exact,
    Fault,
    Hold,
    Refusal,
    Reply,
    Say,
    ScriptError,
    Think,
    Usage,
    Words,
    parse_script,
    summary_script,
)


def test_a_prompt_without_directives_is_no_script():
    assert parse_script("say demo: please") is None


@pytest.mark.parametrize(
    ("line", "pieces"),
    [
        ("say  hello  there", (Say("hello  there"),)),
        ("stream 3 words", (Words(3),)),
        ("stream 3 words at 2.5/s stamped", (Words(3, 2.5, stamped=True),)),
        ("think of it", (Think("of it"),)),
        ("hold gate", (Hold("gate"),)),
        ("hold g after 2 words", (Words(2), Hold("g"), Words(2))),
        ("cut after 4 words", (Words(4), Fault("cut"))),
        ("early after 4 words", (Words(4), Fault("early"))),
        ("stall times 2", (Fault("stall", 2),)),
        ("inband after 1 word times 1", (Words(1), Fault("inband", 1))),
        (r'text "a\ud83d\n"', (Exact("a\ud83d\n"),)),
        ('text "ab" times 3', (Exact("ababab"),)),
        ("tool Bash", (Call("Bash", {}),)),
        ('tool Bash {"command": "ls"}', (Call("Bash", {"command": "ls"}),)),
        ('broken-tool Bash {"command":', (Call("Bash", '{"command":'),)),
        ('ask {"questions": []}', (Call("AskUserQuestion", {"questions": []}),)),
    ],
)
def test_a_directive_becomes_pieces(line, pieces):
    assert parse_script(f"demo: {line}") == (Reply(pieces),)


def test_json_may_span_lines_and_the_script_goes_on_behind_it():
    steps = parse_script('demo: tool Write {\n "a": "demo: say no"\n}\ndemo: say yes')

    write = Reply((Call("Write", {"a": "demo: say no"}),))
    assert steps == (write, Reply((Say("yes"),)))


def test_texts_and_the_next_tool_share_a_message():
    steps = parse_script(
        "Do this, please.\n"
        "demo: think hm\ndemo: say first\ndemo: tool Bash {}\n"
        "and that\n"
        "demo: say then"
    )

    together = Reply((Think("hm"), Say("first"), Call("Bash", {})))
    assert steps == (together, Reply((Say("then"),)))


def test_a_group_holds_several_tools_in_one_message():
    steps = parse_script(
        "demo: parallel\ndemo: tool A {}\ndemo: tool B {}\ndemo: end\ndemo: tool C {}"
    )

    pair = Reply((Call("A", {}), Call("B", {})))
    assert steps == (pair, Reply((Call("C", {}),)))


def test_numbers_and_stop_reason_belong_to_their_message():
    steps = parse_script(
        "demo: usage input 1000 output 50 cache_read 10 cache_write 5\n"
        "demo: stop max_tokens\ndemo: tool A\ndemo: say b"
    )

    usage = Usage(input=1000, output=50, cache_read=10, cache_write=5)
    first = Reply((Call("A", {}),), usage=usage, stop_reason="max_tokens")
    assert steps == (first, Reply((Say("b"),)))


def test_numbers_alone_make_a_short_message():
    steps = parse_script("demo: usage output 7")

    assert steps == (Reply((Say("Done."),), usage=Usage(output=7)),)


@pytest.mark.parametrize(
    ("line", "refusal"),
    [
        ("error 401", Refusal(401)),
        ("error dropped times 2", Refusal(0, times=2)),
        ("error 429 retry-after 2 times 1", Refusal(429, None, 2, 1)),
        ("error 400 message prompt is too long", Refusal(400, "prompt is too long")),
    ],
)
def test_an_error_is_a_step_of_its_own(line, refusal):
    steps = parse_script(f"demo: say a\ndemo: {line}\ndemo: say b")

    assert steps == (Reply((Say("a"),)), refusal, Reply((Say("b"),)))


def test_a_sub_agents_prompt_may_be_a_script():
    steps = parse_script(r'demo: agent "demo: think x\ndemo: say y"')

    assert steps is not None
    assert isinstance(steps[0], Reply)
    (call,) = steps[0].calls
    assert call.tool == "Agent"
    assert isinstance(call.input, dict)
    assert call.input["prompt"] == "demo: think x\ndemo: say y"


def test_a_plan_is_three_calls():
    steps = parse_script("demo: plan Build a house")

    assert steps is not None
    calls = [call for step in steps if isinstance(step, Reply) for call in step.calls]
    assert [call.tool for call in calls] == ["EnterPlanMode", "Write", "ExitPlanMode"]
    assert calls[1].input == {"file_path": PLAN, "content": "Build a house"}


@pytest.mark.parametrize(
    "line",
    [
        "dance",
        "stream many words",
        "stream 999999999 words",
        "tool",
        "tool Bash [1]",
        "tool Bash {not json}",
        "text plain",
        "text 5",
        'text "aaaaaaaaaa" times 9999999',
        "ask no",
        "error 200",
        "error soon",
        "usage input many",
        "parallel",
    ],
)
def test_a_line_that_makes_no_sense_is_named(line):
    with pytest.raises(ScriptError):
        parse_script(f"demo: {line}")


def test_the_lines_for_a_summary_make_one_answer_and_play_no_part_otherwise():
    prompt = "demo: say one\ndemo: summary hold half\ndemo: summary say All of it."

    assert parse_script(prompt) == (Reply((Say("one"),)),)
    assert summary_script(prompt) == (Reply((Hold("half"), Say("All of it."))),)
    assert summary_script("demo: say one") == ()
