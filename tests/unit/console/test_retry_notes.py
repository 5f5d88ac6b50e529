"""Notes on a terminal about calls that are retried."""

from __future__ import annotations

from ots_tunnel.console.retry_notes import RetryNotes
from ots_tunnel.errors import ConnectionLost


def test_retried_calls_are_noted_every_five_seconds() -> None:
    now, said = [0.0], list[str]()
    note = RetryNotes(said.append, lambda: now[0])
    for now[0] in (0.0, 1.0, 4.9, 5.0):
        note("GetRange", ConnectionLost("gone"))

    assert said == ["GetRange is retried: gone", "GetRange is retried (3 calls since the last note): gone"]
