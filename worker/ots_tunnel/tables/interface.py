"""What the creation of a destination needs of an instance, whoever makes the calls."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from ots_tunnel.tables.admin import TableAdmin
from ots_tunnel.tables.schema import TableSchema


class Place(Protocol):
    """Where a table is."""

    @property
    def endpoint(self) -> str:
        """Endpoint of the instance."""

    @property
    def instance(self) -> str:
        """Name of the instance."""


class Tables(Place, Protocol):
    """What is needed of an instance: looks at its tables, and the call that creates one. `AsyncTableAdmin` is one."""

    async def describe(self, table: str) -> TableSchema | None:
        """See `TableAdmin.describe`."""

    async def answers(self, table: str, schema: TableSchema) -> bool:
        """See `TableAdmin.answers`."""

    async def create_by(self, send: Callable[[TableAdmin, TableSchema], bool], schema: TableSchema) -> bool:
        """See `AsyncTableAdmin.create_by`."""
