"""`ots-tunnel replicate`: copy a table up to an end time, with the job file of the vendor's sample."""

from __future__ import annotations

import asyncio
import json
import sys
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

import click

from ots_tunnel.commands.signals import StopSignals
from ots_tunnel.console.examples import examples
from ots_tunnel.console.exit_codes import INCOMPLETE
from ots_tunnel.errors import ConfigError
from ots_tunnel.job_file import credentials_of, end_of, load_job, zone_of

if TYPE_CHECKING:
    from ots_tunnel.replicate.job import Copied

_FOLDER = click.Path(path_type=Path, file_okay=False)
_CREDENTIALS = "Folder with accessKeyId, accessKeySecret and optional securityToken; replaces keys in FILE."


@click.command(
    epilog=examples(
        "ots-tunnel replicate job.json --time-zone Asia/Shanghai",
        "ots-tunnel replicate job.json --reader-credentials keys/source --writer-credentials keys/copy",
    )
)
@click.argument("file", type=click.Path(path_type=Path))
@click.option("--time-zone", help="Time zone of endTime, such as Asia/Shanghai; default: that of this machine.")
@click.option("--reader-credentials", type=_FOLDER, help=_CREDENTIALS)
@click.option("--writer-credentials", type=_FOLDER, help=_CREDENTIALS)
@click.option("--merge", is_flag=True, help="Start even if rows of the destination are overwritten or missing.")
@click.option(
    "--state",
    type=click.Path(path_type=Path, dir_okay=False),
    help="File that keeps which table the tunnel's rows were written to, so that a later run notices another one; "
    "default: replicate-<table>-<digest>.json in the current folder.",
)
@click.option(
    "-o", "--output", type=click.Choice(["table", "json"]), default="table", show_default=True, help="Output format."
)
def replicate(
    file: Path,
    time_zone: str | None,
    reader_credentials: Path | None,
    writer_credentials: Path | None,
    merge: bool,
    state: Path | None,
    output: str,
) -> None:
    """Copy a table: its existing rows, then its changes up to endTime.

    FILE is the JSON file with the sections ots-reader and ots-writer. To resume a stopped run, start the same command
    again. Several runs of one job share the work.

    Exits with 0 when everything up to endTime is copied, 6 when its share is, and another client holds the rest, 2 when
    the job must not start. `ots-tunnel --help` lists the exit codes.
    """
    job = load_job(file)
    end = end_of(job.reader.end_time, zone_of(time_zone))
    keys = (
        credentials_of(job.reader, "ots-reader", reader_credentials),
        credentials_of(job.writer, "ots-writer", writer_credentials),
    )
    try:
        from ots_tunnel.logs import set_up_logs
        from ots_tunnel.replicate.job import ReplicationJob
        from ots_tunnel.replicate.preparation import StartOptions
        from ots_tunnel.replicate.state import default_name
    except ImportError as error:
        raise ConfigError(
            f"replicate needs the package {error.name!r}: install ots-tunnel with the extra cli"
        ) from error
    set_up_logs("WARNING")
    run = ReplicationJob(
        job,
        end,
        keys,
        start=StartOptions(merge, state or Path(default_name(job))),
        say=lambda text: click.echo(text, err=True),
        stream=sys.stderr,
        folders=(reader_credentials, writer_credentials),
    )
    signals = StopSignals()

    async def copy() -> Copied:
        task = asyncio.current_task()
        assert task is not None
        # The worker drains at the first signal and closes at the second; before it exists there is nothing to drain.
        signals.call(lambda _: run.interrupt() or task.cancel())
        return await run.run()

    try:
        copied = asyncio.run(copy())
    except asyncio.CancelledError:
        click.echo("stopped before anything was copied", err=True)
    else:
        ending = _ending(copied, stopped=signals.first is not None)
        if output == "json":
            click.echo(json.dumps(_document(copied, ending, end)))
        else:
            click.echo(f"{_TEXTS[ending]}: {copied.rows:,} rows in {copied.seconds:,.0f} s")
            if copied.complete:
                click.echo(f"compare both tables with: ots-tunnel verify {file}")
        if not copied.complete and signals.first is None:
            sys.exit(INCOMPLETE)
    signals.exit_if_stopped()


_TEXTS = {
    "complete": "complete",
    # that client may be one of a run that was killed
    "shareCopied": "this run's share is copied; another client holds the rest: without another run, run this again",
    "stopped": "stopped; the same command resumes",
}


def _ending(copied: Copied, *, stopped: bool) -> str:
    if copied.complete:
        return "complete"
    return "shareCopied" if copied.others and not stopped else "stopped"


def _document(copied: Copied, ending: str, end: datetime) -> dict[str, object]:
    return {
        "complete": copied.complete,
        "state": ending,
        "rows": copied.rows,
        "seconds": round(copied.seconds, 1),
        "endTime": end.strftime("%Y-%m-%dT%H:%M:%SZ"),
    }
