"""The terminal of the live view."""

from __future__ import annotations

import os
import select
import signal

import pytest

from ots_tunnel_operator.plugin import terminal


def test_a_signal_just_before_the_wait_ends_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its handler has run, or will run once the system call is over."""
    system_call, waits = select.select, []

    def interrupted(readers: list[object], *rest: object) -> object:
        signal.raise_signal(signal.SIGUSR1)
        ready = system_call(readers, [], [], 0.0)
        waits.append(bool(ready[0]))
        return ready

    before = signal.signal(signal.SIGUSR1, lambda number, frame: None)
    try:
        monkeypatch.setattr(terminal.select, "select", interrupted)
        with open(os.devnull) as no_terminal:
            monkeypatch.setattr("sys.stdin", no_terminal)
            assert terminal.wait_for_key(3600.0) == ""
    finally:
        signal.signal(signal.SIGUSR1, before)

    assert waits == [True]
