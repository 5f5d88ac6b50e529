"""`ots-tunnel channels`: the channels of a tunnel, by the names of table and tunnel."""

from __future__ import annotations

from typing import Any

import click

from ots_tunnel.commands.preflight import find_tunnel
from ots_tunnel.commands.service import service_options, show, with_client
from ots_tunnel.commands.tunnel import channel_row


@click.command()
@click.argument("table")
@click.argument("name")
@service_options
def channels(table: str, name: str, output: str, **service: Any) -> None:
    """Show the channels of tunnel NAME on TABLE: state, owner, rows, consume point."""
    description = with_client(**service, ask=lambda client: find_tunnel(client, table, name), table=table, tunnel=name)
    show([channel_row(channel) for channel in description.channels], output)
