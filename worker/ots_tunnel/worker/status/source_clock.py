"""The clock of the service that is read, by which consume points are, and so lags.

Theory of operation
-------------------
The worker's clock may be fifteen minutes from the service's before its requests are refused. Each answer to a read
tells the service's time, in whole seconds and at some moment between the request and its end. So the difference of the
clocks is known within bounds:

    at least    the time of the answer, less the own time at its end
    at most     the end of that second, less the own time at the request

The difference that is known stays while it is within them; else it is the bound that it has passed. So clocks that
agree are taken for equal, answers that wait for room in memory say little, and a clock that was set is followed with
the next quick one. While no read is answered the last difference counts.

An answer with a time further away does not tell the service's (`protocol.http.rpc.MOST_APART`): a proxy may have
written it.

Example: the own clock is 120 s ahead. A read is sent at 12:02:00.0 and answered at 12:02:00.1 with the time 12:00:00:
the service is 119 to 120.1 s behind, and 119 s is taken.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable

from ots_tunnel.log_actions import LogAction
from ots_tunnel.protocol.http.rpc import MOST_APART

logger = logging.getLogger(__name__)

#: Seconds that an answer's time leaves open.
PRECISION = 1.0


class SourceClock:
    """Unix seconds by the service's clock; by the own one until an answer contradicts it.

    Args:
        own: Unix seconds of this machine.
    """

    def __init__(self, own: Callable[[], float] = time.time) -> None:
        self.own = own
        self._ahead = 0.0
        self._has_told = False

    def __repr__(self) -> str:
        return f"SourceClock({self._ahead:+.0f} s)"

    def __call__(self) -> float:
        """Now."""
        return self.own() + self._ahead

    def heard(self, service_time: float | None, *, asked: float) -> None:
        """The answer to a read is here.

        Args:
            service_time: Unix seconds that it tells; None where it tells none.
            asked: when it was asked for, by `own`.
        """
        if service_time is None:
            return
        least, most = service_time - self.own(), service_time + PRECISION - asked
        if most < least:
            return  # the own clock was set back meanwhile
        ahead = min(max(self._ahead, least), most)
        if abs(ahead) <= MOST_APART:
            self._ahead = ahead
        elif not self._has_told:
            self._has_told = True
            logger.warning(
                "an answer's time is %+.0f s from this machine's clock, which no service that takes its requests has; "
                "lags are told by the clock as it was known before",
                least,
                extra={"action": LogAction.CLOCK_NOT_BELIEVED},
            )
