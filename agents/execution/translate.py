"""From the SDK's messages to our rows and events.

Three handlers as in the source documents (stream event, assistant message, result
message) and two more for user and system messages. Streamed blocks and the finished
messages meet in the same rows: by (message id, block index) for text and thinking, by
tool_use_id for calls.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

from claude_agent_sdk import (
    AssistantMessage,
    ResultMessage,
    StreamEvent,
    SystemMessage,
    TaskStartedMessage,
    TextBlock,
    ThinkingBlock,
    ToolResultBlock,
    ToolUseBlock,
    UserMessage,
)

from agents.domain import blocks, notices
from agents.models.messages import MessageRole, ToolOutcome

from . import subagents
from .capability import learn_from_result
from .context import ContextGauge, note_compaction
from .database import in_database
from .deltas import BlockStream, DeltaWriter
from .self_correction import heard_result
from .steps import StepWatch
from .turn import Turn

ROLES = {"text": MessageRole.ASSISTANT, "thinking": MessageRole.THINKING}


@dataclass(slots=True)
class Translator:
    """The blocks of one turn that are open, and where each goes."""

    turn: Turn
    deltas: DeltaWriter
    _gauge: ContextGauge = field(default_factory=ContextGauge)
    _steps: StepWatch = field(default_factory=StepWatch)
    _message_id: str = ""
    _open: dict[int, BlockStream] = field(default_factory=dict)
    _streamed: dict[tuple[str, str], list[UUID]] = field(default_factory=dict)
    """(API message id, role) -> rows whose finished block has not come yet."""

    async def handle(self, message: object) -> None:
        match message:
            case StreamEvent():
                await self.handle_stream_event(message)
            case AssistantMessage():
                await self.handle_assistant_message(message)
            case UserMessage():
                await self.handle_user_message(message)
            case SystemMessage():
                await self.handle_system_message(message)
            case ResultMessage():
                await self.handle_result_message(message)

    async def handle_stream_event(self, message: StreamEvent) -> None:
        event = message.event
        match event.get("type"):
            case "message_start":
                await self._abandon_open()
                self._message_id = event["message"]["id"]
                self._gauge.begin(event["message"])
                await self._steps.begin(self.turn, event)
            case "content_block_start":
                self._steps.observe(event)
                await self._start_block(event["index"], event["content_block"])
            case "content_block_delta":
                self._append(event["index"], event["delta"])
            case "content_block_stop":
                await self._stop_block(event["index"])
            case "message_delta":
                self._gauge.count(event.get("usage"))
                self._steps.observe(event)
            case "message_stop":
                self.turn.board.message_ended(self._message_id)
                await self._gauge.end(self.turn)

    async def _start_block(self, index: int, block: dict[str, Any]) -> None:
        kind = block.get("type")
        if kind in ROLES:
            row = await in_database(
                blocks.start_stream, self.turn.run, role=ROLES[kind]
            )
            key = (self._message_id, ROLES[kind].value)
            self._streamed.setdefault(key, []).append(row.pk)
        elif kind == "tool_use":
            self.turn.board.call_began(self._message_id, block["id"])
            row = await in_database(
                blocks.start_tool_call,
                self.turn.run,
                tool_use_id=block["id"],
                tool_name=block["name"],
            )
            if not row.is_streaming:  # the hook was quicker and knows the input
                return
        else:
            return
        stream = self.deltas.open(self.turn.session_id, row.pk)
        stream.append(str(block.get("text") or block.get("thinking") or ""))
        self._open[index] = stream

    def _append(self, index: int, delta: dict[str, Any]) -> None:
        stream = self._open.get(index)
        if stream is not None:
            stream.append(
                delta.get("text")
                or delta.get("thinking")
                or delta.get("partial_json")
                or ""
            )

    async def _stop_block(self, index: int) -> None:
        """The finished message usually came before; then the row is settled."""
        stream = self._open.pop(index, None)
        if stream is None:
            return
        self.deltas.close(stream)
        for rows in self._streamed.values():
            if stream.message_id in rows:
                rows.remove(stream.message_id)
                await self._finish(stream.message_id, stream.text)

    async def _abandon_open(self) -> None:
        """A message that was cut off is begun again: keep its half, marked."""
        for stream in self._open.values():
            self.deltas.close(stream)
            await in_database(
                blocks.finish_stream,
                stream.message_id,
                text=stream.text,
                is_interrupted=True,
            )
        self._open.clear()
        self._streamed.clear()

    async def handle_assistant_message(self, message: AssistantMessage) -> None:
        """Text, thinking and calls as they finally are, block by block."""
        is_synthetic = message.model == "<synthetic>"
        if message.parent_tool_use_id is None and not is_synthetic:
            await self._note_model(message.model)
        if is_synthetic and self.turn.is_compaction:
            self.turn.compaction_error = _text_of(message)
            return
        if message.error is not None:
            self.turn.last_error = str(message.error)
            return
        await self._leave_trouble()
        for block in message.content:
            match block:
                case TextBlock(text=text):
                    await self._say(message, MessageRole.ASSISTANT, text)
                case ThinkingBlock(thinking=text):
                    await self._say(message, MessageRole.THINKING, text)
                case ToolUseBlock():
                    await self._call(message, block)

    async def _note_model(self, model: str) -> None:
        """Which model answers; a card says so if it's not the one asked for."""
        if model != self.turn.model_actual:
            self.turn.model_actual = model
            await in_database(notices.record_fallback, self.turn.run, model)

    async def _leave_trouble(self) -> None:
        """The model has answered, so what went wrong before is over."""
        self.turn.trouble = None
        await self._end_retries(has_helped=True)

    async def _end_retries(self, *, has_helped: bool) -> None:
        notice_id, self.turn.retry_notice_id = self.turn.retry_notice_id, None
        if notice_id is not None:
            await in_database(notices.end_retries, notice_id, has_helped=has_helped)

    async def _say(
        self, message: AssistantMessage, role: MessageRole, text: str
    ) -> None:
        rows = self._streamed.get((message.message_id or "", role.value), [])
        if rows:
            row_id = rows.pop(0)
            self._forget_stream(row_id)
            await self._finish(row_id, text, message)
        elif text:
            await in_database(
                blocks.add_message,
                self.turn.session_id,
                branch_id=self.turn.run.branch_id,
                role=role,
                text=text,
                run=self.turn.run,
                model=message.model,
                sdk_uuid=_uuid(message.uuid),
                parent_tool_use_id=message.parent_tool_use_id or "",
            )

    def _forget_stream(self, message_id: UUID) -> None:
        for index, stream in list(self._open.items()):
            if stream.message_id == message_id:
                del self._open[index]
                self.deltas.close(stream)

    async def _finish(
        self, message_id: UUID, text: str, message: AssistantMessage | None = None
    ) -> None:
        known: dict[str, Any] = {}
        if message is not None:
            known = {"model": message.model, "sdk_uuid": _uuid(message.uuid)}
        elif self.turn.model_actual:
            known = {"model": self.turn.model_actual}
        await in_database(
            blocks.finish_stream,
            message_id,
            text=text,
            is_interrupted=self.turn.stopping.is_set(),
            **known,
        )

    async def _call(self, message: AssistantMessage, block: ToolUseBlock) -> None:
        agent_id = self.turn.agent_of_call(message.parent_tool_use_id or "")
        self.turn.known_calls[block.id] = (block.name, block.input, agent_id)
        row = await in_database(
            blocks.record_tool_call,
            self.turn.run,
            tool_use_id=block.id,
            tool_name=block.name,
            tool_input=block.input,
            parent_tool_use_id=message.parent_tool_use_id or "",
        )
        self._forget_stream(row.pk)

    async def handle_user_message(self, message: UserMessage) -> None:
        """Tool results; prompts and reminders are not echoed."""
        if isinstance(message.content, str):
            return
        for block in message.content:
            if isinstance(block, ToolResultBlock):
                await self._result(message, block)

    async def _result(self, message: UserMessage, block: ToolResultBlock) -> None:
        self.turn.board.call_answered(block.tool_use_id)
        if block.tool_use_id in self.turn.settled:
            return
        text, images = _split_result(block.content)
        structured = message.tool_use_result
        await in_database(
            blocks.record_tool_result,
            self.turn.run,
            tool_use_id=block.tool_use_id,
            outcome=self._outcome(block),
            text=text,
            content={
                **({"images": images} if images else {}),
                **({"structured": structured} if _is_small(structured) else {}),
            },
            parent_tool_use_id=message.parent_tool_use_id or "",
        )
        if block.is_error and not self.turn.stopping.is_set():
            await heard_result(self.turn, block.tool_use_id, text)

    def _outcome(self, block: ToolResultBlock) -> ToolOutcome:
        if not block.is_error:
            return ToolOutcome.OK
        is_ending = self.turn.stopping.is_set()
        return ToolOutcome.CANCELLED if is_ending else ToolOutcome.ERROR

    async def handle_system_message(self, message: SystemMessage) -> None:
        if isinstance(message, TaskStartedMessage):
            await subagents.task_started(self.turn, message)
        await note_compaction(self.turn, message)
        if message.subtype == "api_retry":
            data = message.data
            self.turn.retry_notice_id = await in_database(
                notices.record_retry,
                self.turn.run,
                self.turn.retry_notice_id,
                attempt=int(data.get("attempt") or 0),
                max_retries=int(data.get("max_retries") or 0),
                delay_ms=int(data.get("retry_delay_ms") or 0),
                error_status=data.get("error_status"),
                error=str(data.get("error") or "unknown"),
            )

    async def handle_result_message(self, message: ResultMessage) -> None:
        """The turn is over; what is still open is written as it stands."""
        await self.deltas.save_all()
        await self._end_retries(has_helped=False)
        await self._steps.complete(self.turn)
        await learn_from_result(message)


def _text_of(message: AssistantMessage) -> str:
    texts = [block.text for block in message.content if isinstance(block, TextBlock)]
    return "\n".join(texts)


def _split_result(content: Any) -> tuple[str, list[dict[str, Any]]]:
    """A tool result's text, and its images as {"media_type", "data"}."""
    if content is None or isinstance(content, str):
        return content or "", []
    texts: list[str] = []
    images: list[dict[str, Any]] = []
    for part in content:
        source = part.get("source") or {}
        if part.get("type") == "image" and source.get("type") == "base64":
            images.append(
                {"media_type": source.get("media_type"), "data": source.get("data")}
            )
        elif part.get("type") == "text":
            texts.append(str(part.get("text", "")))
    return "\n".join(texts), images


STRUCTURED_CHARACTERS = 200_000


def _is_small(structured: Any) -> bool:
    """The whole original file of an Edit is not worth a second copy in the row."""
    return (
        isinstance(structured, dict) and len(str(structured)) <= STRUCTURED_CHARACTERS
    )


def _uuid(value: str | None) -> UUID | None:
    return UUID(value) if value else None
