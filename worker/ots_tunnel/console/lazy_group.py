"""A group of commands that are imported only when they are called: help is fast, and a worker loads its own alone."""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from typing import Any

import click


class LazyGroup(click.Group):
    """A group of commands that are imported only when they are called.

    Args:
        commands_at: name -> module and function of each command, as `package.module:function`.
        summaries: name -> first line of the command's help, for the list of commands.
    """

    def __init__(self, *args: Any, commands_at: Mapping[str, str], summaries: Mapping[str, str], **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._commands_at = commands_at
        self._summaries = summaries

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Names in alphabetical order."""
        return sorted(self._commands_at)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import the command."""
        if cmd_name not in self._commands_at:
            return None
        module, _, attribute = self._commands_at[cmd_name].partition(":")
        command = getattr(importlib.import_module(module), attribute)
        assert isinstance(command, click.Command)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """List the commands without importing them."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, self._summaries.get(name, "")) for name in self.list_commands(ctx)])
