"""`ots-tunnel config check`: is this document right?"""

from __future__ import annotations

from pathlib import Path

import click

from ots_tunnel.config import load_config


@click.group()
def config() -> None:
    """Check a worker's document."""


@config.command()
@click.argument("path", metavar="FILE", type=click.Path(path_type=Path))
def check(path: Path) -> None:
    """Read FILE as `run` would; wrong fields are named with what was found and what is allowed."""
    load_config(path)
    click.echo(f"{path}: ok")
