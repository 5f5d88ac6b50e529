"""The thread runs anything that starts and stops, and calls its methods there."""

from __future__ import annotations

import threading

import pytest

from ots_emulator import EmulatorThread


class Double:
    """Records the threads in which it runs."""

    endpoint = "http://127.0.0.1:1"
    admin_url = "http://127.0.0.1:2"

    def __init__(self, failure: OSError | None = None) -> None:
        self.failure = failure
        self.steps: list[tuple[str, str]] = []

    def _note(self, step: str) -> None:
        self.steps.append((step, threading.current_thread().name))

    async def start(self) -> None:
        self._note("start")
        if self.failure is not None:
            raise self.failure

    async def stop(self) -> None:
        self._note("stop")

    def commit(self) -> None:
        self._note("commit")

    def double(self, number: int) -> int:
        self._note("double")
        return 2 * number


def test_methods_are_called_in_the_thread_and_committed() -> None:
    double = Double()

    with EmulatorThread(double) as thread:
        assert (thread.endpoint, thread.admin_url) == (double.endpoint, double.admin_url)
        assert thread.call("double", 21) == 42

    assert double.steps == [(step, "ots-emulator") for step in ("start", "double", "commit", "stop")]


def test_an_address_that_cannot_be_used_is_raised_where_the_thread_was_started() -> None:
    failure = OSError("in use")

    with pytest.raises(OSError, match="in use"), EmulatorThread(Double(failure)):
        pytest.fail("the block must not run")
