"""Fencing by time: no write leaves, and no channel is handed back, while two clients could write the same keys.

Theory of operation. The service takes a client's channels away once the heartbeat timeout T has passed since the last
heartbeat that it received, and gives them to other clients. It does not ask the old client, which may have been
paused. Two questions keep the old client's writes out of the new client's way:

1. *May a write leave now?* A guard answers right before the bytes go out. A write takes effect within D of leaving,
   after which its sender gives up and resets the connection. The service received the last answered heartbeat not
   before we sent it, so a write that leaves before `sent + T - D` takes effect before `sent + T`, when the channel can
   get a new owner. Later writes are refused with OwnershipLost.
2. *May a write that left still take effect?* A write is in doubt from its beginning until the sink confirms it. If it
   is abandoned instead (cancelled, failed, channel taken away), nothing of it leaves any more, and the doubt ends D
   later. Until then the channel is neither read again nor reported as free, and the client is not shut down. The same
   holds for a checkpoint without an answer where a replay replaces what is stored: it could be carried out behind the
   replay's first replacement, and the records in between would be in neither. Its doubt also ends once its sequence
   number is stored, with whatever token: the service refuses a number that it has.

D is (T - I) / 3 with the heartbeat interval I. The next heartbeat is due I after the last one; 2 D are left to repeat
it until the fence closes, and D for the last write to take effect.

Two clocks. The fence counts suspended time (CLOCK_BOOTTIME), because the service's clock runs on while this machine
sleeps. The doubt does not count it (CLOCK_MONOTONIC): bytes that the kernel held during the sleep leave after it.

Example: T = 60 s, I = 10 s, so D = 16.7 s. A heartbeat sent at 100 s is answered. Writes may leave until 143.3 s. A
write that leaves at 143 s and is cancelled at 145 s is in doubt until 161.7 s.

    Fence         one client: question 1 for all of its channels; keeps the fence of every channel
    ChannelFence  one channel of the client: both questions; closed when the channel is taken away
    RequestFence  the tries of one request: the last one has to be over before the next one is sent

Source: docs/architecture.md rules 3 and 4.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Protocol

from ots_tunnel.errors import OwnershipLost
from ots_tunnel.model import ChannelId


def boottime() -> float:
    """Seconds since boot, suspended time included."""
    return time.clock_gettime(time.CLOCK_BOOTTIME)


def write_deadline(timeout: float, interval: float) -> float:
    """D: seconds within which a write takes effect, from the heartbeat's timeout and interval."""
    return (timeout - interval) / 3


class Guard(Protocol):
    """Permission to write, asked by a sink right before bytes go out."""

    def check(self) -> None:
        """Return if a write may leave now.

        Raises:
            OwnershipLost: another client may own the channel.
        """
        ...


class InDoubt:
    """For how long writes may still take effect.

    Args:
        deadline: D, seconds.
        clock: seconds that do not count suspended time.
    """

    def __init__(self, deadline: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._deadline = deadline
        self._clock = clock
        self._until = clock()
        self._writing = False

    def __repr__(self) -> str:
        return f"InDoubt({self.seconds:.3f})"

    @property
    def seconds(self) -> float:
        """Seconds until no write can take effect any more if the present one is abandoned now; 0 without any."""
        return self._deadline if self._writing else max(0.0, self._until - self._clock())

    def another(self) -> InDoubt:
        """The same for other writes."""
        return InDoubt(self._deadline, self._clock)

    def begin(self) -> None:
        """A write begins; it stays in doubt until `confirm` or `abandon`."""
        self._writing = True

    def confirm(self) -> None:
        """Every write that began is stored."""
        self._writing = False

    def abandon(self) -> None:
        """Nothing more of the write leaves; the part that left takes effect within D."""
        if self._writing:
            self._writing = False
            self._until = self._clock() + self._deadline

    def settle(self) -> None:
        """No write that ever began can take effect any more."""
        self._writing = False
        self._until = self._clock()

    def pass_on(self) -> None:
        """A write that is not waited for leaves: as `begin` and `abandon`, in one call for each of many messages."""
        self._writing = False
        self._until = self._clock() + self._deadline


class Fence:
    """The fence of one client; a new client has a new fence.

    Args:
        timeout: heartbeat timeout that the service keeps, seconds.
        interval: heartbeat interval, seconds.
        clock: monotonic seconds that count suspended time.
        awake_clock: monotonic seconds that do not.
    """

    def __init__(
        self,
        timeout: float,
        interval: float,
        clock: Callable[[], float] = boottime,
        awake_clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.deadline = write_deadline(timeout, interval)
        self._timeout = timeout
        self._clock = clock
        self._awake_clock = awake_clock
        self._answered = float("-inf")
        self._revoked = False
        #: Every channel that the client ever held: a write to one that is gone may still be in doubt.
        self._channels: dict[ChannelId, ChannelFence] = {}

    def __repr__(self) -> str:
        return f"Fence(left={self.left():.3f})"

    @property
    def answered(self) -> float:
        """When the last answered heartbeat was sent; -inf before the first."""
        return self._answered

    @property
    def in_doubt(self) -> float:
        """Seconds for which a write of this client may still take effect; 0 when none may."""
        return max((fence.in_doubt for fence in self._channels.values()), default=0.0)

    def channel(self, channel_id: ChannelId) -> ChannelFence:
        """A fence for a channel that is given to this client; it inherits the doubt of the channel's last one."""
        doubt = InDoubt(self.deadline, self._awake_clock)
        made = self._channels[channel_id] = ChannelFence(self, doubt, self._channels.get(channel_id))
        return made

    def heartbeat_answered(self, sent_at: float) -> None:
        """A heartbeat sent at `sent_at` (this fence's clock) was answered."""
        self._answered = max(self._answered, sent_at)

    def left(self) -> float:
        """Seconds until the fence closes; negative when it is closed."""
        if self._revoked:
            return float("-inf")
        return self._answered + self._timeout - self.deadline - self._clock()

    def revoke(self) -> None:
        """Close the fence: the client is gone."""
        self._revoked = True

    def check(self) -> None:
        """Return if a write may leave now.

        Raises:
            OwnershipLost: the service may have given the channels away.
        """
        left = self.left()
        if left <= 0:
            raise OwnershipLost("the last answered heartbeat is too old: the channel may belong to another client")


class ChannelFence:
    """The fence of one channel, open while its client's is and the channel is not taken away.

    Args:
        client: the client's fence.
        doubt: writes to the channel that may still take effect.
        earlier: the fence of the channel's last time with this client; its write may not have ended yet.
    """

    def __init__(self, client: Guard, doubt: InDoubt, earlier: ChannelFence | None = None) -> None:
        self._client = client
        self._doubt = doubt
        #: The checkpoint under way; never begun where a late one does no harm.
        self.checkpoint_doubt = doubt.another()
        self._earlier = earlier
        self._revoked = False

    def __repr__(self) -> str:
        return f"ChannelFence({'revoked' if self._revoked else self._client}, {self._doubt})"

    @property
    def in_doubt(self) -> float:
        """Seconds for which a write to the channel may still take effect if it is given up now; 0 when none may."""
        earlier = self._earlier.in_doubt if self._earlier is not None else 0.0
        if not earlier:
            self._earlier = None
        return max(earlier, self._doubt.seconds, self.checkpoint_doubt.seconds)

    def check(self) -> None:
        """Return if a write may leave now.

        Raises:
            OwnershipLost: another client owns the channel, or may own it.
        """
        if self._revoked:
            raise OwnershipLost("the channel was taken away")
        self._client.check()

    def begin_write(self) -> None:
        """A write begins; it is in doubt until it is confirmed, or D after it was abandoned."""
        self._doubt.begin()

    def confirm_writes(self) -> None:
        """Every write that began is stored."""
        self._doubt.confirm()

    def abandon_write(self) -> None:
        """Nothing more of an unconfirmed write leaves."""
        self._doubt.abandon()

    def revoke(self) -> None:
        """Close the fence: the channel is taken away. The doubt about a write begins when it has ended, not now."""
        self._revoked = True


class RequestFence:
    """Guards the tries of one request, which must not overtake each other.

    Args:
        guard: permission to write, asked before every try.
        deadline: D, seconds that a try may take.
    """

    def __init__(self, guard: Guard, deadline: float) -> None:
        self._guard = guard
        self._doubt = InDoubt(deadline)

    def __repr__(self) -> str:
        return f"RequestFence({self._doubt})"

    @property
    def in_doubt(self) -> float:
        """Seconds for which the try that was sent last may still take effect."""
        return self._doubt.seconds

    def check(self) -> None:
        """Return if a try may leave now, which it then does.

        Raises:
            OwnershipLost: the guard forbids to send.
        """
        self._guard.check()
        self._doubt.pass_on()
