"""`ots-tunnel stream`: follow a table by its stream's shards and a table of leases, without a tunnel."""

from __future__ import annotations

import click

from ots_tunnel.console.examples import examples
from ots_tunnel.console.lazy_group import LazyGroup


@click.group(
    cls=LazyGroup,
    commands_at={
        "run": "ots_tunnel.commands.stream.run:run",
        "leases": "ots_tunnel.commands.stream.leases:leases",
    },
    summaries={
        "run": "Follow a table into a sink, without a tunnel.",
        "leases": "Show the leases of TABLE in LEASE_TABLE: owner, the worker that has asked for it, checkpoint, lag.",
    },
    epilog=examples("ots-tunnel stream run --config stream.yaml", "ots-tunnel stream leases orders orders_leases"),
)
def stream() -> None:
    """Follow a table by shards and leases, without a tunnel.

    Any number of workers share the shards, those of the vendor's Stream Client for Java included.
    """
