"""The end of a process whose drain takes too long."""

from __future__ import annotations

import threading

from ots_tunnel.commands.worker_process.last_resort import LastResort
from ots_tunnel.console.exit_codes import OTHER_ERROR


def test_the_process_ends_when_the_drain_takes_too_long() -> None:
    codes: list[int] = []
    over = threading.Event()

    def end(code: int) -> None:
        codes.append(code)
        over.set()

    resort = LastResort(0.01, end)
    resort.begin()
    resort.begin()

    assert over.wait(10)
    assert codes == [OTHER_ERROR]


def test_a_drain_that_ends_in_time_ends_nothing() -> None:
    codes: list[int] = []
    resort = LastResort(600, codes.append)
    resort.cancel()
    before = set(threading.enumerate())
    resort.begin()
    (timer,) = (each for each in set(threading.enumerate()) - before if isinstance(each, threading.Timer))
    resort.cancel()

    timer.join(60)
    assert not timer.is_alive(), "it waits for the end of the drain"
    assert codes == []
