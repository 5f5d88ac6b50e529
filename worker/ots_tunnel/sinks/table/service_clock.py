"""The service's clock, by which cells pass their time to live. Pure but for its log line.

The clock of a worker may differ from it by fifteen minutes before the service refuses its requests. A cell that only
one of them takes for expired would be left out for good, or be refused with its whole row.

An answer with a time further away does not tell the service's: a proxy may have written the header. By such a time
living cells would be left out, and their rows be deleted, so it is not believed.
"""

from __future__ import annotations

import logging
from collections.abc import Callable

from ots_tunnel.log_actions import LogAction
from ots_tunnel.protocol.http.rpc import MOST_APART

logger = logging.getLogger(__name__)


class ServiceClock:
    """Unix seconds by the service's clock, as its last answer has told it; before that, by the own one.

    Args:
        own: Unix seconds of this machine.
    """

    def __init__(self, own: Callable[[], float]) -> None:
        self._own = own
        self._ahead = 0.0
        self._has_told = False

    def __repr__(self) -> str:
        return f"ServiceClock({self._ahead:+.0f} s)"

    def __call__(self) -> float:
        """Now."""
        return self._own() + self._ahead

    def heard(self, service_time: float | None) -> None:
        """An answer has just come.

        Args:
            service_time: Unix seconds that it tells; None where it tells none.
        """
        if service_time is None:
            return
        ahead = service_time - self._own()
        if abs(ahead) <= MOST_APART:
            self._ahead = ahead
        elif not self._has_told:
            self._has_told = True
            logger.warning(
                "an answer's time is %+.0f s from this machine's clock, which no service that takes its requests has; "
                "cells expire by the clock as it was known before",
                ahead,
                extra={"action": LogAction.CLOCK_NOT_BELIEVED},
            )
