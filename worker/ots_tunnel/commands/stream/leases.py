"""`ots-tunnel stream leases`: who reads which shard, and how far."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping
from itertools import zip_longest
from typing import Any, Final

import click

from ots_tunnel.client.caller import ServiceCaller
from ots_tunnel.commands.finite_range import FiniteRange
from ots_tunnel.commands.output import Output
from ots_tunnel.commands.service import Service, service_options
from ots_tunnel.connections import Connection
from ots_tunnel.console.examples import examples
from ots_tunnel.console.explanations import explaining
from ots_tunnel.errors import LeaseTableNotFound, ObjectNotExist, ParameterInvalid, ServiceError, TunnelExpired
from ots_tunnel.stream.calls.client import StreamClient
from ots_tunnel.stream.calls.lease_table import LeaseTable
from ots_tunnel.stream.calls.lease_table_creation import look_at_table
from ots_tunnel.stream.decide.starting import waits_for
from ots_tunnel.stream.lease.lease import SHARD_END, TRIM_HORIZON, Lease
from ots_tunnel.stream.shards import ShardId, ShardIterator
from ots_tunnel.transport.aio import AioTransport

#: Seconds that a record is late at least, so that 0 means that none waits.
LEAST_LAG: Final = 0.1


@click.command(
    epilog=examples(
        "ots-tunnel stream leases orders orders_leases",
        "ots-tunnel stream leases orders orders_leases --watch 5     # until Ctrl-C",
        "ots-tunnel stream leases orders orders_leases --no-lag -o json",
        "ots-tunnel stream leases --from-object shop/orders-lines",
    )
)
@click.argument("table", required=False)
@click.argument("lease_table", required=False)
@click.option(
    "--lag/--no-lag",
    "with_lag",
    default=True,
    show_default=True,
    help="Read one record at each checkpoint, whose age is the lag.",
)
@click.option("--watch", "seconds", type=FiniteRange(0.1), help="Look again after so many seconds, until Ctrl-C.")
@service_options(ids=True)
def leases(
    table: str | None,
    lease_table: str | None,
    with_lag: bool,
    seconds: float | None,
    service: Service,
    output: Output,
) -> None:
    """Show the leases of TABLE in LEASE_TABLE: owner, the worker that has asked for it, checkpoint, lag.

    Changes nothing. The counter of a lease moves while its owner lives: look with --watch.
    """
    table, lease_table = service.lease_names(table, lease_table)
    connection = service.side.connection(service.source.source_origins())
    asyncio.run(_show(connection, table, lease_table, output, with_lag=with_lag, seconds=seconds))


async def _show(
    connection: Connection, table: str, lease_table: str, output: Output, *, with_lag: bool, seconds: float | None
) -> None:
    transport = AioTransport(connection.endpoint, max_connections=0)
    caller = ServiceCaller(transport, connection.instance, connection.credentials)
    client = StreamClient(connection.endpoint, connection.instance, connection.credentials, caller=caller)
    try:
        while True:
            with explaining(connection.place(table)):
                rows = await lease_rows(client, LeaseTable(caller, lease_table), table, with_lag=with_lag)
            output.rows(rows, "shard")
            if seconds is None:
                return
            await asyncio.sleep(seconds)
    finally:
        await client.close()


async def lease_rows(client: StreamClient, leases: LeaseTable, table: str, *, with_lag: bool) -> list[dict[str, Any]]:
    """One row of output for each lease.

    Raises:
        NoStream: the table's stream is switched off. WrongLeaseTable: the other table has another key.
        TunnelError: a call failed.
    """
    stream = await client.stream_of(table)
    try:
        listing = await leases.list(stream.stream_id)
    except LeaseTableNotFound:
        raise
    except ServiceError:
        # a table with another key refuses the range, in words about neither
        await look_at_table(leases)
        raise
    known = {lease.shard_id: lease for lease in listing.leases}
    lags = await asyncio.gather(*(_lag(client, lease) for lease in listing.leases)) if with_lag else ()
    rows = [lease_row(lease, known) for lease in listing.leases]
    for half in listing.half:
        rows.append({**lease_row(Lease(stream.stream_id, half.shard_id), known), "state": "half a row"})
    for row, lag in zip_longest(rows, lags):
        row["lagSeconds"] = lag
    for error in listing.unreadable:
        click.echo(f"warning: {error}", err=True)
    return rows


def lease_row(lease: Lease, leases: Mapping[ShardId, Lease]) -> dict[str, Any]:
    """One row of output, without the lag."""
    state = "finished" if lease.is_finished else "waits for parents" if waits_for(lease, leases) else "open"
    return {
        "shard": lease.shard_id,
        "state": state,
        "owner": lease.owner or None,
        "stealer": lease.stealer or None,
        "counter": lease.counter,
        "checkpoint": lease.checkpoint,
    }


async def _lag(client: StreamClient, lease: Lease) -> float | None:
    """Seconds since the oldest record behind the checkpoint was committed, never 0 with one; 0 without one.

    None is unknown: the record was trimmed, it comes with a later page, or the checkpoint is no position.
    """
    if lease.checkpoint == SHARD_END:
        return 0.0
    try:
        if lease.checkpoint in (TRIM_HORIZON, ""):
            iterator = await client.iterator(lease.stream_id, lease.shard_id)
        else:
            iterator = ShardIterator(lease.checkpoint)
        page = await client.read(iterator, limit=1)
    except (TunnelExpired, ObjectNotExist, ParameterInvalid):
        return None
    if not page.records:
        return None if page.may_more else 0.0
    sequence = page.records[0].sequence
    if sequence is None:
        return None
    now = time.time() if page.service_time is None else page.service_time
    # the service tells its time in whole seconds: a record of this second would seem to be none
    return round(max(now - sequence.timestamp_us / 1e6, LEAST_LAG), 1)
