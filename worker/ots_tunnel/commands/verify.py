"""`ots-tunnel verify`: are two tables equal?"""

from __future__ import annotations

import asyncio
import json
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click
from click.core import ParameterSource

from ots_tunnel.errors import TunnelError
from ots_tunnel.verify.places import Places, places_of_file, places_of_options
from ots_tunnel.verify.report import Outcome, report_document, report_lines
from ots_tunnel.verify.verification import Verification, VerifyOptions

Command = TypeVar("Command", bound=Callable[..., Any])

#: Exit codes: the tables differ; stopped by a signal is 128 and the signal's number.
DIFFERENT, SIGNAL_BASE = 1, 128

_SOURCE = ("endpoint", "instance", "table", "credentials")
_CREDENTIALS = "Folder with the files accessKeyId, accessKeySecret and optional securityToken."


def table_options(command: Command) -> Command:
    """Add the options that name both tables."""
    folder = click.Path(path_type=Path)
    for option in (
        click.option("--writer-credentials", type=folder, help="The same for its ots-writer."),
        click.option("--reader-credentials", type=folder, help="Folder of keys for a job's file that holds none."),
        click.option("--to-credentials", type=folder, help="The same for the destination; default: the source's."),
        click.option("--to-table", help="Destination table."),
        click.option("--to-instance", help="Destination's instance; default: the source's."),
        click.option("--to-endpoint", help="Destination's endpoint; default: the source's."),
        click.option("--credentials", envvar="OTS_TUNNEL_CREDENTIALS", type=folder, help=_CREDENTIALS),
        click.option("--table", help="Source table."),
        click.option("--instance", envvar="OTS_TUNNEL_INSTANCE", help="Source's instance name."),
        click.option("--endpoint", envvar="OTS_TUNNEL_ENDPOINT", help="Source's endpoint, http(s)://host[:port]."),
    ):
        command = option(command)
    return command


@click.command()
@click.argument("file", required=False, type=click.Path(path_type=Path))
@table_options
@click.option(
    "--sample",
    "sample_percent",
    type=click.FloatRange(0, 100, min_open=True),
    help="Compare this share of the slices only, percent, chosen at random.",
)
@click.option("--seed", type=click.IntRange(0), help="Choose the same sample again; default: a new one, which is said.")
@click.option("--parallel", type=click.IntRange(1, 64), default=4, show_default=True, help="Slices at the same time.")
@click.option(
    "--recheck",
    "recheck_seconds",
    type=click.FloatRange(0, 86_400),
    default=0,
    metavar="SECONDS",
    help="Read rows that differ again after so long and count what still differs; for tables that are followed.",
)
@click.option("--show", type=click.IntRange(0, 1000), default=10, show_default=True, help="Differences to show.")
@click.option(
    "--state",
    type=click.Path(path_type=Path, dir_okay=False),
    help="File with what is done, to go on from; default: verify-<table>-<digest>.json in this folder. "
    "It is removed when the comparison is through.",
)
@click.option("--restart", is_flag=True, help="Begin anew though there is a state.")
@click.option("-o", "--output", type=click.Choice(["table", "json"]), default="table", help="Kind of output.")
@click.pass_context
def verify(context: click.Context, /, file: Path | None, output: str, **options: Any) -> None:
    """Compare two tables: every row, cell and version.

    FILE is a worker's document with a tablestore sink, or a replication job's file; without it options name the
    tables. A run that is stopped goes on where it was when the same command is given again.

    Ends with 0 when the tables are equal, 1 when they differ. `ots-tunnel --help` lists the exit codes.
    """
    folders = options.pop("reader_credentials"), options.pop("writer_credentials")
    places = _places(
        context, file, folders, {name: options.pop(name) for name in (*_SOURCE, *(f"to_{x}" for x in _SOURCE))}
    )
    if options["seed"] is not None and options["sample_percent"] is None:
        raise click.UsageError("--seed is for --sample")
    run = Verification(places, VerifyOptions(**options), sys.stderr, lambda text: click.echo(text, err=True))
    stop = _Stop()
    try:
        outcome = asyncio.run(stop.unless_told(run))
    except (TunnelError, asyncio.CancelledError) as error:
        if run.way_on is not None:
            click.echo(run.way_on, err=True)
        if stop.number is None or isinstance(error, TunnelError):
            raise
        sys.exit(SIGNAL_BASE + stop.number)
    if output == "json":
        click.echo(json.dumps(report_document(outcome)))
    else:
        for line in report_lines(outcome):
            click.echo(line)
    sys.exit(0 if outcome.result.equal else DIFFERENT)


class _Stop:
    """SIGINT and SIGTERM end a run in good order."""

    def __init__(self) -> None:
        self.number: int | None = None

    async def unless_told(self, run: Verification) -> Outcome:
        loop, task = asyncio.get_running_loop(), asyncio.current_task()
        assert task is not None

        def stop(number: int) -> None:
            self.number = number
            task.cancel()

        for number in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(number, stop, number)
        return await run.run()


def _places(
    context: click.Context, file: Path | None, folders: tuple[Path | None, Path | None], named: dict[str, Any]
) -> Places:
    if file is not None:
        given = [name for name in named if context.get_parameter_source(name) is ParameterSource.COMMANDLINE]
        if given:
            raise click.UsageError(f"FILE names both tables: {', '.join(map(_flag, given))} cannot be given with it")
        return places_of_file(file, *folders)
    if any(folders):
        raise click.UsageError("--reader-credentials and --writer-credentials are for a FILE")
    if missing := [name for name in (*_SOURCE, "to_table") if named[name] is None]:
        raise click.UsageError(f"missing FILE, or {', '.join(map(_flag, missing))}")
    source = {name: named[name] for name in _SOURCE}
    return places_of_options(source, {name: named[f"to_{name}"] or named[name] for name in _SOURCE})


def _flag(name: str) -> str:
    return "--" + name.replace("_", "-")
