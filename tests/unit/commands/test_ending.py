"""Exit code and termination message of `ots-tunnel run` where no error ends it."""

from __future__ import annotations

import signal
from collections.abc import Sequence

import pytest

from ots_tunnel.commands.worker_process.ending import ending

TERM, INT = signal.SIGTERM, signal.SIGINT


@pytest.mark.parametrize(
    ("signals", "complete", "overdue", "code", "reason"),
    [
        ([], True, False, 0, ""),
        ([], True, True, 0, ""),
        ([TERM], True, False, 0, ""),
        ([], False, False, 6, "another client holds the rest"),
        ([], False, True, 6, "another client holds the rest"),
        ([TERM], False, False, 143, "before everything was read"),
        ([TERM], None, False, 0, ""),
        ([TERM], None, True, 5, "the drain is overdue"),
        ([TERM], False, True, 5, "the drain is overdue"),
        ([INT, TERM], None, False, 130, "by a second signal"),
    ],
)
def test_0_means_that_what_was_asked_for_is_done(
    signals: Sequence[int], complete: bool | None, overdue: bool, code: int, reason: str
) -> None:
    found = ending(signals, complete=complete, overdue=overdue)
    assert found.code == code
    assert reason in found.reason
    assert bool(reason) == bool(found.reason)
