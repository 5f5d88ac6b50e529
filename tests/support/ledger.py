"""What the service executed, call by call, as judges of a delivery read it.

Times are seconds of one clock. `sent` is when the process wrote the request's last bytes: the request may have been
under way for long, and its process may be dead. A change is (key, action, number); a removal has number 0.
"""

from __future__ import annotations

from dataclasses import dataclass

from ots_tunnel.model import ChannelStatus, ChannelType

Change = tuple[str, str, int]


@dataclass(frozen=True, slots=True)
class Entry:
    """A call that was executed."""

    t: float
    who: str
    sent: float


@dataclass(frozen=True, slots=True)
class Connected(Entry):
    """A process became a client."""

    client: str


@dataclass(frozen=True, slots=True)
class Dismissed(Entry):
    """A heartbeat was refused, since the service does not know its client any more."""

    client: str


@dataclass(frozen=True, slots=True)
class NotStored(Entry):
    """A checkpoint was refused."""


@dataclass(frozen=True, slots=True)
class Read(Entry):
    """A page was read. `position` is that of its first record in the log, None for base data."""

    client: str
    channel: str
    owner: str | None
    token: str
    following: str
    position: int | None
    rows: tuple[Change, ...]


@dataclass(frozen=True, slots=True)
class Opened(Entry):
    """A client read the stored checkpoint."""

    client: str
    channel: str
    token: str


@dataclass(frozen=True, slots=True)
class Stored(Entry):
    """A checkpoint became durable."""

    client: str
    channel: str
    token: str


@dataclass(frozen=True, slots=True)
class Reported(Entry):
    """A heartbeat: (channel, status) as the client sees its channels."""

    client: str
    reports: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class Listed:
    """A channel in a description."""

    id: str
    type: ChannelType
    status: ChannelStatus
    owner: str


@dataclass(frozen=True, slots=True)
class Described(Entry):
    """A process was shown the tunnel."""

    stage: str
    channels: tuple[Listed, ...]

    @property
    def streams(self) -> tuple[Listed, ...]:
        """Channels of the stream."""
        return tuple(channel for channel in self.channels if channel.type is ChannelType.STREAM)


@dataclass(frozen=True, slots=True)
class Written(Entry):
    """Row changes took effect at the destination."""

    rows: tuple[Change, ...]
