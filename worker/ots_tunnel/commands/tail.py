"""`ots-tunnel tail`: what changes in a table, or what a tunnel's clients get next."""

from __future__ import annotations

import asyncio
import json
import os
import secrets
import signal
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, nullcontext
from typing import Any

import click

from ots_tunnel.client.tunnel import TunnelClient
from ots_tunnel.commands.service import service_options, with_client
from ots_tunnel.commands.tail_reader import TailedTunnel, TailReader, Taker
from ots_tunnel.errors import ServiceError, TunnelError
from ots_tunnel.model import Action, CellOp, ChannelId, ChannelType, StreamConfig, TunnelType
from ots_tunnel.protocol.plainbuffer.column import Column
from ots_tunnel.protocol.record import Record
from ots_tunnel.sinks.json_record import json_form
from ots_tunnel.worker.status import iso_time

#: Seconds that deleting the tunnel may take.
REMOVE_DEADLINE = 10.0

#: Characters of a value that are shown for people.
SHOWN = 40


@click.command()
@click.argument("table")
@click.argument("tunnel", required=False)
@click.option("-n", "--records", "most", type=click.IntRange(1), help="End after so many records.")
@click.option("--earliest", is_flag=True, help="Begin with the oldest change that is kept; only without TUNNEL.")
@click.option("--follow/--no-follow", default=True, show_default=True, help="Wait for more at the end.")
@service_options
def tail(
    table: str, tunnel: str | None, most: int | None, earliest: bool, follow: bool, output: str, **service: Any
) -> None:
    """Show changes of TABLE as they come; with TUNNEL, what its clients get next from its checkpoints on.

    Nothing is consumed: no client is connected, no checkpoint is written. Without TUNNEL a tunnel of type Stream is
    created for the time being and deleted in the end.
    """
    if tunnel is not None and earliest:
        raise click.UsageError("--earliest is for a tail without TUNNEL: a tunnel is read from its checkpoints on")
    take = _printer(output, most)

    async def look(client: TunnelClient) -> None:
        there = nullcontext(TailedTunnel(table, tunnel)) if tunnel else temporary(client, table, earliest=earliest)
        async with there as tailed:
            await TailReader(client, tailed, follow=follow, take=take).run()

    stopped_by = with_client(**service, ask=lambda client: _unless_told(look(client)), table=table, tunnel=tunnel or "")
    if stopped_by is not None:
        sys.exit(128 + stopped_by)


async def _unless_told(work: Any) -> int | None:
    """Run until a signal says stop; its number, None where none came."""
    loop, task = asyncio.get_running_loop(), asyncio.ensure_future(work)
    told: list[int] = []

    def stop(number: int) -> None:
        if not told:  # being told again does not keep us from cleaning up
            task.cancel()
        told.append(number)

    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        loop.add_signal_handler(number, stop, number)
    try:
        await task
    except asyncio.CancelledError:
        if not told:
            raise
    return told[0] if told else None


@asynccontextmanager
async def temporary(client: TunnelClient, table: str, *, earliest: bool) -> AsyncIterator[TailedTunnel]:
    """A tunnel that is there while the block runs; one that cannot be deleted is named.

    Args:
        earliest: begin with the oldest change that is kept.
    """
    name, refused = f"tail-{secrets.token_hex(4)}", False
    try:
        try:
            await client.create_tunnel(table, name, TunnelType.Stream, StreamConfig(earliest=earliest))
        except ServiceError:
            refused = True
            raise
        click.echo(f"tunnel {name} for the time being", err=True)
        yield TailedTunnel(table, name)
    finally:
        # An unanswered call may have created it.
        if not refused:
            await _remove(client, table, name)


async def _remove(client: TunnelClient, table: str, name: str) -> None:
    try:
        async with asyncio.timeout(REMOVE_DEADLINE):
            await client.delete_tunnel(table, name)
    except (TunnelError, TimeoutError) as error:
        reason = str(error) or type(error).__name__
        click.echo(f"tunnel {name} is left: {reason}; delete it with ots-tunnel tunnel delete", err=True)


def _printer(output: str, most: int | None) -> Taker:
    shown = 0
    form: Callable[[Record, ChannelId], str] = _json_line if output == "json" else _line

    def take(channel_id: ChannelId, _: ChannelType, records: list[Record]) -> bool:
        nonlocal shown
        for record in records:
            try:
                click.echo(form(record, channel_id))
            except BrokenPipeError:  # whoever read it has seen enough, such as `head`
                os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
                return False
            shown += 1
            if most is not None and shown >= most:
                return False
        return True

    return take


def _json_line(record: Record, channel_id: ChannelId) -> str:
    return json.dumps(json_form(record, channel_id), ensure_ascii=False)


def _line(record: Record, _: ChannelId) -> str:
    """One record for people: when, what, which row, which cells."""
    sequence = record.sequence
    when = iso_time(sequence.timestamp_us / 1e6) if sequence is not None else "existing row"
    key = ", ".join(f"{name}={_shown(value)}" for name, value in record.primary_key)
    cells = " ".join(_cell(column) for column in record.columns) if record.action is not Action.DELETE else ""
    return f"{when:24}  {record.action.name:6}  {key}  {cells}".rstrip()


def _cell(column: Column) -> str:
    version = "" if column.timestamp_ms is None else f"@{column.timestamp_ms}"
    match column.op:
        case CellOp.PUT:
            return f"{column.name}={_shown(column.value)}"
        case CellOp.DELETE_ONE_VERSION:
            return f"-{column.name}{version}"
        case _:
            return f"-{column.name}"


def _shown(value: object) -> str:
    text = repr(value)
    return text if len(text) <= SHOWN else f"{text[: SHOWN - 3]}..."
