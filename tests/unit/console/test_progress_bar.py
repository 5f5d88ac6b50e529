"""The screen of a terminal with a progress bar and log lines."""

from __future__ import annotations

import asyncio
import io
import json
import logging
import re
from collections.abc import Iterator

import pytest

from ots_tunnel.console.progress_bar import show_progress
from ots_tunnel.logs import set_up_logs
from ots_tunnel.verify.meter import VerifyMeter


class Terminal(io.StringIO):
    """A terminal that interprets the control codes of a progress bar."""

    def isatty(self) -> bool:
        return True

    def screen(self) -> list[str]:
        """The non-empty lines on the screen."""
        lines, at = [""], 0
        for part in re.findall(r"\x1b\[[?0-9;]*[a-zA-Z]|[\r\n]|[^\x1b\r\n]+", self.getvalue()):
            if part == "\n":
                at += 1
                lines += [""] * (at + 1 - len(lines))
            elif part == "\x1b[2K":
                lines[at] = ""
            elif part == "\x1b[1A":
                at -= 1
            elif part[0] not in "\r\x1b":
                lines[at] += part
        return [line for line in lines if line]


class Half:
    """Work that is half done."""

    share = 0.5

    def line(self, seconds: float) -> str:
        return "half done, " * 10


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch) -> Iterator[Terminal]:
    made, root = Terminal(), logging.getLogger()
    before = root.handlers[:], root.level
    monkeypatch.setattr("sys.stderr", made)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "60")
    monkeypatch.setattr("ots_tunnel.console.progress_bar.TICK", 0.0)
    set_up_logs("WARNING")
    yield made
    root.handlers[:], root.level = before


async def test_lines_of_the_log_stand_above_the_bar_whole(terminal: Terminal) -> None:
    ticked = asyncio.Event()

    async with asyncio.timeout(60), show_progress(Half(), terminal, ticked.set):
        for number in range(3):
            ticked.clear()
            await ticked.wait()
            logging.getLogger("ots_tunnel").warning("a word " * 20, extra={"rows": number})

    *log, bar = terminal.screen()
    assert [json.loads(line)["rows"] for line in log] == [0, 1, 2]
    assert "half done" in bar
    assert len(bar) <= 60, "a bar that is wrapped cannot be drawn over"


async def test_a_stream_that_is_not_a_terminal_gets_single_lines(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ots_tunnel.console.progress_bar.LINE_PAUSE", 0.0)
    monkeypatch.setattr("ots_tunnel.console.progress_bar.TICK", 0.0)
    ticked, meter, stream = asyncio.Event(), VerifyMeter(slices=3, rows=7), io.StringIO()

    async with asyncio.timeout(60), show_progress(meter, stream, ticked.set):
        await ticked.wait()
        meter.slices_done = 3

    lines = stream.getvalue().splitlines()
    assert lines[0].startswith("7 rows, ")
    assert "slices 3/3" in lines[-1], "the end is shown, too"


async def test_a_short_run_prints_nothing_without_a_terminal() -> None:
    stream = io.StringIO()
    async with show_progress(VerifyMeter(slices=1), stream):
        pass

    assert stream.getvalue() == ""
