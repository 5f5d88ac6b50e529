"""The channels of a tunnel and its clients, as the service stores them.

Source: docs/protocol.md 4.2 to 4.5.
"""

from __future__ import annotations

from dataclasses import dataclass

from ots_emulator.tables.keys import Key
from ots_emulator.tables.partition import Partition
from ots_tunnel.model import ChannelId, ChannelStatus, ChannelType, ClientId, Token


@dataclass(slots=True, eq=False)
class BaseSlice:
    """The key range of a base channel, `end` exclusive."""

    start: Key
    end: Key


@dataclass(slots=True, eq=False)
class TunnelChannel:
    """One channel; it delivers `source`, and `token` and `sequence` are its checkpoint."""

    id: ChannelId
    source: BaseSlice | Partition
    token: Token
    status: ChannelStatus = ChannelStatus.WAIT
    version: int = 0
    owner: ClientId | None = None
    sequence: int = 0
    rows: int = 0
    total_rows: int = 0
    """Rows of a channel that was read to its end; the token ``finished`` cannot carry them."""
    consume_point_ns: int = 0
    suspended: bool = False
    forced: bool = False
    """Made eligible by hand, also while its parents are not done."""

    @property
    def type(self) -> ChannelType:
        """Base data or stream."""
        return ChannelType.BASE if isinstance(self.source, BaseSlice) else ChannelType.STREAM

    @property
    def parents(self) -> tuple[str, ...]:
        """Ids of the channels that must be done before this one."""
        return () if isinstance(self.source, BaseSlice) else self.source.parents

    @property
    def shown_status(self) -> ChannelStatus:
        """The status in DescribeTunnel, which shows a suspended channel as CLOSING (docs/protocol.md 4.5)."""
        if self.suspended and self.status is ChannelStatus.CLOSE:
            return ChannelStatus.CLOSING
        return self.status

    def turn(self, status: ChannelStatus, owner: ClientId | None, *, version: int | None = None) -> None:
        """Change status and owner; the version grows by one unless `version` is the one a client has reported."""
        self.status = status
        self.owner = owner
        self.version = self.version + 1 if version is None else version


@dataclass(slots=True, eq=False)
class Client:
    """A connected worker; times in seconds."""

    id: ClientId
    timeout: float
    last_seen: float
