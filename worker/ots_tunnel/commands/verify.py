"""`ots-tunnel verify`: compare two tables."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click
from click.core import ParameterSource

from ots_tunnel.commands.signals import StopSignals
from ots_tunnel.errors import TunnelError
from ots_tunnel.verify.places import Places, places_of_file, places_of_options
from ots_tunnel.verify.report import Outcome, report_document, report_lines
from ots_tunnel.verify.verification import Verification, VerifyOptions

Command = TypeVar("Command", bound=Callable[..., Any])

#: Exit code if the tables differ.
DIFFERENT = 1

_SOURCE = ("endpoint", "instance", "table", "credentials")
_CREDENTIALS = "Folder with the files accessKeyId, accessKeySecret and optional securityToken."


def table_options(command: Command) -> Command:
    """Add the options that name both tables and their credentials."""
    folder = click.Path(path_type=Path)
    for option in (
        click.option(
            "--writer-credentials",
            type=folder,
            help="Folder of the ots-writer's keys, if FILE is a job file without keys.",
        ),
        click.option(
            "--reader-credentials",
            type=folder,
            help="Folder of the ots-reader's keys, if FILE is a job file without keys.",
        ),
        click.option(
            "--to-credentials", type=folder, help="Folder of the destination's keys; default: that of the source."
        ),
        click.option("--to-table", help="Destination table."),
        click.option("--to-instance", help="Destination's instance name; default: that of the source."),
        click.option("--to-endpoint", help="Destination's endpoint; default: that of the source."),
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
    help="Compare a random sample of the slices, in percent.",
)
@click.option("--seed", type=click.IntRange(0), help="Seed of the sample; default: a random one, which is printed.")
@click.option(
    "--parallel", type=click.IntRange(1, 64), default=4, show_default=True, help="Slices compared in parallel."
)
@click.option(
    "--recheck",
    "recheck_seconds",
    type=click.FloatRange(0, 86_400),
    default=0,
    metavar="SECONDS",
    help="Read differing rows again after this time and count only those that still differ; for tables that change.",
)
@click.option("--show", type=click.IntRange(0, 1000), default=10, show_default=True, help="Differences to show.")
@click.option(
    "--state",
    type=click.Path(path_type=Path, dir_okay=False),
    help="File that stores finished slices, so that a run can be resumed; default: verify-<table>-<digest>.json in the "
    "current folder. A complete comparison removes it.",
)
@click.option("--restart", is_flag=True, help="Start again, ignoring the state file.")
@click.option(
    "-o", "--output", type=click.Choice(["table", "json"]), default="table", show_default=True, help="Output format."
)
@click.pass_context
def verify(context: click.Context, /, file: Path | None, output: str, **options: Any) -> None:
    """Compare two tables: every row, cell and version.

    FILE is a worker's document with a tablestore sink, or the file of a replication job; without FILE, options name
    the tables. To resume a stopped run, start the same command again.

    Exits with 0 when the tables are equal, 1 when they differ. `ots-tunnel --help` lists the exit codes.
    """
    folders = options.pop("reader_credentials"), options.pop("writer_credentials")
    places = _places(
        context, file, folders, {name: options.pop(name) for name in (*_SOURCE, *(f"to_{x}" for x in _SOURCE))}
    )
    if options["seed"] is not None and options["sample_percent"] is None:
        raise click.UsageError("--seed is for --sample")
    run = Verification(places, VerifyOptions(**options), sys.stderr, lambda text: click.echo(text, err=True))
    signals = StopSignals()
    try:
        outcome = asyncio.run(_run_until_signal(run, signals))
    except (TunnelError, asyncio.CancelledError) as error:
        if run.resume_hint is not None:
            click.echo(run.resume_hint, err=True)
        if isinstance(error, asyncio.CancelledError):
            signals.exit_if_stopped()
        raise
    if output == "json":
        click.echo(json.dumps(report_document(outcome)))
    else:
        for line in report_lines(outcome):
            click.echo(line)
    sys.exit(0 if outcome.result.equal else DIFFERENT)


async def _run_until_signal(run: Verification, signals: StopSignals) -> Outcome:
    task = asyncio.current_task()
    assert task is not None
    signals.call(lambda _: task.cancel())
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
