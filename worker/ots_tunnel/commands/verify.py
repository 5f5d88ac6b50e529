"""`ots-tunnel verify`: compare two tables."""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path
from typing import Any

import click

from ots_tunnel.commands.compared_tables import ComparedTables, table_options
from ots_tunnel.commands.finite_range import FiniteRange
from ots_tunnel.commands.signals import StopSignals
from ots_tunnel.console.examples import examples
from ots_tunnel.errors import TunnelError
from ots_tunnel.verify.report import Outcome, report_document, report_lines
from ots_tunnel.verify.verification import Verification, VerifyOptions

#: Exit code if the tables differ.
DIFFERENT = 1


@click.command(
    epilog=examples(
        "ots-tunnel verify --from-object shop/orders-copy --recheck 30",
        "ots-tunnel verify job.json --sample 5",
        "ots-tunnel verify --profile shop --table orders --to-profile dr --to-table orders",
    )
)
@table_options
@click.option(
    "--sample",
    "sample_percent",
    type=FiniteRange(0, 100, min_open=True),
    help="Compare a random sample of the slices, in percent.",
)
@click.option("--seed", type=click.IntRange(0), help="Seed of the sample; default: a random one, which is printed.")
@click.option(
    "--parallel", type=click.IntRange(1, 64), default=4, show_default=True, help="Slices compared in parallel."
)
@click.option(
    "--recheck",
    "recheck_seconds",
    type=FiniteRange(0, 86_400),
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
def verify(tables: ComparedTables, output: str, **options: Any) -> None:
    """Compare two tables: every row, cell and version.

    FILE is a worker's document with a tablestore sink, or the file of a replication job; without FILE, options name
    the tables, or a TablestoreTunnel object does. To resume a stopped run, start the same command again.

    Exits with 0 when the tables are equal, 1 when they differ. `ots-tunnel --help` lists the exit codes.
    """
    places = tables.places()
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
