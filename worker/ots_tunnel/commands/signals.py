"""Signals that stop a command in good order."""

from __future__ import annotations

import asyncio
import signal
import sys
from collections.abc import Callable

from ots_tunnel.console.exit_codes import signal_exit_code

#: Signals that ask a command to stop: Ctrl-C, and the polite kill of shells and Kubernetes.
STOP_SIGNALS = (signal.SIGINT, signal.SIGTERM)


class StopSignals:
    """Calls a function for every stop signal and remembers the first one.

    Args:
        signals: those that stop the command.
    """

    def __init__(self, signals: tuple[signal.Signals, ...] = STOP_SIGNALS) -> None:
        self._signals = signals
        self.first: int | None = None

    def call(self, stop: Callable[[bool], object]) -> None:
        """Call `stop` in the running event loop at every signal; its argument is True at the first one."""
        loop = asyncio.get_running_loop()

        def receive(number: int) -> None:
            is_first = self.first is None
            if is_first:
                self.first = number
            stop(is_first)

        for number in self._signals:
            loop.add_signal_handler(number, receive, number)

    def exit_if_stopped(self) -> None:
        """End the process with the exit code of the first signal, if there was one."""
        if self.first is not None:
            sys.exit(signal_exit_code(self.first))
