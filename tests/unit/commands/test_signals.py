"""Stop signals of a command: which one decides the exit code, and what each of them calls."""

from __future__ import annotations

import asyncio
import os
import signal

import pytest

from ots_tunnel.commands.signals import StopSignals
from tests.support.waiting import until


async def test_every_signal_calls_and_the_first_decides() -> None:
    signals, calls = StopSignals(), list[bool]()
    signals.call(calls.append)

    os.kill(os.getpid(), signal.SIGTERM)
    await until(lambda: len(calls) == 1)
    os.kill(os.getpid(), signal.SIGINT)
    await until(lambda: len(calls) == 2)

    assert calls == [True, False]
    with pytest.raises(SystemExit) as ended:
        signals.exit_if_stopped()
    assert ended.value.code == 128 + signal.SIGTERM


async def test_without_a_signal_the_command_continues() -> None:
    signals = StopSignals()
    signals.call(lambda _: pytest.fail("no signal was sent"))
    await asyncio.sleep(0)

    signals.exit_if_stopped()
    assert signals.first is None
