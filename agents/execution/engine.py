"""Everything that a process which runs agents needs, started and stopped in order."""

from __future__ import annotations

from agents.conf import conf, data_dir
from agents.demo.server import RunningDemo, serve_demo
from agents.domain.sessions import persist_all_sessions
from agents.gateway.server import Gateway

from .background import Background
from .cleaning import Cleaner
from .database import in_database, own_database_thread
from .metadata import Namer
from .pulse import Pulse
from .supervisor import Supervisor


class Engine:
    """Demo model, gateway, supervisor and what helps them; `serve` has one."""

    def __init__(self) -> None:
        self.gateway = Gateway(folder=data_dir() / "run")
        self._demo: RunningDemo | None = None
        self._supervisor: Supervisor | None = None
        self._background = Background(workers=conf().side_calls)
        self._namer = Namer(self.gateway, self._background)
        self._cleaner: Cleaner | None = None
        self._pulse = Pulse()

    @property
    def supervisor(self) -> Supervisor:
        assert self._supervisor is not None, "start comes first"
        return self._supervisor

    async def start(self, *, demo_url: str = "") -> None:
        """Start in the running loop; `demo_url` names a demo model that is there."""
        demo_url = demo_url or conf().demo_url
        if not demo_url:
            self._demo = await serve_demo()
            demo_url = self._demo.url
        self.gateway.demo_url = demo_url
        await self.gateway.start()
        self._background.start()
        self._namer.start()
        self._supervisor = Supervisor(self.gateway)
        await self._supervisor.start()
        self._cleaner = Cleaner(self._supervisor.pool)
        self._cleaner.start()
        self._pulse.start()

    async def stop(self) -> None:
        """Stop the runs first, then what they talk to; bounded in time."""
        self._namer.stop()
        await self._pulse.stop()
        if self._cleaner is not None:
            await self._cleaner.stop()
        if self._supervisor is not None:
            await self._supervisor.stop()
            async with own_database_thread():
                await in_database(persist_all_sessions, self._supervisor.name)
        await self._background.stop()
        await self.gateway.stop()
        if self._demo is not None:
            await self._demo.stop()
