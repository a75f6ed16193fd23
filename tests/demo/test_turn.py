"""What comes next in a conversation, decided from its messages alone."""

from __future__ import annotations

import json
from typing import Any

from agents.demo.script import Call, Refusal, Reply, Say, Step
from agents.demo.turn import next_move

TOOLS = [{"name": name} for name in ("Read", "Write", "Bash", "EnterPlanMode")]
WHERE = {"role": "system", "content": " - Primary working directory: /srv/here\n"}


class Talk:
    """Builds the messages as the CLI sends them."""

    def __init__(self, *prompts: str) -> None:
        self.messages: list[dict[str, Any]] = []
        self.failures: dict[tuple[str, ...], int] = {}
        for prompt in prompts:
            self.say(prompt)

    def say(self, *texts: str) -> None:
        blocks = [{"type": "text", "text": text} for text in texts]
        self.messages.append({"role": "user", "content": blocks})

    def next(self) -> Step:
        move = next_move(
            {"messages": self.messages, "tools": TOOLS},
            caller=("session", ""),
            failures_of=lambda key: self.failures.get(key, 0),
        )
        self.key = move.failure_key
        return move.step

    def play(self, *results: str, is_error: bool = False) -> Step:
        """Take the next step and answer its calls."""
        step = self.next()
        assert isinstance(step, Reply)
        calls = [
            {"type": "tool_use", "id": f"{len(self.messages)}.{n}", "name": call.tool}
            for n, call in enumerate(step.calls)
        ]
        text = [{"type": "text", "text": "..."}]
        self.messages.append({"role": "assistant", "content": calls or text})
        answers = [
            {
                "type": "tool_result",
                "tool_use_id": call["id"],
                "content": result,
                "is_error": is_error,
            }
            for call, result in zip(calls, results, strict=False)
        ]
        if answers:
            self.messages.append({"role": "user", "content": answers})
        return step


def text_of(step: Step) -> str:
    assert isinstance(step, Reply)
    return "|".join(piece.text for piece in step.pieces if isinstance(piece, Say))


def call_of(step: Step) -> Call:
    assert isinstance(step, Reply)
    return step.calls[0]


def test_steps_are_taken_in_turn_until_a_closing_sentence():
    talk = Talk('demo: tool Bash {"command": "a"}\ndemo: tool Bash {"command": "b"}')

    steps = [talk.play("one"), talk.play("two"), talk.play()]

    assert call_of(steps[0]).input == {"command": "a"}
    assert call_of(steps[1]).input == {"command": "b"}
    assert text_of(steps[2]) == "Done. Bash answered: two"


def test_a_refused_call_is_quoted():
    talk = Talk("demo: tool Bash {}")
    talk.play("no, thank you", is_error=True)

    assert text_of(talk.next()) == "That did not work. Bash answered: no, thank you"


def test_a_long_result_is_quoted_in_part():
    talk = Talk("demo: tool Bash {}")
    talk.play("x" * 5000)

    assert text_of(talk.next()) == f"Done. Bash answered: {'x' * 300}…"


def test_a_plan_ends_where_plan_mode_was_refused():
    talk = Talk("demo: plan Tea")
    talk.play("not now", is_error=True)

    assert text_of(talk.next()) == "That did not work. EnterPlanMode answered: not now"


def test_a_session_in_plan_mode_does_not_enter_it_again():
    talk = Talk("demo: plan Tea")
    note = "Plan mode is active. Create your plan at /home/plans/x-y.md using Write."
    talk.messages.append({"role": "system", "content": note})

    expected = {"file_path": "/home/plans/x-y.md", "content": "Tea"}
    assert call_of(talk.next()).input == expected


def test_paths_are_put_below_the_named_folder():
    talk = Talk("read a.txt")
    talk.messages.append(WHERE)

    assert call_of(talk.next()).input == {"file_path": "/srv/here/a.txt"}


def test_paths_stay_relative_when_no_folder_is_named():
    assert call_of(Talk("read a.txt").next()).input == {"file_path": "a.txt"}


def test_reminders_are_no_part_of_a_prompt():
    talk = Talk()
    talk.say("<system-reminder>\nsay no\n</system-reminder>", "say yes")

    assert text_of(talk.next()) == "yes"


def test_only_the_last_of_several_prompts_is_played_and_all_are_remembered():
    talk = Talk()
    talk.say("demo: error 401", "what did I say before?")

    expected = "Before this you sent me 1 message:\n\n1. demo: error 401"
    assert text_of(talk.next()) == expected


def test_the_notes_of_a_resumed_call_do_not_start_a_turn():
    talk = Talk('demo: tool Bash {"command": "a"}\ndemo: say end')
    talk.play("one")
    talk.say("Continue from where you left off.")

    assert text_of(talk.next()) == "end"


def test_continue_repeats_the_call_that_was_interrupted():
    talk = Talk('demo: tool Bash {"command": "a"}\ndemo: tool Bash {"command": "b"}')
    talk.play("one")
    talk.play("[Request interrupted by user for tool use]", is_error=True)
    talk.say("[Request interrupted by user for tool use]", "continue")

    assert call_of(talk.play("two")).input == {"command": "b"}
    assert text_of(talk.next()) == "Done. Bash answered: two"


def test_continue_answers_the_results_behind_which_it_was_interrupted():
    talk = Talk('demo: tool Bash {"command": "a"}\ndemo: say end')
    talk.play("one")
    talk.say("[Request interrupted by user]", "continue")

    assert text_of(talk.next()) == "end"


def test_continue_repeats_a_call_that_was_never_answered():
    talk = Talk('demo: tool Bash {"command": "a"}')
    talk.play()
    talk.say("Continue. The person approved Bash.")

    assert call_of(talk.next()).input == {"command": "a"}


def test_continue_leaves_a_call_that_was_denied():
    talk = Talk('demo: tool Bash {"command": "a"}\ndemo: say end')
    talk.play()
    talk.say("Continue. Bash was denied.")

    expected = "I will leave it. You told me: Continue. Bash was denied.|end"
    assert text_of(talk.play()) == expected
    assert text_of(talk.next()) == "That is all; there is nothing left to do."


RESTARTED = "The server was restarted while you waited. The decision has come in:\n\n"


def test_an_approved_call_is_made_again_as_it_stands_and_the_rest_follows():
    talk = Talk('demo: tool Bash {"command": "a"}\ndemo: tool Bash {"command": "c"}')
    talk.play()
    call = 'call: Bash {"command": "b\\n"}'
    talk.say(f"{RESTARTED}Approved. Make exactly this call again now.\n{call}")

    assert call_of(talk.play("ok")).input == {"command": "b\n"}
    assert call_of(talk.play("fine")).input == {"command": "c"}
    assert text_of(talk.next()) == "Done. Bash answered: fine"


def test_a_denied_call_is_left_out_after_a_restart():
    talk = Talk('demo: tool Bash {"command": "a"}')
    talk.play()
    words = "Denied: do not make this call. They said: too loud"
    talk.say(f'{RESTARTED}{words}\ncall: Bash {{"command": "a"}}')

    expected = (
        "I will leave it. You told me: do not make this call. They said: too loud"
    )
    assert text_of(talk.next()) == expected


def test_a_decision_is_heard_behind_a_prompt_that_is_told_again():
    decision = "Denied: do not make this call. They said: too loud"
    call = 'call: Bash {"command": "a"}'
    talk = Talk(
        'demo: tool Bash {"command": "a"}\ndemo: say end'
        f"\n\n{RESTARTED}{decision}\n{call}"
    )

    expected = "do not make this call. They said: too loud|end"
    assert text_of(talk.next()) == f"I will leave it. You told me: {expected}"


def test_continue_with_nothing_before_it_is_an_ordinary_sentence():
    assert text_of(Talk("continue").next()).startswith("I don't know how to do this")


def test_an_error_is_repeated_until_it_has_failed_often_enough():
    talk = Talk("demo: tool Bash {}\ndemo: error 529 times 2\ndemo: say end")
    talk.play("ok")

    for _ in range(2):
        assert talk.next() == Refusal(529, times=2)
        talk.failures[talk.key] = talk.failures.get(talk.key, 0) + 1

    assert text_of(talk.play()) == "end"


def test_what_stands_after_a_break_is_still_owed():
    talk = Talk("demo: say a\ndemo: inband times 1\ndemo: say b\ndemo: tool Bash {}")
    talk.messages.append({"role": "assistant", "content": "a"})
    talk.say("<system-reminder>\nYour response above was cut off</system-reminder>")

    step = talk.play("ok")

    assert text_of(step) == "b"
    assert call_of(step) == Call("Bash", {})
    assert text_of(talk.next()) == "Done. Bash answered: ok"


def test_a_script_with_a_mistake_is_explained():
    assert text_of(Talk("demo: dance").next()) == (
        "This script can't be played: there is no directive `dance`."
    )


def test_the_end_of_background_work_is_acknowledged():
    talk = Talk("<task-notification>done</task-notification>")

    assert text_of(talk.next()) == "The work in the background has ended."


def test_a_sub_agents_report_is_quoted_without_its_frame():
    talk = Talk("demo: agent say hi")
    talk.play("[Subagent hand-back] The report follows:\n  hi\nagentId: a1\n<usage>")

    assert text_of(talk.next()) == "Done. Agent answered: hi"


def test_inputs_deep_inside_name_the_folder():
    call = {"edits": [{"path": "$CWD/a"}], "count": 2}
    talk = Talk(f"demo: tool X {json.dumps(call)}")
    talk.messages.append(WHERE)

    expected = {"edits": [{"path": "/srv/here/a"}], "count": 2}
    assert call_of(talk.next()).input == expected
