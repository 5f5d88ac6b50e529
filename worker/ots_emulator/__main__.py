"""The command `ots-emulator`."""

from __future__ import annotations

import asyncio
import gc
import json
import os
import signal
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Final

import click

from ots_emulator.durable import DataError
from ots_emulator.emulator import Emulator
from ots_emulator.eventloop import new_event_loop
from ots_emulator.refusal import Refusal
from ots_emulator.server.descriptors import raise_limit, warning_of
from ots_emulator.server.ports import AddressUnusable
from ots_emulator.settings import Settings
from ots_emulator.snippets import Connection, go_snippet, java_snippet, python_snippet

#: Thresholds of the garbage collector. A batch of rows makes thousands of objects, and those of tables stay: with
#: Python's defaults the collector takes a tenth of the time.
_COLLECT_AFTER: Final = (20_000, 20, 50)

#: The system takes the lower 16 bits of a greater number.
_PORT: Final = click.IntRange(0, 65_535)

#: Wrong options, or a directory or port that cannot be used.
EXIT_USAGE = 2
#: Changes could not be stored, so that a restart does not bring them back.
EXIT_BEHIND = 1
#: Second signal: ends without waiting for calls under way, like an interrupt in a shell (128 + SIGINT).
EXIT_AT_ONCE = 130


@click.group(epilog="Example: ots-emulator serve --data tables")
def main() -> None:
    """Emulate Tablestore and its Tunnel Service."""


@main.command(
    epilog="""Examples:

    \b
      ots-emulator serve
      ots-emulator serve --data tables --partitions 4
      ots-emulator serve --port 0 --admin-port 0 -o json"""
)
@click.option("--host", default="127.0.0.1", show_default=True, help="Address of the data port.")
@click.option("--port", default=8300, show_default=True, type=_PORT, help="Data port; 0 chooses a free one.")
@click.option("--admin-host", default=None, help="Address of the admin port.  [default: value of --host]")
@click.option("--admin-port", default=8301, show_default=True, type=_PORT, help="Admin port; 0 chooses a free one.")
@click.option(
    "--admin-names",
    default=None,
    help="Names, with commas between, of the admin port beside localhost and addresses.",
)
@click.option("--instance", "names", multiple=True, help="Name of an instance; may be repeated.  [default: demo]")
@click.option(
    "--access-key",
    "keys",
    multiple=True,
    metavar="ID:SECRET",
    help="Key pair of every instance; may be repeated.  [default: test-id:test-secret]",
)
@click.option("--partitions", default=1, show_default=True, type=click.IntRange(1), help="Partitions of a new table.")
@click.option(
    "--base-split-bytes",
    default=Settings().base_split_bytes,
    show_default=True,
    type=click.IntRange(1),
    help="Size of one base channel.",
)
@click.option("--init-delay", default=0.05, show_default=True, help="Seconds a new tunnel takes to initialise.")
@click.option(
    "--idle-advance/--no-idle-advance",
    default=True,
    help="Whether idle reads move consume points.  [default: idle-advance]",
)
@click.option(
    "--data",
    type=click.Path(path_type=Path),
    help="Directory that stores everything acknowledged.  [default: memory only]",
)
@click.option(
    "--fsync",
    is_flag=True,
    help="With --data: wait for the disk before every answer, so that a power loss loses nothing.",
)
@click.option(
    "-o",
    "--output",
    type=click.Choice(["text", "json"]),
    default="text",
    show_default=True,
    help="Format of the printed addresses.",
)
def serve(  # noqa: PLR0913 - one parameter per flag
    host: str,
    port: int,
    admin_host: str | None,
    admin_port: int,
    admin_names: str | None,
    names: tuple[str, ...],
    keys: tuple[str, ...],
    partitions: int,
    base_split_bytes: int,
    init_delay: float,
    idle_advance: bool,
    data: Path | None,
    fsync: bool,
    output: str,
) -> None:
    """Serve until SIGTERM or SIGINT."""
    try:
        settings = Settings(
            partitions=partitions,
            base_split_bytes=base_split_bytes,
            init_delay=init_delay,
            idle_advance=idle_advance,
            fsync=fsync,
            admin_names=admin_names,
        )
    except ValueError as error:
        raise click.UsageError(str(error)) from error
    pairs = _pairs(keys or ("test-id:test-secret",))
    if "" in names:
        raise click.BadParameter("found '', allowed is a name: every client sends one", param_hint="--instance")
    if fsync and data is None:
        raise click.BadParameter("needs --data", param_hint="--fsync")
    warning = warning_of(raise_limit())
    if warning is not None:
        click.echo(warning, err=True)
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
            runner.run(_serve(emulator, next(iter(pairs.items())), names[0] if names else "demo", output))
    except AddressUnusable as error:
        click.echo(f"--{error.argument.replace('_', '-')}: {error.strerror}", err=True)
        sys.exit(EXIT_USAGE)
    except Refusal:
        # The last changes, those of controls, are stored with the stop.
        if emulator.service.failure is None:
            raise
    if emulator.service.failure is not None:
        click.echo(f"stopped; what was not acknowledged is not stored: {emulator.service.failure}", err=True)
        sys.exit(EXIT_BEHIND)


def _pairs(keys: tuple[str, ...]) -> Mapping[str, str]:
    pairs = {}
    for key in keys:
        key_id, separator, secret = key.partition(":")
        if not (key_id and separator and secret) or ":" in secret:
            # The vendor's clients expect exactly one colon in the answer's signature (docs/data-plane.md 1.7).
            raise click.BadParameter("expected ID:SECRET with one colon", param_hint="--access-key")
        pairs[key_id] = secret
    return pairs


async def _serve(emulator: Emulator, pair: tuple[str, str], instance: str, output: str) -> None:
    gc.set_threshold(*_COLLECT_AFTER)
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()

    def interrupt() -> None:
        if stop.is_set():
            os._exit(EXIT_AT_ONCE)
        stop.set()

    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, interrupt)
    async with emulator:
        to = Connection(emulator.endpoint, instance, *pair)
        _say(announcement(emulator, to) if output == "json" else greeting(emulator, to))
        await stop.wait()
    if output != "json" and emulator.service.failure is None:
        _say("stopped")


def _say(text: str) -> None:
    """Print; a reader that has gone, such as `head`, is no reason to serve no more."""
    try:
        click.echo(text)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def announcement(emulator: Emulator, to: Connection) -> str:
    """Return the addresses for a program, as one line of JSON."""
    document = {
        "endpoint": to.endpoint,
        "admin": emulator.admin_url,
        "instances": sorted(emulator.instances),
        "accessKeyId": to.key_id,
    }
    return json.dumps(document)


def greeting(emulator: Emulator, to: Connection) -> str:
    """Return addresses and example programs for a person; a secret that is not the default one is not printed."""
    rule = "-" * 72
    return f"""\
ots-emulator is ready
  endpoint   {to.endpoint}
  instances  {", ".join(sorted(emulator.instances))}
  access key {to.key_id}
  admin      {emulator.admin_url}   a page with the state; GET /state, POST /split, /merge, /faults, ...

Python {rule[7:]}
{python_snippet(to)}
Go {rule[3:]}
{go_snippet(to)}
Java {rule[5:]}
{java_snippet(to)}{rule}"""


if __name__ == "__main__":
    main()
