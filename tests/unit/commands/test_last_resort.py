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
    resort = LastResort(0.2, codes.append)
    resort.cancel()
    resort.begin()
    resort.cancel()

    assert not threading.Event().wait(0.5)
    assert codes == []
