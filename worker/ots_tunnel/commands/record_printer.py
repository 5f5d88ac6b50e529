"""Prints records as they come: lines of text, lines of JSON, or one JSON document."""

from __future__ import annotations

import os
import sys
from types import TracebackType
from typing import Self

import click

from ots_tunnel.commands.record_lines import VALUE_CHARACTERS, json_line, text_line
from ots_tunnel.model import ChannelId, ChannelType
from ots_tunnel.protocol.record import Record


class RecordPrinter:
    """Prints records until there are enough of them; as a context it ends the document.

    Args:
        form: one of the forms of `-o`.
        most: number of records that are enough; None means no number is.
    """

    def __init__(self, form: str, most: int | None) -> None:
        self._form = form
        self._most = most
        self._shown = 0
        self._is_open = True
        # the escapes of another character set would be no JSON
        self._ascii_only = not str(sys.stdout.encoding or "").lower().startswith("utf")

    def __repr__(self) -> str:
        return f"RecordPrinter({self._form}, {self._shown} records)"

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, where: TracebackType | None
    ) -> None:
        # also after an error or a signal: what was printed is a document that can be read
        if self._form == "json" and self._is_open:
            click.echo("\n]" if self._shown else "[]")

    def take(self, channel_id: ChannelId, _: ChannelType, records: list[Record]) -> bool:
        """Print records; False once there are enough, or where their reader has gone."""
        for record in records:
            try:
                self._print(record, channel_id)
            except BrokenPipeError:  # the reader of the pipe has ended, such as `head`
                self._is_open = False
                os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
                return False
            self._shown += 1
            if self._most is not None and self._shown >= self._most:
                return False
        return True

    def _print(self, record: Record, channel_id: ChannelId) -> None:
        match self._form:
            case "json":
                click.echo(",\n" if self._shown else "[\n", nl=False)
                click.echo(self._json(record, channel_id), nl=False)
            case "jsonl":
                click.echo(self._json(record, channel_id))
            case form:
                click.echo(text_line(record, None if form == "wide" else VALUE_CHARACTERS))

    def _json(self, record: Record, channel_id: ChannelId) -> str:
        return json_line(record, channel_id, ascii_only=self._ascii_only)
