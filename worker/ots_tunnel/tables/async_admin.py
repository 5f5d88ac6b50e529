"""Calls on tables as coroutines."""

from __future__ import annotations

from collections.abc import Callable
from typing import Self

from ots_tunnel.credentials import CredentialsProvider
from ots_tunnel.tables.admin import TableAdmin
from ots_tunnel.tables.pool import run_blocking
from ots_tunnel.tables.schema import TableSchema


class AsyncTableAdmin:
    """The calls of `TableAdmin` as coroutines."""

    def __init__(self, admin: TableAdmin) -> None:
        self.admin = admin

    @classmethod
    def connect(cls, endpoint: str, instance: str, credentials: CredentialsProvider) -> Self:
        """Create one for an instance; arguments as in `TableAdmin`."""
        return cls(TableAdmin(endpoint, instance, credentials))

    def __repr__(self) -> str:
        return f"AsyncTableAdmin({self.admin!r})"

    async def describe(self, table: str) -> TableSchema | None:
        """See `TableAdmin.describe`."""
        return await run_blocking(self.admin.describe, table)

    @property
    def endpoint(self) -> str:
        """See `TableAdmin`."""
        return self.admin.endpoint

    @property
    def instance(self) -> str:
        """See `TableAdmin`."""
        return self.admin.instance

    async def create(self, schema: TableSchema) -> None:
        """See `TableAdmin.create`."""
        await run_blocking(self.admin.create, schema)

    async def list(self) -> tuple[str, ...]:
        """See `TableAdmin.list`."""
        return await run_blocking(self.admin.list)

    async def delete(self, table: str) -> None:
        """See `TableAdmin.delete`."""
        await run_blocking(self.admin.delete, table)

    async def is_empty(self, table: str, schema: TableSchema) -> bool:
        """See `TableAdmin.is_empty`."""
        return await run_blocking(self.admin.is_empty, table, schema)

    async def answers(self, table: str, schema: TableSchema) -> bool:
        """See `TableAdmin.answers`."""
        return await run_blocking(self.admin.answers, table, schema)

    async def create_by(self, send: Callable[[TableAdmin, TableSchema], bool], schema: TableSchema) -> bool:
        """Let `send` create a table by one call in a thread; what it returns."""
        return await run_blocking(send, self.admin, schema)

    async def close(self) -> None:
        """See `TableAdmin.close`."""
        self.admin.close()
