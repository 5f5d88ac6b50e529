"""`ots-tunnel replicate`: copy a table up to a moment, by the job file of the vendor's sample."""

from __future__ import annotations

import asyncio
import json
import signal
import sys
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

import click

from ots_tunnel.errors import ConfigError
from ots_tunnel.job_file import credentials_of, end_of, load_job, zone_of

if TYPE_CHECKING:
    from ots_tunnel.replicate.job import Copied

#: Exit code when it was stopped by a signal: 128 and the signal's number.
SIGNAL_BASE = 128

_FOLDER = click.Path(path_type=Path, file_okay=False)
_CREDENTIALS = "Folder with accessKeyId, accessKeySecret and optional securityToken, instead of keys in the file."


@click.command()
@click.argument("file", type=click.Path(path_type=Path))
@click.option("--time-zone", help="Zone of endTime, such as Asia/Shanghai; default: this machine's.")
@click.option("--reader-credentials", type=_FOLDER, help=_CREDENTIALS)
@click.option("--writer-credentials", type=_FOLDER, help=_CREDENTIALS)
@click.option("--merge", is_flag=True, help="Go on though rows of the destination are overwritten, or are missing.")
@click.option("-o", "--output", type=click.Choice(["table", "json"]), default="table", help="Kind of output.")
def replicate(
    file: Path,
    time_zone: str | None,
    reader_credentials: Path | None,
    writer_credentials: Path | None,
    merge: bool,
    output: str,
) -> None:
    """Copy a table: its existing rows, then its changes up to endTime.

    FILE is the JSON file with the sections ots-reader and ots-writer. A run that is stopped goes on where it was when
    the same command is given again; several runs at the same time share the work.

    Ends with 0 when everything up to endTime is copied, 2 when the job must not begin. `ots-tunnel --help` lists the
    exit codes.
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
    except ImportError as error:
        raise ConfigError(
            f"replicate needs the package {error.name!r}: install ots-tunnel with the extra cli"
        ) from error
    set_up_logs("WARNING")
    run = ReplicationJob(
        job,
        end,
        keys,
        merge=merge,
        say=lambda text: click.echo(text, err=True),
        stream=sys.stderr,
        folders=(reader_credentials, writer_credentials),
    )
    stopped_by: list[int] = []

    async def unless_told() -> None:
        loop = asyncio.get_running_loop()
        task = asyncio.current_task()

        def stop(number: int) -> None:
            stopped_by.append(number)
            if not run.interrupt() and task is not None:
                task.cancel()

        for number in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(number, stop, number)
        copied = await run.run()
        if output == "json":
            figures = {"complete": copied.complete, "rows": copied.rows, "seconds": round(copied.seconds, 1)}
            click.echo(json.dumps({**figures, "endTime": _iso(end)}))
            return
        click.echo(f"{_state(copied, stopped=bool(stopped_by))}: {copied.rows:,} rows in {copied.seconds:,.0f} s")
        if copied.complete:
            click.echo(f"compare both tables with: ots-tunnel verify {file}")

    try:
        asyncio.run(unless_told())
    except asyncio.CancelledError:
        click.echo("stopped before anything was copied", err=True)
    if stopped_by:
        sys.exit(SIGNAL_BASE + stopped_by[0])


def _state(copied: Copied, *, stopped: bool) -> str:
    if copied.complete:
        return "complete"
    if copied.others and not stopped:
        return "this run's share is copied; another run of the job goes on with the rest"
    return "stopped; the same command goes on"


def _iso(moment: datetime) -> str:
    return moment.strftime("%Y-%m-%dT%H:%M:%SZ")
