"""`ots-tunnel tail`: print changes of a table, or the records that a tunnel delivers next."""

from __future__ import annotations

import asyncio
import secrets
import signal
from collections.abc import AsyncIterator, Coroutine
from contextlib import asynccontextmanager, nullcontext
from typing import Any

import click

from ots_tunnel.client.tunnel import TunnelClient
from ots_tunnel.commands.output import Output
from ots_tunnel.commands.record_printer import RecordPrinter
from ots_tunnel.commands.service import Service, service_options
from ots_tunnel.commands.signals import STOP_SIGNALS, StopSignals
from ots_tunnel.commands.tail_reader import TailedTunnel, TailReader
from ots_tunnel.console.examples import examples
from ots_tunnel.errors import ServiceError, TunnelError
from ots_tunnel.model import StreamConfig, TunnelId, TunnelType

#: Seconds that deleting the temporary tunnel may take.
DELETE_DEADLINE = 10.0


@click.command(
    epilog=examples(
        "ots-tunnel tail orders                            # changes as they come, until Ctrl-C",
        "ots-tunnel tail orders -n 5 --earliest -o jsonl   # the five oldest changes that are kept",
        "ots-tunnel tail orders orders-copy --no-follow    # what that tunnel delivers next",
        "ots-tunnel tail --from-object shop/orders-copy",
    )
)
@click.argument("table", required=False)
@click.argument("tunnel", required=False)
@click.option("-n", "--records", "most", type=click.IntRange(1), help="End after this number of records.")
@click.option("--earliest", is_flag=True, help="Start at the oldest retained record; only without TUNNEL.")
@click.option("--follow/--no-follow", default=True, show_default=True, help="Wait for new records at the end.")
@service_options(ids=False)
def tail(
    table: str | None,
    tunnel: str | None,
    most: int | None,
    earliest: bool,
    follow: bool,
    service: Service,
    output: Output,
) -> None:
    """Print changes of TABLE as they arrive; with TUNNEL, its records from the checkpoints on.

    Consumes nothing: no client connects and no checkpoint is written. Without TUNNEL, creates a temporary Stream
    tunnel and deletes it at the end. With --from-object alone, TABLE and TUNNEL are those of the object.
    """
    if table is None:
        table, tunnel = service.table(table), service.source.named.tunnel
    if tunnel is not None and earliest:
        raise click.UsageError("--earliest is for a tail without TUNNEL: a tunnel is read from its checkpoints")
    printer = RecordPrinter(output.form, most)

    async def read(client: TunnelClient) -> None:
        opened = nullcontext(TailedTunnel(table, tunnel)) if tunnel else temporary(client, table, earliest=earliest)
        async with opened as tailed:
            await TailReader(client, tailed, follow=follow, take=printer.take).run()

    # A closed terminal sends SIGHUP, and the temporary tunnel has to be deleted then, too.
    signals = StopSignals((*STOP_SIGNALS, signal.SIGHUP))
    with printer:
        service.ask(lambda client: _run_until_signal(read(client), signals), table=table, tunnel=tunnel or "")
    signals.exit_if_stopped()


async def _run_until_signal(work: Coroutine[Any, Any, None], signals: StopSignals) -> None:
    task = asyncio.ensure_future(work)
    # A second signal must not interrupt the deletion of the temporary tunnel.
    signals.call(lambda is_first: is_first and task.cancel())
    try:
        await task
    except asyncio.CancelledError:
        if signals.first is None:
            raise


@asynccontextmanager
async def temporary(client: TunnelClient, table: str, *, earliest: bool) -> AsyncIterator[TailedTunnel]:
    """Create a tunnel for the duration of the block; print its name if it cannot be deleted.

    Args:
        earliest: start at the oldest retained record.
    """
    name, refused, tunnel_id = f"tail-{secrets.token_hex(4)}", False, None
    try:
        try:
            stream = StreamConfig(earliest=earliest)
            tunnel_id = await client.create_tunnel(table, name, TunnelType.Stream, stream)
        except ServiceError:
            refused = True
            raise
        click.echo(f"temporary tunnel {name}", err=True)
        yield TailedTunnel(table, name)
    finally:
        # A call without an answer may have created the tunnel.
        if not refused:
            await _delete(client, table, name, tunnel_id)


async def _delete(client: TunnelClient, table: str, name: str, tunnel_id: TunnelId | None) -> None:
    try:
        async with asyncio.timeout(DELETE_DEADLINE):
            await client.delete_tunnel(table, name, tunnel_id)
    except (TunnelError, TimeoutError) as error:
        reason = str(error) or type(error).__name__
        click.echo(f"tunnel {name} was not deleted: {reason}; delete it with ots-tunnel tunnel delete", err=True)
