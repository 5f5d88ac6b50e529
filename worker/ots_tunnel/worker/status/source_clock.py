"""The clock of the service that is read, by which consume points are, and so lags.

Theory of operation
-------------------
The worker's clock may be fifteen minutes from the service's before its requests are refused, and may be set at any
moment. Each answer to a read tells the service's time, in whole seconds and at some moment between the request and its
end. What the machine counts since its start is never set. So what the service's time is ahead of it is known within
bounds:

    at least    the time of the answer, less the count at its end
    at most     the end of that second, less the count at the request

The difference that is known stays while it is within them; else it is the bound that it has passed. The first one is
that of the own clock, so clocks that agree are taken for equal. Answers that wait for room in memory say little. While
no read is answered the last difference counts, whatever happens to the own clock.

An answer with a time far from the own clock's does not tell the service's (`protocol.http.rpc.MOST_APART`): a proxy may
have written it.

Example: the own clock is 120 s ahead. A read is sent at 12:02:00.0 and answered at 12:02:00.1 with the time 12:00:00:
the service is 119 to 120.1 s behind, and 119 s is taken. At 12:05:00 by it the own clock is set right, to 12:03:00; the
time that is told goes on from 12:03:01.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable

from ots_tunnel.fence import boottime
from ots_tunnel.log_actions import LogAction
from ots_tunnel.protocol.http.rpc import MOST_APART

logger = logging.getLogger(__name__)

#: Seconds that an answer's time leaves open.
PRECISION = 1.0


class SourceClock:
    """Unix seconds by the service's clock; by the own one until an answer contradicts it.

    Args:
        own: Unix seconds of this machine.
        running: seconds that are never set, of a machine that sleeps included.
    """

    def __init__(self, own: Callable[[], float] = time.time, running: Callable[[], float] = boottime) -> None:
        self._own = own
        self.running = running
        self._ahead: float | None = None
        self._has_told = False

    def __repr__(self) -> str:
        return f"SourceClock({self() - self._own():+.0f} s)"

    def __call__(self) -> float:
        """Now."""
        return self._own() if self._ahead is None else self.running() + self._ahead

    def heard(self, service_time: float | None, *, asked: float) -> None:
        """The answer to a read is here.

        Args:
            service_time: Unix seconds that it tells; None where it tells none.
            asked: when it was asked for, by `running`.
        """
        if service_time is None:
            return
        running, own = self.running(), self._own()
        known = own - running if self._ahead is None else self._ahead
        ahead = min(max(known, service_time - running), service_time + PRECISION - asked)
        if abs(running + ahead - own) <= MOST_APART:
            self._ahead = ahead
        elif not self._has_told:
            self._has_told = True
            logger.warning(
                "an answer's time is %+.0f s from this machine's clock, which no service that takes its requests has; "
                "lags are told by the clock as it was known before",
                service_time - own,
                extra={"action": LogAction.CLOCK_NOT_BELIEVED},
            )
