"""The command `ots-emulator`."""

from __future__ import annotations

import asyncio
import signal
import sys
from collections.abc import Mapping
from pathlib import Path

import click

from ots_emulator.emulator import Emulator
from ots_emulator.eventloop import new_event_loop
from ots_emulator.settings import Settings
from ots_emulator.storage import DataError

EXIT_USAGE = 2


@click.group()
def main() -> None:
    """Emulate Tablestore and its Tunnel Service."""


@main.command()
@click.option("--host", default="127.0.0.1", show_default=True, help="Address of the data port.")
@click.option("--port", default=8300, show_default=True, help="Data port; 0 chooses a free one.")
@click.option("--admin-host", default=None, help="Address of the admin port.  [default: that of --host]")
@click.option("--admin-port", default=8301, show_default=True, help="Admin port; 0 chooses a free one.")
@click.option("--instance", "names", multiple=True, help="Instance name; may be repeated.  [default: demo]")
@click.option("--access-key", "keys", multiple=True, metavar="ID:SECRET", help="Key pair of every instance.")
@click.option("--partitions", default=1, show_default=True, type=click.IntRange(1), help="Partitions of a new table.")
@click.option(
    "--base-split-bytes",
    default=Settings().base_split_bytes,
    show_default=True,
    type=click.IntRange(1),
    help="Size of one base channel.",
)
@click.option("--init-delay", default=0.05, show_default=True, help="Seconds a tunnel takes to initialise.")
@click.option("--idle-advance/--no-idle-advance", default=True, help="Whether idle reads move consume points.")
@click.option(
    "--data",
    type=click.Path(path_type=Path),
    help="Directory to keep everything in that was acknowledged.  [default: memory only]",
)
@click.option(
    "--fsync", is_flag=True, help="With --data: answer only when the disk has it, so that a power loss costs nothing."
)
def serve(  # noqa: PLR0913 - one parameter per flag
    host: str,
    port: int,
    admin_host: str | None,
    admin_port: int,
    names: tuple[str, ...],
    keys: tuple[str, ...],
    partitions: int,
    base_split_bytes: int,
    init_delay: float,
    idle_advance: bool,
    data: Path | None,
    fsync: bool,
) -> None:
    """Serve until SIGTERM or SIGINT."""
    settings = Settings(
        partitions=partitions,
        base_split_bytes=base_split_bytes,
        init_delay=init_delay,
        idle_advance=idle_advance,
        fsync=fsync,
    )
    pairs = _pairs(keys or ("test-id:test-secret",))
    if fsync and data is None:
        raise click.BadParameter("needs --data", param_hint="--fsync")
    try:
        emulator = Emulator(
            {name: pairs for name in names or ("demo",)},
            host=host,
            port=port,
            admin_host=admin_host,
            admin_port=admin_port,
            settings=settings,
            data=data,
        )
    except DataError as error:
        click.echo(str(error), err=True)
        sys.exit(EXIT_USAGE)
    try:
        with asyncio.Runner(loop_factory=new_event_loop) as runner:
            runner.run(_serve(emulator, next(iter(pairs)), names[0] if names else "demo"))
    except OSError as error:
        click.echo(f"cannot listen on {host}:{port} or admin port {admin_port}: {error.strerror or error}", err=True)
        sys.exit(EXIT_USAGE)


def _pairs(keys: tuple[str, ...]) -> Mapping[str, str]:
    pairs = {}
    for key in keys:
        key_id, separator, secret = key.partition(":")
        if not (key_id and separator and secret) or ":" in secret:
            # The vendor's clients expect exactly one colon in the answer's signature (tablestore-api 1.7).
            raise click.BadParameter("expected ID:SECRET with one colon", param_hint="--access-key")
        pairs[key_id] = secret
    return pairs


async def _serve(emulator: Emulator, key_id: str, instance: str) -> None:
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    async with emulator:
        click.echo(greeting(emulator, key_id, instance))
        await stop.wait()
    click.echo("stopped")


def greeting(emulator: Emulator, key_id: str, instance: str) -> str:
    """Return what a person needs to connect; the secret is what they gave on the command line."""
    endpoint = emulator.endpoint
    return f"""\
ots-emulator is ready
  endpoint   {endpoint}
  instance   {instance}
  access key {key_id}
  admin      {emulator.admin_url}   (GET /state, POST /split, /partitions, /faults, ...)

Python   tablestore.OTSClient("{endpoint}", "{key_id}", "<secret>", "{instance}")
Go       tunnel.NewTunnelClient("{endpoint}", "{instance}", "{key_id}", "<secret>")
Java     new TunnelClient("{endpoint}", "{key_id}", "<secret>", "{instance}")
"""


if __name__ == "__main__":
    main()
