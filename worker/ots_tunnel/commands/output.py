"""What commands print: tables for people, JSON for programs, ids alone for other commands."""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import click

from ots_tunnel.console.table_text import table_lines

Command = TypeVar("Command", bound=Callable[..., Any])
Row = Mapping[str, Any]

#: Columns that hold ids, which a narrow table shortens.
IDS = frozenset({"id", "channel", "client", "shard", "owner", "stealer"})

_HELP = (
    "table fits the terminal, wide shows everything in full, json is one document, jsonl has one line for each item.  "
    "[default: table]"
)


@dataclass(frozen=True, slots=True)
class Output:
    """How a command prints.

    Args:
        form: one of `FORMS`.
        only_ids: print the ids alone.
    """

    form: str = "table"
    only_ids: bool = False

    @property
    def is_json(self) -> bool:
        """Whether programs read it."""
        return self.form in ("json", "jsonl")

    def rows(self, rows: Sequence[Row], key: str) -> None:
        """Print a list; `key` is the column of the ids that `-q` prints."""
        if self.only_ids:
            _print_ids(rows, key)
        elif self.form == "json":
            click.echo(json.dumps(list(rows), indent=2))
        elif self.form == "jsonl":
            for row in rows:
                click.echo(json.dumps(row))
        else:
            self._table(rows)

    def item(self, row: Row, key: str, **lists: Sequence[Row]) -> None:
        """Print one thing, with lists that belong to it: in JSON as further fields, for people as tables below."""
        if self.only_ids:
            _print_ids([row], key)
        elif self.is_json:
            click.echo(json.dumps({**row, **lists}, indent=2 if self.form == "json" else None))
        else:
            self._table([row])
            for below in lists.values():
                click.echo()
                self._table(below)

    def _table(self, rows: Sequence[Row]) -> None:
        if not rows:
            click.echo("none")
            return
        # what is not read on a terminal is read by a program, which wants all of it
        fits = self.form == "table" and sys.stdout.isatty()
        for line in table_lines(rows, ids=IDS, width=shutil.get_terminal_size().columns if fits else None):
            click.echo(line)


def output_options(*, ids: bool) -> Callable[[Command], Command]:
    """Add `-o`, and `-q` where there are `ids` to print; the command gets an `Output` as `output`."""

    def add(command: Command) -> Command:
        if ids:
            command = click.option("-q", "--quiet", "only_ids", is_flag=True, help="Print only ids.")(command)
        forms = click.Choice(["table", "wide", "json", "jsonl"])
        return click.option("-o", "--output", "form", type=forms, help=_HELP)(command)

    return add


def output_of(form: str | None, *, only_ids: bool = False) -> Output:
    """The output that the options ask for.

    Raises:
        click.UsageError: they contradict each other.
    """
    if form is not None and only_ids:
        raise click.UsageError("-q and -o exclude each other")
    return Output(form or "table", only_ids)


def _print_ids(rows: Sequence[Row], key: str) -> None:
    for row in rows:
        click.echo(row[key])
