"""The service's clock, by which cells pass their time to live. Pure.

The clock of a worker may differ from it by fifteen minutes before the service refuses its requests. A cell that only
one of them takes for expired would be left out for good, or be refused with its whole row.
"""

from __future__ import annotations

from collections.abc import Callable


class ServiceClock:
    """Unix seconds by the service's clock, as its last answer has told it; before that, by the own one.

    Args:
        own: Unix seconds of this machine.
    """

    def __init__(self, own: Callable[[], float]) -> None:
        self._own = own
        self._ahead = 0.0

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
        if service_time is not None:
            self._ahead = service_time - self._own()
