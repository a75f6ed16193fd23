"""Requests that are no conversation: titles, summaries, structured answers.

The CLI and the product make them next to the conversation; they get a sane answer
made from their own text instead of a script.
"""

from __future__ import annotations

import json
import re
from typing import Any

from agents.demo.conversation import plain_text, read_conversation
from agents.demo.script import (
    Call,
    Exact,
    Reply,
    Say,
    ScriptError,
    Step,
    summary_script,
)

_SUMMARY = "create a detailed summary of"
_TITLE = re.compile(r"\b(?:title|name|label|topic)\b", re.IGNORECASE)
TITLE_WORDS = 6


def side_reply(body: dict[str, Any]) -> Step | None:
    """Answer a side request; None for an ordinary conversation."""
    prompt = read_conversation(body).exchanges[-1].prompt
    tools = {tool.get("name"): tool for tool in body.get("tools") or []}
    schema = ((body.get("output_config") or {}).get("format") or {}).get("schema")
    if schema is not None:
        return Reply((Exact(json.dumps(_filled(schema, _title(prompt)))),))
    if set(tools) == {"StructuredOutput"}:
        schema = tools["StructuredOutput"].get("input_schema") or {}
        return Reply((Call("StructuredOutput", _filled(schema, _title(prompt))),))
    if _SUMMARY in prompt:
        return _summary(body)
    if not tools and _asks_for_title(body, prompt):
        return Reply((Say(_title(prompt)),))
    return None


def _asks_for_title(body: dict[str, Any], prompt: str) -> bool:
    """A short system prompt, or the prompt's own first line, asks for a title.

    The system prompt of an agent is long and mentions everything; it doesn't count.
    """
    system = plain_text(body.get("system"))
    instruction, script, _ = prompt.partition("demo:")
    if re.search(r"\btitle\b", instruction[:300]):
        return True
    return not script and len(system) < 3000 and bool(_TITLE.search(system))


def _title(prompt: str) -> str:
    """The first words of the prompt's last paragraph, without any mark-up."""
    paragraph = re.sub(r"</?[\w-]+>", " ", prompt).strip().rsplit("\n\n", 1)[-1]
    words = re.sub(r"[^\w\s.'/-]", " ", paragraph).split()[:TITLE_WORDS]
    title = " ".join(words) or "Demo conversation"
    return title[:1].upper() + title[1:]


def _summary(body: dict[str, Any]) -> Step:
    """As the conversation's `demo: summary` lines say, else its own messages."""
    prompts = [e.prompt for e in read_conversation(body).exchanges[:-1]]
    try:
        scripted = summary_script("\n".join(prompts))
    except ScriptError as error:
        return Reply((Say(f"This script can't be played: {error}."),))
    if scripted:
        return scripted[0]
    return Reply((Say(_list(prompts)),))


def _list(prompts: list[str]) -> str:
    listed = "\n".join(f"- {prompt[:500]}" for prompt in prompts)
    return f"<summary>\nThe person sent these messages:\n{listed}\n</summary>"


def _filled(schema: dict[str, Any], text: str) -> Any:
    """A value that fits a JSON schema of the simple kind."""
    if schema.get("enum"):
        return schema["enum"][0]
    match schema.get("type"):
        case "object":
            properties = schema.get("properties") or {}
            return {name: _filled(part, text) for name, part in properties.items()}
        case "array":
            return [_filled(schema.get("items") or {"type": "string"}, text)]
        case "integer" | "number":
            return 1
        case "boolean":
            return True
        case "null":
            return None
        case _:
            return text
