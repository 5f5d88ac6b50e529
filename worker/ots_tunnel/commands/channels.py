"""`ots-tunnel channels`: the channels of a tunnel, by the names of table and tunnel."""

from __future__ import annotations

import click

from ots_tunnel.commands.output import Output
from ots_tunnel.commands.preflight import find_tunnel
from ots_tunnel.commands.service import Service, service_options
from ots_tunnel.commands.tunnel import channel_row
from ots_tunnel.console.examples import examples


@click.command(
    epilog=examples(
        "ots-tunnel channels orders orders-copy",
        "ots-tunnel channels orders orders-copy --profile shop -o wide",
        "ots-tunnel channels --from-object shop/orders-copy -o json",
    )
)
@click.argument("table", required=False)
@click.argument("name", required=False)
@service_options(ids=True)
def channels(table: str | None, name: str | None, service: Service, output: Output) -> None:
    """Show the channels of tunnel NAME on TABLE: state, owner, rows, consume point."""
    table, name = service.names(table, name)
    found = service.ask(lambda client: find_tunnel(client, table, name), table=table, tunnel=name)
    output.rows([channel_row(channel) for channel in found.channels], "channel")
