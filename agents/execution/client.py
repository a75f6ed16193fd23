"""One CLI process: its launcher, its line to the model, and the task that owns it.

The owning task connects and disconnects. A reader of its own always drains the SDK's
stream into a queue, since after about a hundred unread messages even `interrupt()`
hangs.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import AsyncIterator
from typing import Any
from uuid import UUID

from claude_agent_sdk import ClaudeSDKClient, ResultMessage

from agents.conf import conf
from agents.gateway.lines import Line, Upstream
from agents.gateway.server import Gateway
from agents.mcp.bridge import Bridge
from agents.tasks import spawn
from agents.workspaces.folders import (
    session_home,
    session_launcher_folder,
    session_tmp,
)
from agents.workspaces.plugins import forget_other_plugins

from .approval import Gate, Places
from .bubblewrap import TMP_IN_JAIL, JailSpec
from .capability import learn_from_client
from .confinement import bundled_cli, write_launcher, write_system_prompt
from .database import own_database_thread
from .environment import SYSTEM_PROMPT_IN_JAIL, child_environment, config_dir
from .options import ClientSetup, Start, build_agent_options
from .processes import kill_marked
from .prompt_builder import PromptContent

logger = logging.getLogger(__name__)

STDERR_LINES = 40
# An idle CLI leaves within 0.1 s of being asked to.
GRACE_SECONDS = 0.5
KILL_AGAIN_SECONDS = 0.1


class ClientFailedError(Exception):
    """The CLI did not start, or ended; the cause says how, `stderr_tail` why."""

    def __init__(self, cause: Exception, stderr_tail: str) -> None:
        super().__init__(str(cause))
        self.cause = cause
        self.stderr_tail = stderr_tail


class _StopReading:
    """Wakes whoever waits for the next message of a turn that must end."""


class AgentClient:
    def __init__(
        self,
        setup: ClientSetup,
        gateway: Gateway,
        upstream: Upstream,
        bridge: Bridge,
        *,
        jailed: bool,
    ) -> None:
        self.setup = setup
        self.jailed = jailed
        self.idle_since = asyncio.get_running_loop().time()
        self._gateway = gateway
        self._bridge = bridge
        self._stderr: deque[str] = deque(maxlen=STDERR_LINES)
        self._messages: asyncio.Queue[Any] = asyncio.Queue()
        self._closing = asyncio.Event()
        self._owner: asyncio.Task[None] | None = None
        self._sdk: ClaudeSDKClient | None = None
        self._has_ended = False
        self.line: Line = gateway.open_line(setup.session_id, upstream)
        home = session_home(setup.session_id)
        tmp = session_tmp(setup.session_id)
        self.gate = Gate(
            Places(
                home=home,
                tmp=TMP_IN_JAIL if jailed else tmp,
                config_dir=config_dir(home),
            )
        )

    @property
    def is_alive(self) -> bool:
        """Whether it may be given a prompt: connected, and its process is there."""
        is_owned = self._owner is not None and not self._owner.done()
        return is_owned and not self._has_ended and not self._closing.is_set()

    @property
    def is_starting(self) -> bool:
        return self._owner is not None and self._sdk is None and not self._owner.done()

    async def connect(self, start: Start) -> None:
        """Start the process and wait until it answers.

        Raises: ClientFailedError; then `close` must still be called.
        """
        connected: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._owner = spawn(
            self._own(start, connected), name=f"client-{self.setup.session_id}"
        )
        try:
            await asyncio.wait_for(connected, conf().connect_timeout_seconds)
        except Exception as error:
            raise self._failed(error) from error

    def _failed(self, error: Exception) -> ClientFailedError:
        tail = "\n".join(self._stderr)
        # No louder: the CLI's dumps may quote what an agent works on.
        logger.debug("session %s: the CLI said: %s", self.setup.session_id, tail)
        return ClientFailedError(error, tail)

    async def _own(self, start: Start, connected: asyncio.Future[None]) -> None:
        async with own_database_thread():
            try:
                sdk = ClaudeSDKClient(self._options(start))
                await sdk.connect()
            except Exception as error:  # noqa: BLE001  whoever waits raises it
                if not connected.done():
                    connected.set_exception(error)
                return
            self._sdk = sdk
            if not connected.done():
                connected.set_result(None)
            reader = spawn(self._read(sdk), name=f"reader-{self.setup.session_id}")
            try:
                await learn_from_client(sdk)
                await self._closing.wait()
            finally:
                await self._disconnect(sdk, reader)

    async def _disconnect(
        self, sdk: ClaudeSDKClient, reader: asyncio.Task[None]
    ) -> None:
        self.gate.end_turn()
        self._gateway.close_line(self.line)
        try:
            await sdk.disconnect()
        except Exception:
            # `close` looks for what is left of the process and ends that.
            logger.exception("session %s: disconnect failed", self.setup.session_id)
        reader.cancel()
        await asyncio.wait({reader})

    def _options(self, start: Start) -> Any:
        setup = self.setup
        home, tmp = session_home(setup.session_id), session_tmp(setup.session_id)
        folder = session_launcher_folder(setup.session_id)
        forget_other_plugins(setup.session_id, setup.plugin)
        plugins = (setup.plugin,) if setup.plugin else ()
        prompt = setup.system_prompt
        prompt_file = write_system_prompt(prompt, folder) if prompt else None
        environment = child_environment(
            session_id=setup.session_id,
            home=home,
            tmp=tmp,
            token=self.line.token,
            jailed=self.jailed,
            base_url=self._gateway.base_url,
            timezone=setup.timezone,
            sends_effort=setup.effort is not None,
        )
        spec = JailSpec(
            workspace=setup.cwd.resolve(),
            home=home,
            tmp=tmp,
            gateway_socket=self._gateway.socket_path,
            network=setup.network,
            system_prompt=prompt_file,
            extra_rw=setup.mounts.writable,
            extra_ro=(*setup.mounts.readable, *plugins),
            max_processes=conf().jail_max_processes,
            max_memory_bytes=conf().jail_max_memory_bytes,
            environment=environment,
        )
        launcher = write_launcher(
            spec,
            bundled_cli(),
            jailed=self.jailed,
            folder=folder,
        )
        return build_agent_options(
            setup,
            start,
            gate=self.gate,
            call_tool=self._bridge.call,
            launcher=launcher,
            environment=environment,
            jailed=self.jailed,
            system_prompt_file=SYSTEM_PROMPT_IN_JAIL
            if self.jailed and prompt_file
            else prompt_file,
            on_stderr=self._stderr.append,
        )

    async def _read(self, sdk: ClaudeSDKClient) -> None:
        """Never waits for anything but the stream; its end is a message too."""
        ended: Exception = EOFError("the agent's process ended")
        try:
            async for message in sdk.receive_messages():
                self._messages.put_nowait(message)
        except Exception as error:  # noqa: BLE001  the turn that reads raises it
            ended = error
        self._has_ended = True
        self._messages.put_nowait(ended)

    async def query(self, content: PromptContent, prompt_id: UUID) -> None:
        """Send a prompt; a `prompt_id` that was used before is dropped silently.

        Raises: ClientFailedError.
        """
        assert self._sdk is not None, "connect comes first"
        while not self._messages.empty():  # what came since the last turn's result
            left_over = self._messages.get_nowait()
            if isinstance(left_over, Exception):
                raise self._failed(left_over)
        try:
            await self._sdk.query(_prompt(content, prompt_id))
        except Exception as error:
            raise self._failed(error) from error

    async def messages(self, *, heeds_stop: bool = True) -> AsyncIterator[Any]:
        """What the CLI says, up to its result, or up to `stop_reading` if heeded.

        Raises: ClientFailedError when the process ends.
        """
        while True:
            message = await self._messages.get()
            if isinstance(message, Exception):
                raise self._failed(message) from message
            if isinstance(message, _StopReading):
                if heeds_stop:
                    return
                continue
            yield message
            if isinstance(message, ResultMessage):
                return

    def stop_reading(self) -> None:
        self._messages.put_nowait(_StopReading())

    async def interrupt(self) -> None:
        """Returns when the CLI has heard it. Raises: ClientFailedError if it's gone."""
        assert self._sdk is not None, "connect comes first"
        try:
            await self._sdk.interrupt()
        except Exception as error:
            raise self._failed(error) from error

    async def close(self) -> None:
        """End the process with all its children; returns when they are gone.

        Bounded in time. The owner is never cancelled: a second cancel in its
        clean-up leaks the CLI.
        """
        self._closing.set()
        self._gateway.close_line(self.line)
        session_id = self.setup.session_id
        if self._owner is not None and self._sdk is not None:
            await asyncio.wait({self._owner}, timeout=GRACE_SECONDS)
        if self._owner is not None:
            await self._kill_until_over(self._owner)
        alive = await kill_marked(session_id)
        if alive:
            logger.error("processes %s of session %s survive", alive, session_id)

    async def _kill_until_over(self, owner: asyncio.Task[None]) -> None:
        """A start that hangs ends with its process, which may only just appear."""
        loop = asyncio.get_running_loop()
        deadline = loop.time() + conf().stop_deadline_seconds
        while not owner.done() and loop.time() < deadline:
            await kill_marked(self.setup.session_id)
            await asyncio.wait({owner}, timeout=KILL_AGAIN_SECONDS)


async def _prompt(
    content: PromptContent, prompt_id: UUID
) -> AsyncIterator[dict[str, Any]]:
    yield {
        "type": "user",
        "uuid": str(prompt_id),
        "message": {"role": "user", "content": content},
        "parent_tool_use_id": None,
    }
