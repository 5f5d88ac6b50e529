"""`ots-tunnel demo`: a copy of a changing table, in one process, without an account and without Kubernetes."""

from __future__ import annotations

import sys

import click

from ots_tunnel.errors import ConfigError


@click.command()
@click.option("--rows", default=20_000, show_default=True, type=click.IntRange(1_000, 336_776), help="Rows to load.")
@click.option("--rate", default=200, show_default=True, type=click.IntRange(1, 2_000), help="Changes per second.")
@click.option(
    "--seconds", default=20, show_default=True, type=click.IntRange(6, 600), help="How long to follow changes."
)
def demo(rows: int, rate: int, seconds: int) -> None:
    """Show the main job in one process, within a minute.

    Starts an emulator, loads a table of flights, copies it with workers that come and go while it changes, and
    compares both tables. Ends with 0 when they are equal, 1 when not.
    """
    try:
        from rich.console import Console

        from ots_tunnel.demo.local import DemoOptions, run_demo
    except ImportError as error:
        raise ConfigError(
            f"the demo needs the package {error.name!r}: install ots-tunnel with the extras cli, demo and emulator"
        ) from error
    sys.exit(run_demo(DemoOptions(rows, rate, seconds), Console()))
