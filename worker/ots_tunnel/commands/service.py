"""Options and client of the commands that call the service."""

from __future__ import annotations

import asyncio
import functools
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import click

from ots_tunnel.client.tunnel import TunnelClient
from ots_tunnel.commands.output import output_of, output_options
from ots_tunnel.commands.side_options import ObjectOptions, SideOptions, object_options, side_options
from ots_tunnel.connections import Connection
from ots_tunnel.console.explanations import explaining

Result = TypeVar("Result")


@dataclass(frozen=True, slots=True)
class Service:
    """What the options of a command say about the service; nothing is read before it is asked for.

    Args:
        side: endpoint, instance and keys.
        source: the object that names what the options do not.
    """

    side: SideOptions
    source: ObjectOptions

    def names(self, table: str | None, tunnel: str | None) -> tuple[str, str]:
        """Table and tunnel: the given ones, or those of the object.

        Raises:
            click.UsageError: a name is missing.
        """
        if table is None and self.source.is_given:
            return self.source.table, self.source.named.tunnel
        if table is None or tunnel is None:
            raise click.UsageError("missing TABLE and NAME, or --from-object")
        return table, tunnel

    def lease_names(self, table: str | None, lease_table: str | None) -> tuple[str, str]:
        """Table and table of leases: the given ones, or those of the object.

        Raises:
            click.UsageError: a name is missing. ConfigError: the object reads a tunnel.
        """
        if table is None and self.source.is_given:
            return self.source.table, self.source.named.lease_table
        if table is None or lease_table is None:
            raise click.UsageError("missing TABLE and LEASE_TABLE, or --from-object")
        return table, lease_table

    def table(self, table: str | None) -> str:
        """The table: the given one, or that of the object.

        Raises:
            click.UsageError: the name is missing.
        """
        if table is None and not self.source.is_given:
            raise click.UsageError("missing TABLE, or --from-object")
        return self.source.table if table is None else table

    def ask(
        self, question: Callable[[TunnelClient], Awaitable[Result]], *, table: str = "", tunnel: str = ""
    ) -> Result:
        """Call `question` with a client, close the client, return the answer.

        Args:
            table, tunnel: names for error messages.

        Raises:
            ConfigError: an option is wrong or missing. Explained: the service refused or did not answer.
        """
        connection = self.side.connection(self.source.source_origins())
        return asyncio.run(_session(connection, question, table, tunnel))


async def _session(
    connection: Connection, question: Callable[[TunnelClient], Awaitable[Result]], table: str, tunnel: str
) -> Result:
    client = TunnelClient(connection.endpoint, connection.instance, connection.credentials)
    try:
        with explaining(connection.place(table, tunnel)):
            return await question(client)
    finally:
        await client.close()


def service_options(*, ids: bool) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Add the options of a command that calls the service; it gets them as `service` and `output`.

    Args:
        ids: whether `-q` can print ids.
    """

    def add(command: Callable[..., Any]) -> Callable[..., Any]:
        @side_options()
        @object_options
        @output_options(ids=ids)
        @functools.wraps(command)
        def run(
            *arguments: Any,
            endpoint: str | None,
            instance: str | None,
            credentials: Path | None,
            profile: str | None,
            from_object: str | None,
            context: str,
            form: str | None,
            only_ids: bool = False,
            **options: Any,
        ) -> Any:
            source = ObjectOptions(from_object, context)
            side = SideOptions(endpoint, instance, credentials, profile)
            service = Service(side, source)
            return command(*arguments, service=service, output=output_of(form, only_ids=only_ids), **options)

        return run

    return add
