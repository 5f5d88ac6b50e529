"""`ots-tunnel demo`: copy a changing table in one process, without an account and without Kubernetes."""

from __future__ import annotations

import sys

import click

from ots_tunnel.console.examples import examples
from ots_tunnel.errors import ConfigError


@click.command(epilog=examples("ots-tunnel demo", "ots-tunnel demo --rows 100000 --rate 1000 --seconds 60"))
@click.option("--rows", default=20_000, show_default=True, type=click.IntRange(1_000, 336_776), help="Rows to load.")
@click.option("--rate", default=200, show_default=True, type=click.IntRange(1, 2_000), help="Changes per second.")
@click.option("--seconds", default=20, show_default=True, type=click.IntRange(6, 600), help="Time to follow changes.")
def demo(rows: int, rate: int, seconds: int) -> None:
    """Copy a changing table in one process, within a minute.

    Starts an emulator, loads a table of flights, copies it with workers that join and leave while it changes, and
    compares both tables. Exits with 0 when they are equal, 1 when they differ.
    """
    try:
        from rich.console import Console

        from ots_tunnel.demo.local import DemoOptions, run_demo
    except ImportError as error:
        raise ConfigError(
            f"the demo needs the package {error.name!r}: install ots-tunnel with the extras cli, demo and emulator"
        ) from error
    sys.exit(run_demo(DemoOptions(rows, rate, seconds), Console()))
