"""The options of every command that is a worker's process."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

_Function = TypeVar("_Function", bound=Callable[..., Any])


def worker_options(function: _Function) -> _Function:
    """Give a command the options `path`, `log_level` and `termination_log`."""
    for option in reversed(_OPTIONS):
        function = option(function)
    return function


_OPTIONS: tuple[Callable[[Any], Any], ...] = (
    click.option(
        "--config", "path", required=True, type=click.Path(path_type=Path), help="The worker's document (YAML)."
    ),
    click.option(
        "--log-level",
        default="INFO",
        show_default=True,
        type=click.Choice(["DEBUG", "INFO", "WARNING", "ERROR"], case_sensitive=False),
        help="Lowest level of log lines.",
    ),
    click.option(
        "--termination-log",
        default="/dev/termination-log",
        show_default=True,
        type=click.Path(path_type=Path),
        help="File for a one-line termination message; used only if it exists, as it does in a Kubernetes pod.",
    ),
)
