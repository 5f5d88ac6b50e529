"""`ots-tunnel config check` and `config schema`: validate a worker's document, and let editors do so."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import click

from ots_tunnel.config import StreamDocument, WorkerConfig
from ots_tunnel.config.either import load_either
from ots_tunnel.config.messages.json_schema import document_schema
from ots_tunnel.console.examples import examples


@click.group(epilog=examples("ots-tunnel config check worker.yaml", "ots-tunnel config schema > worker.schema.json"))
def config() -> None:
    """Check a worker's document, or print its schema."""


@config.command(
    epilog=examples("ots-tunnel config check worker.yaml", "ots-tunnel config check worker.yaml --document-only")
)
@click.argument("path", metavar="FILE", type=click.Path(path_type=Path))
@click.option("--document-only", is_flag=True, help="Check the document alone, without key files, libraries and code.")
def check(path: Path, document_only: bool) -> None:
    """Check FILE as `run` reads it, or `stream run`; an error names the field, the value found and the values allowed.

    Also checks what they need beside the document: files of keys and secrets, the library of the sink, your
    factory. Makes no call.
    """
    document = load_either(path)
    if not document_only:
        asyncio.run(_check_surroundings(document))
    click.echo(f"{path}: ok")


@config.command(epilog=examples("ots-tunnel config schema > worker.schema.json"))
def schema() -> None:
    """Print the JSON schema of a worker's document, by which editors complete and check it.

    Let the document begin with this comment, and an editor with the YAML language server finds the schema:

    # yaml-language-server: $schema=worker.schema.json
    """
    click.echo(json.dumps(document_schema(), indent=2))


async def _check_surroundings(document: WorkerConfig | StreamDocument) -> None:
    """Read the key files and open the sink, which imports its library or the user's factory."""
    from ots_tunnel.credentials import FileCredentials
    from ots_tunnel.sinks.choice import open_sink

    FileCredentials(document.source.credentials.directory).checked("source.credentials.directory")
    sink = open_sink(document)
    await sink.close()
