"""Fencing by time: nothing is written when somebody else may own the channel by now.

The service gives a silent client's channels away once the heartbeat timeout has passed since the last heartbeat it
saw, which is not before we sent the last answered one. A write takes effect within D of leaving, so none may leave
later than that heartbeat's sending + timeout - D. The clock goes on while the machine sleeps.

Source: docs/architecture.md rule 4.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Protocol

from ots_tunnel.errors import OwnershipLost


def boottime() -> float:
    """Seconds since boot, suspended time included."""
    return time.clock_gettime(time.CLOCK_BOOTTIME)


def write_deadline(timeout: float, interval: float) -> float:
    """D: seconds a write may take, and the fence's margin."""
    return (timeout - interval) / 3


class Guard(Protocol):
    """What a sink asks right before bytes go out."""

    def check(self) -> None:
        """Raise OwnershipLost if nothing may be written any more."""
        ...


class Fence:
    """The limit of one client; a new client has a new fence.

    Args:
        timeout: heartbeat timeout told to the service, seconds.
        interval: heartbeat interval, seconds.
        clock: monotonic seconds that count suspended time.
    """

    def __init__(self, timeout: float, interval: float, clock: Callable[[], float] = boottime) -> None:
        self.deadline = write_deadline(timeout, interval)
        self._timeout = timeout
        self._clock = clock
        self._answered = float("-inf")
        self._revoked = False

    def __repr__(self) -> str:
        return f"Fence(left={self.left():.3f})"

    @property
    def answered(self) -> float:
        """When the last answered heartbeat was sent; -inf before the first."""
        return self._answered

    def heartbeat_answered(self, sent_at: float) -> None:
        """A heartbeat sent at `sent_at` (this fence's clock) was answered."""
        self._answered = max(self._answered, sent_at)

    def left(self) -> float:
        """Seconds until nothing may be sent any more; negative when it is so already."""
        if self._revoked:
            return float("-inf")
        return self._answered + self._timeout - self.deadline - self._clock()

    def revoke(self) -> None:
        """The client is gone: nothing may be sent from now on."""
        self._revoked = True

    def check(self) -> None:
        """Pass, or refuse.

        Raises:
            OwnershipLost: the service may have given the channels away.
        """
        left = self.left()
        if left <= 0:
            raise OwnershipLost("the last answered heartbeat is too old: the channel may belong to another client")


class ChannelFence:
    """The fence of one channel: its client's, until the channel is taken away."""

    def __init__(self, client: Guard) -> None:
        self._client = client
        self._revoked = False

    def revoke(self) -> None:
        """The channel is not ours any more: nothing may be sent from now on."""
        self._revoked = True

    def check(self) -> None:
        """Pass, or refuse.

        Raises:
            OwnershipLost: the channel is, or may be, somebody else's.
        """
        if self._revoked:
            raise OwnershipLost("the channel was taken away")
        self._client.check()
