"""`ots-tunnel config check`: is this document right?"""

from __future__ import annotations

import asyncio
from pathlib import Path

import click

from ots_tunnel.config import WorkerConfig, load_config


@click.group()
def config() -> None:
    """Check a worker's document."""


@config.command()
@click.argument("path", metavar="FILE", type=click.Path(path_type=Path))
@click.option(
    "--document-only", is_flag=True, help="Leave out what is beside the document: files of keys, libraries, your code."
)
def check(path: Path, document_only: bool) -> None:
    """Read FILE as `run` would; wrong fields are named with what was found and what is allowed.

    What `run` needs beside the document is looked for, too: files of keys and secrets, the library of the sink, your
    factory. No call is made.
    """
    document = load_config(path)
    if not document_only:
        asyncio.run(_look_around(document))
    click.echo(f"{path}: ok")


async def _look_around(document: WorkerConfig) -> None:
    from ots_tunnel.credentials import FileCredentials
    from ots_tunnel.sinks.choice import open_sink

    FileCredentials(document.source.credentials.directory).checked("source.credentials.directory")
    sink = open_sink(document)
    await sink.close()
