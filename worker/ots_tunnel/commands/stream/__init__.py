"""`ots-tunnel stream`: follow a table by its stream's shards and a table of leases, without a tunnel."""

from __future__ import annotations

import click

from ots_tunnel.commands.stream.leases import leases
from ots_tunnel.commands.stream.run import run
from ots_tunnel.console.examples import examples


@click.group(
    epilog=examples("ots-tunnel stream run --config stream.yaml", "ots-tunnel stream leases orders orders_leases")
)
def stream() -> None:
    """Follow a table by shards and leases, without a tunnel.

    Any number of workers share the shards, those of the vendor's Stream Client for Java included.
    """


stream.add_command(run)
stream.add_command(leases)
