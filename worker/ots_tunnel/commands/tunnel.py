"""`ots-tunnel tunnel create|list|describe|delete`: manage tunnels."""

from __future__ import annotations

import sys
from datetime import UTC, datetime
from typing import Any

import click

from ots_tunnel.commands.output import Output
from ots_tunnel.commands.preflight import delete_tunnel, find_tunnel, list_tunnels
from ots_tunnel.commands.service import Service, service_options
from ots_tunnel.console.examples import examples
from ots_tunnel.model import ChannelInfo, StreamConfig, TunnelInfo, TunnelType
from ots_tunnel.worker.status.iso_time import iso_time

_NO_TERMINAL = "needs --yes without a terminal"


@click.group(epilog=examples("ots-tunnel tunnel list orders", "ots-tunnel tunnel create orders orders-copy"))
def tunnel() -> None:
    """Create, list, describe and delete tunnels."""


@tunnel.command(
    epilog=examples(
        "ots-tunnel tunnel create orders orders-copy",
        "ots-tunnel tunnel create orders late --type Stream --start-time 2026-01-01T00:00:00Z -q",
    )
)
@click.argument("table")
@click.argument("name")
@click.option(
    "--type",
    "kind",
    type=click.Choice([kind.name for kind in TunnelType]),
    default="BaseAndStream",
    show_default=True,
    help="Existing rows (BaseData), changes (Stream), or both.",
)
@click.option("--earliest", is_flag=True, help="Start a Stream tunnel at the oldest retained record.")
@click.option(
    "--start-time", type=click.DateTime(["%Y-%m-%dT%H:%M:%SZ"]), help="Start a Stream tunnel at this time, UTC."
)
@service_options(ids=True)
def create(
    table: str,
    name: str,
    kind: str,
    earliest: bool,
    start_time: datetime | None,
    service: Service,
    output: Output,
) -> None:
    """Create tunnel NAME on TABLE and print its id."""
    if (earliest or start_time) and kind != TunnelType.Stream.name:
        raise click.UsageError(f"--earliest and --start-time are for type Stream, not {kind}")
    if earliest and start_time:
        raise click.UsageError("--earliest and --start-time exclude each other")
    stream = None
    if kind == TunnelType.Stream.name:
        start_ns = int(start_time.replace(tzinfo=UTC).timestamp()) * 1_000_000_000 if start_time else 0
        stream = StreamConfig(earliest=earliest, start_offset_ns=start_ns)
    tunnel_id = service.ask(
        lambda client: client.create_tunnel(table, name, TunnelType[kind], stream), table=table, tunnel=name
    )
    output.item({"tunnel": name, "id": tunnel_id}, "id")


@tunnel.command(
    "list", epilog=examples("ots-tunnel tunnel list orders", "ots-tunnel tunnel list orders --profile shop -o jsonl")
)
@click.argument("table", required=False)
@service_options(ids=True)
def list_(table: str | None, service: Service, output: Output) -> None:
    """List the tunnels of TABLE."""
    table = service.table(table)
    tunnels = service.ask(lambda client: list_tunnels(client, table), table=table)
    output.rows([tunnel_row(info) for info in tunnels], "id")


@tunnel.command(
    epilog=examples(
        "ots-tunnel tunnel describe orders orders-copy", "ots-tunnel tunnel describe --from-object shop/orders-copy"
    )
)
@click.argument("table", required=False)
@click.argument("name", required=False)
@service_options(ids=True)
def describe(table: str | None, name: str | None, service: Service, output: Output) -> None:
    """Show tunnel NAME of TABLE and its channels."""
    table, name = service.names(table, name)
    found = service.ask(lambda client: find_tunnel(client, table, name), table=table, tunnel=name)
    output.item(tunnel_row(found.tunnel), "id", channels=[channel_row(channel) for channel in found.channels])


@tunnel.command(epilog=examples("ots-tunnel tunnel delete orders late", "ots-tunnel tunnel delete orders late --yes"))
@click.argument("table")
@click.argument("name")
@service_options(ids=False)
@click.option("--yes", is_flag=True, help="Confirm the action without prompting.")
def delete(table: str, name: str, yes: bool, service: Service, output: Output) -> None:
    """Delete tunnel NAME of TABLE with its checkpoints."""
    if not yes:
        _confirm(f"Delete tunnel {name!r} of table {table!r} with its checkpoints?")
    service.ask(lambda client: delete_tunnel(client, table, name), table=table, tunnel=name)
    output.item({"tunnel": name, "deleted": True}, "tunnel")


def _confirm(question: str) -> None:
    """Ask on the terminal; an answer that is piped counts, too.

    Raises:
        click.Abort: the answer is no. click.UsageError: nobody answers.
    """
    if sys.stdin is None:
        raise click.UsageError(_NO_TERMINAL)
    try:
        is_confirmed = click.confirm(question, err=True)
    except click.Abort:
        if sys.stdin.isatty():
            raise
        click.echo(err=True)  # ends the line of the question
        raise click.UsageError(_NO_TERMINAL) from None
    if not is_confirmed:
        raise click.Abort


def tunnel_row(info: TunnelInfo) -> dict[str, Any]:
    """One row of output for a tunnel."""
    return {
        "tunnel": info.tunnel_name,
        "id": info.tunnel_id,
        "type": info.tunnel_type.name,
        "stage": info.stage,
        "expired": info.expired,
        "created": iso_time(info.create_time_ns / 1e9),
    }


def channel_row(channel: ChannelInfo) -> dict[str, Any]:
    """One row of output for a channel; a consume point of 0 means never consumed."""
    return {
        "channel": channel.channel_id,
        "type": channel.channel_type.value,
        "state": channel.status.name,
        "client": channel.client_id or None,
        "rows": channel.rows,
        "consumed": iso_time(channel.consume_point_ns / 1e9) if channel.consume_point_ns else None,
    }
