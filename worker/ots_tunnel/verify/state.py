"""What a comparison has done so far; pure.

The slices are part of it: the service cuts a growing table elsewhere tomorrow, and a finished slice has to stay one.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from datetime import datetime

from pydantic import ValidationError

from ots_tunnel.client.table_calls import KeyRange
from ots_tunnel.config import describe
from ots_tunnel.errors import CodecError, ConfigError
from ots_tunnel.model import PrimaryKey
from ots_tunnel.verify.comparison import COUNTS, Comparison, DifferingRow
from ots_tunnel.verify.slices import choose_slices
from ots_tunnel.verify.state_document import (
    FORMAT,
    StateDocument,
    TablePlace,
    VerifyTask,
    key_of,
    key_text,
    refuse_damage,
    row_document,
    row_of,
)


class VerifyState:
    """Which slices there are, which of them are compared, and what came of those that are done.

    Args:
        task: what is compared.
        started: when the first run began, with a time zone.
        bounds: ends of the slices in key order.
    """

    def __init__(self, task: VerifyTask, started: datetime, bounds: tuple[PrimaryKey, ...]) -> None:
        self.task = task
        self.started = started
        self.total_slices = len(bounds) - 1
        self.chosen = (
            tuple(range(self.total_slices))
            if task.sample_percent is None
            else choose_slices(self.total_slices, task.sample_percent, task.seed)
        )
        self.done: dict[int, tuple[int, ...]] = {}
        self._bounds = bounds
        self._bound_texts = tuple(key_text(bound) for bound in bounds)
        self._first: list[tuple[int, DifferingRow]] = []

    def slice(self, number: int) -> KeyRange:
        """A slice by its number."""
        return KeyRange(self._bounds[number], self._bounds[number + 1])

    @property
    def waiting(self) -> tuple[int, ...]:
        """Slices that are not compared yet, in key order."""
        return tuple(number for number in self.chosen if number not in self.done)

    def finish(self, number: int, result: Comparison) -> None:
        """Take over what a slice gave; slices may end in any order, the first differences are those in key order."""
        self.done[number] = tuple(getattr(result, name) for name in COUNTS)
        self._keep((number, row) for row in result.first)

    def total(self) -> Comparison:
        """What all finished slices gave."""
        sums = dict(zip(COUNTS, (sum(column) for column in zip(*self.done.values(), strict=True)), strict=False))
        return Comparison(**sums, first=[row for _, row in self._first], keep=self.task.show)

    def document(self) -> str:
        """The state as text."""
        document = StateDocument(
            format=FORMAT,
            task=self.task,
            started=self.started,
            bounds=self._bound_texts,
            done=self.done,
            first=tuple(row_document(number, row) for number, row in self._first),
        )
        return document.model_dump_json(by_alias=True)

    def _keep(self, rows: Iterable[tuple[int, DifferingRow]]) -> None:
        # Stable: rows of one slice stay in their order.
        self._first = sorted([*self._first, *rows], key=lambda item: item[0])[: self.task.show]

    @classmethod
    def read(cls, text: str, where: str) -> VerifyState:
        """The state in a document.

        Raises:
            ConfigError: it is none; names `where` it was found, the field and what is wrong.
        """
        try:
            document = StateDocument.model_validate_json(text)
            refuse_damage(document, where)
            state = cls(document.task, document.started, tuple(key_of(bound) for bound in document.bounds))
            chosen = set(state.chosen)
            state.done = {number: counts for number, counts in document.done.items() if number in chosen}
            state._keep((row.slice, row_of(row)) for row in document.first)
        except ValidationError as error:
            raise ConfigError(f"{where}: no state of a comparison: {describe(error)}") from error
        except (CodecError, ValueError) as error:
            raise ConfigError(f"{where}: no state of a comparison: {error}") from error
        return state


def refuse_other_task(found: VerifyTask, wanted: VerifyTask, where: str) -> None:
    """A state only goes on with the comparison that it is of.

    Raises:
        ConfigError: names every field that differs, with what the file says and what is asked for.
    """
    clauses = [
        f"{_alias(name)}: found {getattr(found, name)}, asked for is {getattr(wanted, name)}"
        for name in VerifyTask.model_fields
        if getattr(found, name) != getattr(wanted, name)
    ]
    if clauses:
        raise ConfigError(
            f"{where}: the state of another comparison: {'; '.join(clauses)}; allowed are the same options, "
            "another --state, or --restart, which begins anew"
        )


def default_name(source: TablePlace, destination: TablePlace) -> str:
    """Name of the state file where none is given: the source's table and a digest of both places."""
    both = json.dumps([source.model_dump(), destination.model_dump()]).encode()
    return f"verify-{source.table}-{hashlib.sha256(both).hexdigest()[:8]}.json"


def _alias(name: str) -> str:
    return VerifyTask.model_fields[name].alias or name
