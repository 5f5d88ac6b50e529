"""The two tables that `verify` compares: those of a file, of an object, or of options."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from ots_tunnel.commands.side_options import ObjectOptions, SideOptions, object_options, profile_option, side_options
from ots_tunnel.verify.places import Places, place_of_connection, places_of_file

#: Options of one side.
_SIDE = ("endpoint", "instance", "credentials", "profile")
#: Options that name tables, which a FILE does as well.
_NAMING = (*_SIDE, "table", *(f"to_{name}" for name in (*_SIDE, "table")), "from_object")


@dataclass(frozen=True, slots=True)
class ComparedTables:
    """What the options say about both tables.

    Args:
        folders: of the keys of a job file without keys: reader's and writer's.
        given: options by their names in the code; None where one is not given.
    """

    file: Path | None
    folders: tuple[Path | None, Path | None]
    given: Mapping[str, Any]

    def places(self) -> Places:
        """Source and destination.

        Raises:
            click.UsageError: options are missing, or contradict each other. ConfigError: file, object or options are
                wrong.
        """
        if self.file is not None:
            if given := [name for name in _NAMING if self.given[name] is not None]:
                raise click.UsageError(
                    f"FILE names both tables: {', '.join(map(_flag, given))} cannot be given with it"
                )
            return places_of_file(self.file, *self.folders)
        if any(self.folders):
            raise click.UsageError("--reader-credentials and --writer-credentials are for a FILE")
        return self._places_of_options()

    def _places_of_options(self) -> Places:
        named = ObjectOptions(self.given["from_object"], self.given["context"])
        missing = [name for name in ("table", "to_table") if self.given[name] is None]
        if missing and not named.is_given:
            raise click.UsageError(f"missing FILE, --from-object, or {', '.join(map(_flag, missing))}")
        source = self._side("").connection(named.source_origins())
        destination = self._side("to-").connection_like(source, named.destination_origins())
        table, to_table = self.given["table"], self.given["to_table"]
        return (
            place_of_connection(source, named.table if table is None else table),
            place_of_connection(destination, named.destination.table if to_table is None else to_table),
        )

    def _side(self, prefix: str) -> SideOptions:
        endpoint, instance, credentials, profile = (self.given[prefix.replace("-", "_") + name] for name in _SIDE)
        return SideOptions(endpoint, instance, credentials, profile, prefix)


def table_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the argument and the options that name both tables; the command gets them as `tables`."""

    @click.argument("file", required=False, type=click.Path(path_type=Path))
    @side_options()
    @click.option("--table", help="Source table.")
    @_destination_options
    @object_options
    @_folder_options
    @functools.wraps(command)
    def run(file: Path | None, reader_credentials: Path | None, writer_credentials: Path | None, **options: Any) -> Any:
        given = {name: options.pop(name) for name in (*_NAMING, "context")}
        tables = ComparedTables(file, (reader_credentials, writer_credentials), given)
        return command(tables=tables, **options)

    return run


def _destination_options(command: Callable[..., Any]) -> Callable[..., Any]:
    for option in (
        profile_option("--to-profile", "Destination's profile; default: that of the source."),
        click.option(
            "--to-credentials",
            type=click.Path(path_type=Path),
            help="Folder of the destination's keys; default: that of the source.",
        ),
        click.option("--to-table", help="Destination table."),
        click.option("--to-instance", help="Destination's instance name; default: that of the source."),
        click.option("--to-endpoint", help="Destination's endpoint; default: that of the source."),
    ):
        command = option(command)
    return command


def _folder_options(command: Callable[..., Any]) -> Callable[..., Any]:
    for side, section in (("writer", "ots-writer"), ("reader", "ots-reader")):
        text = f"Folder of the {section}'s keys, if FILE is a job file without keys."
        command = click.option(f"--{side}-credentials", type=click.Path(path_type=Path), help=text)(command)
    return command


def _flag(name: str) -> str:
    return "--" + name.replace("_", "-")
