"""Whether the brokers refuse the login that is in use. Pure but for the clock.

Several connections log in by themselves, and each takes the login when its turn comes. So a refusal can come after the
login has changed, and be about the former one:

    12.0  a connection sends the old password
    12.1  the files hold a new one, which is used from now on
    12.4  the broker refuses the old password: this says nothing about the new one

Such a refusal must not end a worker whose login is right. A refusal counts only when it comes later than an attempt can
last. The client repeats its attempts within seconds, so one that is real comes again.
"""

from __future__ import annotations

from collections.abc import Callable

from ots_tunnel.sinks.kafka.failures import Failure

#: Longest time of an attempt to connect and log in, seconds; the client gives up then.
ATTEMPT_SECONDS = 10.0


class LoginRefusals:
    """The brokers' refusal of the login since a message was confirmed.

    Args:
        clock: seconds, monotonic.
    """

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._counts_from = float("-inf")
        self.last: Failure | None = None

    def __repr__(self) -> str:
        return f"LoginRefusals({self.last})"

    def add(self, failure: Failure) -> None:
        """A broker refused a login."""
        if self._clock() > self._counts_from:
            self.last = failure

    def forget(self) -> None:
        """A broker took the login, or its answer is asked for anew."""
        self.last = None

    def login_changed(self) -> None:
        """Another login is in use from now on."""
        self.last = None
        self._counts_from = self._clock() + ATTEMPT_SECONDS
