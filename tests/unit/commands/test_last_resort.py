"""The end of a process that takes too long to end by itself."""

from __future__ import annotations

import logging
import threading

from ots_tunnel.commands.worker_process.last_resort import LastResort
from ots_tunnel.console.exit_codes import OTHER_ERROR


class End:
    """Takes the exit code in the process's place."""

    def __init__(self) -> None:
        self.codes: list[int] = []
        self._over = threading.Event()

    def __call__(self, code: int) -> None:
        self.codes.append(code)
        self._over.set()

    def wait(self) -> list[int]:
        assert self._over.wait(10)
        return self.codes


def test_the_process_ends_when_the_drain_takes_too_long() -> None:
    end = End()
    resort = LastResort(0.01, end)
    resort.begin()
    resort.begin()

    assert end.wait() == [OTHER_ERROR]


def test_a_worker_that_is_over_keeps_its_exit_code_where_its_process_does_not_end() -> None:
    end = End()

    LastResort(0.01, end).leave_with(14)

    assert end.wait() == [14]


def test_what_is_behind_a_drain_has_no_time_of_its_own() -> None:
    end = End()
    resort = LastResort(600, end)
    before = set(threading.enumerate())

    resort.begin()
    resort.leave_with(0)

    (timer,) = (each for each in set(threading.enumerate()) - before if isinstance(each, threading.Timer))
    timer.cancel()
    timer.join(60)
    assert end.codes == []


def test_a_log_that_hangs_does_not_keep_the_process() -> None:
    class Hanging(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            may_end.wait(60)

    end, may_end, handler = End(), threading.Event(), Hanging()
    logging.getLogger().addHandler(handler)
    try:
        LastResort(0.01, end).leave_with(14)
        assert end.wait() == [14]
    finally:
        logging.getLogger().removeHandler(handler)
        may_end.set()
