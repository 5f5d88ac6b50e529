"""What one loop remembers between two passes: caches and times only, nothing that correctness depends on.

Everything here may be lost at any moment; a restarted operator comes to the same end, a little later.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field

from ots_tunnel.model import Credentials
from ots_tunnel_operator.instance import Instance
from ots_tunnel_operator.world import Table, Tunnel


@dataclass(slots=True)
class Side:
    """One end, source or sink: its keys, its clients, its table."""

    credentials: Credentials | None = None
    credentials_time: float = 0.0
    instance: Instance | None = None
    table: Table | None = None
    table_time: float = 0.0

    def forget(self) -> None:
        """Read the keys and the table again: a call failed."""
        self.credentials = None
        self.table = None

    async def connect(self, endpoint: str, instance: str, credentials: Credentials) -> Instance:
        """The clients for these keys; new ones where anything changed."""
        now = self.instance
        if now is not None and (now.endpoint, now.instance, now.credentials) == (endpoint, instance, credentials):
            return now
        await self.close()
        self.table = None
        self.instance = Instance(endpoint, instance, credentials)
        return self.instance

    async def close(self) -> None:
        """Close the clients."""
        instance, self.instance = self.instance, None
        if instance is not None:
            await instance.close()


@dataclass(slots=True)
class LoopCache:
    """All of one object's loop."""

    source: Side = field(default_factory=Side)
    sink: Side = field(default_factory=Side)
    tunnel: Tunnel | None = None
    """As described last, where that succeeded."""
    tunnel_time: float = 0.0
    foreign_since: dict[str, float] = field(default_factory=dict)
    last_write: float = 0.0
    """When figures were written last."""
    failures: int = 0
    """Passes in a row that ended with a problem or an error."""
    posted: dict[tuple[str, str], float] = field(default_factory=dict)
    """Events posted, by reason and message, with their time."""
    applied: dict[tuple[str, str], tuple[str, str]] = field(default_factory=dict)
    """Child -> (what was applied, the version it had right after)."""
    wake: asyncio.Event = field(default_factory=asyncio.Event)
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    """Held by a pass or by the deletion, never by both."""

    async def close(self) -> None:
        """Close every connection."""
        await self.source.close()
        await self.sink.close()
