"""Connections beyond the number of files that a process may open are told to the person who runs the emulator."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

import pytest

from tests.support.programs.emulator_process import EmulatorProcess
from tests.support.waiting import until

#: What becomes of a connection.
ANSWERED, FAILED, RESET = "answered", "failed", "reset"
EXHAUSTED = re.compile(r"no file descriptor is left: .* \d+ .*ulimit -n")


class LimitedProcess(EmulatorProcess):
    """An emulator whose limits a shell has set, with its standard error in a file."""

    def __init__(self, folder: Path, limits: str) -> None:
        super().__init__(None)
        self._limits = limits
        self._errors = folder / "errors.txt"

    def _command(self) -> list[str]:
        return ["sh", "-c", f'{self._limits}; exec "$@" 2> "$0"', str(self._errors), *super()._command()]

    @property
    def log(self) -> str:
        """What it has written to standard error."""
        return self._errors.read_text()


class Connections:
    """Connections that stay open after one request."""

    def __init__(self, url: str) -> None:
        self._host, _, port = url.removeprefix("http://").partition(":")
        self._port = int(port)
        self._writers: list[asyncio.StreamWriter] = []

    async def open(self, count: int) -> Sequence[str]:
        """Open connections and send a request on each; return what became of each."""
        return [await self._open() for _ in range(count)]

    async def _open(self) -> str:
        reader, writer = await asyncio.open_connection(self._host, self._port)
        self._writers.append(writer)
        try:
            writer.write(b"GET / HTTP/1.1\r\nHost: emulator\r\n\r\n")
            async with asyncio.timeout(10):
                status = await reader.readline()
        except ConnectionError:
            return RESET
        if not status:
            return RESET
        return FAILED if status.startswith(b"HTTP/1.1 5") else ANSWERED

    def close(self) -> None:
        """Close all of them."""
        for writer in self._writers:
            writer.close()
        self._writers.clear()


async def test_the_limit_is_raised_as_far_as_it_may_be(tmp_path: Path) -> None:
    async with LimitedProcess(tmp_path, "ulimit -Hn 5000; ulimit -Sn 64") as process:
        with closing(Connections(process.endpoint)) as connections:
            assert set(await connections.open(100)) == {ANSWERED}

        assert process.log == ""


@pytest.mark.parametrize("port", ["endpoint", "admin_url"])
async def test_connections_beyond_a_hard_limit_are_told_once_and_it_recovers(tmp_path: Path, port: str) -> None:
    async with LimitedProcess(tmp_path, "ulimit -n 64") as process:
        assert "may open 64 files" in process.log
        assert "ulimit -Hn" in process.log
        url = getattr(process, port)
        for expected in (1, 2):
            with closing(Connections(url)) as connections:
                assert set(await connections.open(100)) == {ANSWERED, RESET}
                assert len(EXHAUSTED.findall(process.log)) == expected

            await until(lambda: _is_answered(url), what="an answer after the connections have been closed")


async def _is_answered(url: str) -> bool:
    with closing(Connections(url)) as connections:
        return list(await connections.open(1)) == [ANSWERED]
