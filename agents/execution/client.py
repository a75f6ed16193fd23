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
from uuid import UUID, uuid4

from claude_agent_sdk import ClaudeSDKClient, ResultMessage

from agents.conf import conf
from agents.gateway.lines import Line, Upstream
from agents.gateway.server import Gateway
from agents.tasks import spawn
from agents.workspaces.folders import (
    session_home,
    session_launcher_folder,
    session_tmp,
)

from .approval import Gate, Places
from .bubblewrap import TMP_IN_JAIL, JailSpec
from .confinement import bundled_cli, write_launcher
from .database import own_database_thread
from .environment import child_environment, config_dir
from .options import ClientSetup, Start, build_agent_options
from .processes import kill_marked
from .prompt_builder import PromptContent

logger = logging.getLogger(__name__)

STDERR_LINES = 40


class Stopped:
    """Put into the message queue when the turn was asked to end."""


class AgentClient:
    def __init__(
        self, setup: ClientSetup, gateway: Gateway, upstream: Upstream, *, jailed: bool
    ) -> None:
        self.setup = setup
        self.jailed = jailed
        self.idle_since = asyncio.get_running_loop().time()
        self._gateway = gateway
        self._stderr: deque[str] = deque(maxlen=STDERR_LINES)
        self._messages: asyncio.Queue[Any] = asyncio.Queue()
        self._closing = asyncio.Event()
        self._owner: asyncio.Task[None] | None = None
        self._sdk: ClaudeSDKClient | None = None
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
        return (
            self._owner is not None
            and not self._owner.done()
            and not self._closing.is_set()
        )

    @property
    def stderr_tail(self) -> str:
        return "\n".join(self._stderr)

    async def connect(self, start: Start) -> None:
        """Start the process and wait until it answers.

        Raises: what the SDK raises, CliMissingError, or TimeoutError.
        """
        connected: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._owner = spawn(
            self._own(start, connected), name=f"client-{self.setup.session_id}"
        )
        await asyncio.wait_for(connected, conf().connect_timeout_seconds)

    async def _own(self, start: Start, connected: asyncio.Future[None]) -> None:
        async with own_database_thread():
            try:
                sdk = ClaudeSDKClient(self._options(start))
                await sdk.connect()
            except Exception as error:  # noqa: BLE001  whoever waits raises it
                if not connected.done():
                    connected.set_exception(error)
                self._gateway.close_line(self.line)
                return
            self._sdk = sdk
            if not connected.done():
                connected.set_result(None)
            reader = spawn(self._read(sdk), name=f"reader-{self.setup.session_id}")
            try:
                await self._closing.wait()
            finally:
                self.gate.turn = None
                self._gateway.close_line(self.line)
                await sdk.disconnect()
                reader.cancel()

    def _options(self, start: Start) -> Any:
        setup = self.setup
        home, tmp = session_home(setup.session_id), session_tmp(setup.session_id)
        environment = child_environment(
            session_id=setup.session_id,
            home=home,
            tmp=tmp,
            token=self.line.token,
            jailed=self.jailed,
            base_url=self._gateway.base_url,
            timezone=setup.timezone,
        )
        spec = JailSpec(
            workspace=setup.cwd.resolve(),
            home=home,
            tmp=tmp,
            gateway_socket=self._gateway.socket_path,
            network=setup.network,
            max_processes=conf().jail_max_processes,
            max_memory_bytes=conf().jail_max_memory_bytes,
            environment=environment,
        )
        launcher = write_launcher(
            spec,
            bundled_cli(),
            jailed=self.jailed,
            folder=session_launcher_folder(setup.session_id),
        )
        return build_agent_options(
            setup,
            start,
            gate=self.gate,
            launcher=launcher,
            environment=environment,
            jailed=self.jailed,
            on_stderr=self._stderr.append,
        )

    async def _read(self, sdk: ClaudeSDKClient) -> None:
        """Never waits for anything but the stream; its end is a message too."""
        try:
            async for message in sdk.receive_messages():
                self._messages.put_nowait(message)
        except Exception as error:  # noqa: BLE001  the turn that reads raises it
            self._messages.put_nowait(error)
            return
        self._messages.put_nowait(EOFError("the agent's process ended"))

    async def query(self, content: PromptContent) -> UUID:
        """Send a prompt under a fresh id; a used one would be dropped silently."""
        assert self._sdk is not None, "connect comes first"
        while not self._messages.empty():  # left over from an interrupted turn
            self._messages.get_nowait()
        prompt_id = uuid4()
        await self._sdk.query(_prompt(content, prompt_id))
        return prompt_id

    async def messages(self) -> AsyncIterator[Any]:
        """What the CLI says, up to its result, or up to `stop_reading`.

        Raises: what ended the process, if it did.
        """
        while True:
            message = await self._messages.get()
            if isinstance(message, Exception):
                raise message
            if isinstance(message, Stopped):
                return
            yield message
            if isinstance(message, ResultMessage):
                return

    def stop_reading(self) -> None:
        self._messages.put_nowait(Stopped())

    async def interrupt(self) -> None:
        """Raises: TimeoutError when the CLI does not react in time."""
        assert self._sdk is not None, "connect comes first"
        await asyncio.wait_for(self._sdk.interrupt(), conf().interrupt_timeout_seconds)

    async def close(self) -> None:
        """End the process with all its children; returns when they are gone."""
        self._closing.set()
        if self._owner is not None:
            # Never cancel the owner: a second cancel in its clean-up leaks the CLI.
            await asyncio.wait({self._owner}, timeout=conf().stop_deadline_seconds)
        self._gateway.close_line(self.line)
        alive = await kill_marked(self.setup.session_id)
        if alive:
            logger.error(
                "processes %s of session %s survive", alive, self.setup.session_id
            )


async def _prompt(
    content: PromptContent, prompt_id: UUID
) -> AsyncIterator[dict[str, Any]]:
    yield {
        "type": "user",
        "uuid": str(prompt_id),
        "message": {"role": "user", "content": content},
        "parent_tool_use_id": None,
    }
