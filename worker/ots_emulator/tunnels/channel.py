"""The channels of a tunnel and its clients, as the service keeps them.

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
    """One channel; `source` is what it delivers, `token` and `sequence` are its checkpoint."""

    id: ChannelId
    source: BaseSlice | Partition
    token: Token
    status: ChannelStatus = ChannelStatus.WAIT
    version: int = 0
    owner: ClientId | None = None
    sequence: int = 0
    rows: int = 0
    total_rows: int = 0
    """Rows of a channel that has been read to its end; its final token cannot carry them."""
    consume_point_ns: int = 0
    suspended: bool = False
    forced: bool = False
    """Made eligible by hand, whatever its parents are."""

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
        """What DescribeTunnel says: suspended channels look as if they were closing (docs/protocol.md 4.5)."""
        if self.suspended and self.status is ChannelStatus.CLOSE:
            return ChannelStatus.CLOSING
        return self.status

    def turn(self, status: ChannelStatus, owner: ClientId | None, *, version: int | None = None) -> None:
        """Change status and owner; the version grows by one unless the client has grown it."""
        self.status = status
        self.owner = owner
        self.version = self.version + 1 if version is None else version


@dataclass(slots=True, eq=False)
class Client:
    """A connected worker; times in seconds."""

    id: ClientId
    timeout: float
    last_seen: float
