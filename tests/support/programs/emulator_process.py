"""The emulator in a separate process with a data directory; tests kill it and start it again on the same ports."""

from __future__ import annotations

import asyncio
import re
import signal
from asyncio.subprocess import PIPE, Process
from pathlib import Path
from types import TracebackType
from typing import Self

from tests.support.programs.processes import end, module

STARTING = 30.0
_URL = re.compile(r"^\s*(endpoint|admin)\s+http://127\.0\.0\.1:(\d+)", re.MULTILINE)


class EmulatorProcess:
    """`ots-emulator serve`; the first start chooses the ports, further starts reuse them."""

    #: Working directory of the process.
    _folder: Path | None = None

    def __init__(self, data: Path | None, *options: str) -> None:
        self._options = [*options] if data is None else ["--data", str(data), *options]
        self._process: Process | None = None
        self._ports = {"endpoint": "0", "admin": "0"}
        self.kills = 0

    async def start(self) -> None:
        """Start the process and wait until it is ready."""
        self._process = await asyncio.create_subprocess_exec(*self._command(), stdout=PIPE, cwd=self._folder)
        assert self._process.stdout is not None
        greeting = ""
        async with asyncio.timeout(STARTING):
            while len(found := dict(_URL.findall(greeting))) < 2:
                line = await self._process.stdout.readline()
                assert line, f"the emulator ended with {await self._process.wait()} after: {greeting}"
                greeting += line.decode()
        self._ports = found

    def _command(self) -> list[str]:
        ports = ["--port", self._ports["endpoint"], "--admin-port", self._ports["admin"]]
        return module("ots_emulator", "serve", *ports, *self._options)

    def send(self, number: signal.Signals) -> None:
        """Send a signal to the process."""
        assert self._process is not None
        self._process.send_signal(number)

    async def kill(self) -> None:
        """Kill the process, whatever it is doing."""
        self.kills += 1
        assert await self._end(signal.SIGKILL) == -signal.SIGKILL

    async def stop(self) -> int:
        """Stop the process with SIGTERM; return its exit code."""
        return await self._end(signal.SIGTERM)

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        # If the process ended by itself, the current error already has the reason.
        if self._process is not None and self._process.returncode is None:
            await self._end(signal.SIGKILL)

    async def _end(self, number: signal.Signals) -> int:
        process, self._process = self._process, None
        assert process is not None
        return await end(process, number)

    @property
    def pid(self) -> int:
        """Its process id."""
        assert self._process is not None
        return self._process.pid

    @property
    def endpoint(self) -> str:
        """URL clients connect to."""
        return f"http://127.0.0.1:{self._ports['endpoint']}"

    @property
    def admin_url(self) -> str:
        """URL of the admin port."""
        return f"http://127.0.0.1:{self._ports['admin']}"
