"""How `ots-tunnel run` ends where no error ends it: exit code and termination message."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ots_tunnel.console.exit_codes import INCOMPLETE, OTHER_ERROR, signal_exit_code


@dataclass(frozen=True, slots=True)
class Ending:
    """The end of a run.

    Args:
        code: exit code of the process.
        reason: why it is not 0; becomes the termination message.
    """

    code: int
    reason: str = ""


def ending(signals: Sequence[int], *, complete: bool | None, overdue: bool) -> Ending:
    """The end of a run without an error.

    Args:
        signals: numbers of the signals that came, in their order.
        complete: whether every channel is read to its end or to the end time; None where the run was not to end then.
        overdue: whether the drain was cut off at its limit.
    """
    if complete:
        return Ending(0)
    if not signals:
        if complete is None:
            return Ending(0)
        # that client may be one of a process that was killed
        reason = "this worker's share is done, another client holds the rest: without another worker, run this again"
        return Ending(INCOMPLETE, reason)
    code = signal_exit_code(signals[0])
    if len(signals) > 1:
        return Ending(code, "closed at once by a second signal: what was not confirmed is delivered again")
    if overdue:
        return Ending(OTHER_ERROR, "the drain is overdue: channels come free with the heartbeat timeout")
    return Ending(0) if complete is None else Ending(code, "stopped by a signal before everything was read")
