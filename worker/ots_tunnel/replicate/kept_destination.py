"""Whether the destination at the end of a run is still the table of its beginning.

A table that is dropped and created again while changes are followed takes the later ones, and lacks what the run has
written before. One whose options are changed meanwhile hides versions that it had. The service refuses no write then,
so the run looks once more before it says that everything is copied.
"""

from __future__ import annotations

from ots_tunnel.client.table import TableClient
from ots_tunnel.errors import WrongDestination
from ots_tunnel.tables import TableAdmin
from ots_tunnel.tables.destination import ensure_destination


class KeptDestination:
    """The destination of one run.

    Args:
        client: of its instance.
        table: its name.
        tunnel_name: for messages.
    """

    def __init__(self, client: TableClient, table: str, tunnel_name: str) -> None:
        self._client = client
        self._table = table
        self._tunnel_name = tunnel_name
        self._created_us: int | None = None

    def __repr__(self) -> str:
        return f"KeptDestination({self._table}, created {self._created_us})"

    async def remember(self) -> None:
        """Keep when the table was created, before the first row is written.

        Raises:
            ServiceError, TransportError: the call failed.
        """
        self._created_us = (await self._client.describe_table(self._table)).created_us

    async def check(self, source: TableAdmin, destination: TableAdmin, source_table: str) -> None:
        """Compare the table with what is remembered, and with the source again.

        Raises:
            WrongDestination: it is another one by now, or cannot hold an equal copy any more.
            ServiceError, TransportError: a call failed.
        """
        result = await ensure_destination(source, destination, source_table, self._table, create=False)
        if result.usable is None:
            problems = "; ".join(map(str, result.problems))
            self._refuse("DestinationChanged", f"was changed during the run and cannot hold an equal copy: {problems}")
        if (await self._client.describe_table(self._table)).created_us != self._created_us:
            self._refuse(
                "DestinationReplaced", "was created again during the run, so rows that were copied are missing"
            )

    def _refuse(self, code: str, what: str) -> None:
        raise WrongDestination(
            code,
            f"destination table {self._table!r} {what}; delete the tunnel {self._tunnel_name!r} to copy everything",
        )
