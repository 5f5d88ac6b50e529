"""The command `ots-tunnel`: a table of subcommands, each imported only when it is called.

Exit codes are in `console.exit_codes`.
"""

from __future__ import annotations

import io
import os
import signal
import sys
import traceback
from collections.abc import Mapping
from typing import Any

import click

from ots_tunnel.console.examples import examples
from ots_tunnel.console.exit_codes import exit_code, exit_code_table, signal_exit_code
from ots_tunnel.console.lazy_group import LazyGroup
from ots_tunnel.errors import TunnelError
from ots_tunnel.version import __version__

#: Sub-command -> module and function; a new command is one more line.
COMMANDS: Mapping[str, str] = {
    "run": "ots_tunnel.commands.run:run",
    "config": "ots_tunnel.commands.config:config",
    "tunnel": "ots_tunnel.commands.tunnel:tunnel",
    "channels": "ots_tunnel.commands.channels:channels",
    "replicate": "ots_tunnel.commands.replicate:replicate",
    "tail": "ots_tunnel.commands.tail:tail",
    "demo": "ots_tunnel.commands.demo:demo",
    "stream": "ots_tunnel.commands.stream:stream",
    "verify": "ots_tunnel.commands.verify:verify",
}

#: First lines of the commands' help, so that `--help` does not import every command.
SUMMARIES: Mapping[str, str] = {
    "run": "Consume a tunnel into a sink; the command of a worker's pod.",
    "config": "Check a worker's document, or print its schema.",
    "tunnel": "Create, list, describe and delete tunnels.",
    "channels": "Show a tunnel's channels.",
    "replicate": "Copy a table: its existing rows, then its changes up to an end time.",
    "tail": "Print changes of a table, or the next records of a tunnel, without consuming them.",
    "stream": "Follow a table by shards and leases, without a tunnel.",
    "demo": "Copy a changing table in one process, within a minute.",
    "verify": "Compare two tables: every row, cell and version.",
}


class Program(LazyGroup):
    """The whole program: what its help says besides, and how it ends without readers."""

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command; a closed stdout exits with 141 (SIGPIPE), as in a shell."""
        try:
            return super().invoke(ctx)
        except BrokenPipeError:
            _drop_output()
            sys.exit(signal_exit_code(signal.SIGPIPE))

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """List the commands, and the exit codes of all of them."""
        super().format_commands(ctx, formatter)
        with formatter.section("Exit codes"):
            formatter.write_dl(list(exit_code_table()))


@click.group(
    cls=Program,
    commands_at=COMMANDS,
    summaries=SUMMARIES,
    epilog=examples(
        "ots-tunnel demo                                     # everything in one process, within a minute",
        "ots-tunnel channels --from-object shop/orders-copy",
        "ots-tunnel COMMAND --help                           # options and examples of a command",
    ),
)
@click.version_option(__version__, prog_name="ots-tunnel")
def cli() -> None:
    """Consume Tablestore tunnels."""


def main() -> None:
    """Run the command line; errors of the package become one line and an exit code."""
    if isinstance(sys.stdout, io.TextIOWrapper):  # rows may hold what the terminal's character set has not
        sys.stdout.reconfigure(errors="backslashreplace")
    try:
        cli.main(standalone_mode=False)
    except click.ClickException as error:
        error.show()
        sys.exit(error.exit_code)
    except click.Abort:
        sys.exit(130)
    except TunnelError as error:
        click.echo(f"error: {error}", err=True)
        sys.exit(exit_code(error))
    except Exception as error:  # Python would exit with 1, which means that tables differ
        if isinstance(error, OSError) and _is_of_output(error):
            _drop_output()
            click.echo(f"error: standard output: {error.strerror}", err=True)
        else:
            traceback.print_exc()
        sys.exit(exit_code(error))


def _is_of_output(error: OSError) -> bool:
    """Whether standard output takes nothing more, such as of a full disk: commands print by click alone."""
    *_, (frame, _line) = traceback.walk_tb(error.__traceback__)
    return frame.f_code is click.echo.__code__ and not frame.f_locals.get("err")


def _drop_output() -> None:
    """Let the final flush not fail."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
