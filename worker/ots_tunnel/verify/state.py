"""Progress of a comparison: its slices and the results of the finished ones. Pure.

The bounds of the slices are part of the state, because the service cuts a growing table elsewhere tomorrow, and a
finished slice must stay the same key range.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from datetime import datetime

from pydantic import ValidationError

from ots_tunnel.client.table_calls import KeyRange
from ots_tunnel.config.messages.describing import describe
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
    """The slices of a comparison, those that are chosen, and the results of the finished ones.

    Args:
        task: the tables and how they are compared.
        started: when the first run began, with a time zone.
        bounds: bounds of the slices in key order, one more than slices.
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
        """Numbers of the chosen slices that are not finished, in key order."""
        return tuple(number for number in self.chosen if number not in self.done)

    def finish(self, number: int, result: Comparison) -> None:
        """Store the result of a slice; slices may finish in any order, the first differences are kept in key order."""
        self.done[number] = tuple(getattr(result, name) for name in COUNTS)
        self._keep((number, row) for row in result.first)

    def total(self) -> Comparison:
        """Sum of all finished slices."""
        sums = dict(zip(COUNTS, (sum(column) for column in zip(*self.done.values(), strict=True)), strict=False))
        return Comparison(**sums, first=[row for _, row in self._first], keep=self.task.show)

    def document(self) -> str:
        """The state as JSON text."""
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
        # The sort is stable: rows of one slice keep their order.
        self._first = sorted([*self._first, *rows], key=lambda item: item[0])[: self.task.show]

    @classmethod
    def read(cls, text: str, where: str) -> VerifyState:
        """Read a state from its JSON text.

        Raises:
            ConfigError: the text is not a state; names `where` it was found, the field and the problem.
        """
        try:
            document = StateDocument.model_validate_json(text)
            refuse_damage(document, where)
            state = cls(document.task, document.started, tuple(key_of(bound) for bound in document.bounds))
            chosen = set(state.chosen)
            state.done = {number: counts for number, counts in document.done.items() if number in chosen}
            state._keep((row.slice, row_of(row)) for row in document.first)
        except ValidationError as error:
            raise ConfigError(f"{where}: not the state of a comparison: {describe(error)}") from error
        except (CodecError, ValueError) as error:
            raise ConfigError(f"{where}: not the state of a comparison: {error}") from error
        return state


#: Fields that say nothing where one of them is not known.
_CREATED = ("source_created", "destination_created")


def refuse_other_task(found: VerifyTask, wanted: VerifyTask, where: str) -> None:
    """Refuse to resume another comparison, or one of tables that were replaced since.

    Raises:
        ConfigError: names every field that differs, with the values of the file and of the options.
    """
    clauses = [
        f"{_alias(name)}: found {getattr(found, name)}, wanted is {getattr(wanted, name)}"
        for name in VerifyTask.model_fields
        if getattr(found, name) != getattr(wanted, name)
        and not (name in _CREATED and None in (getattr(found, name), getattr(wanted, name)))
    ]
    if clauses:
        raise ConfigError(
            f"{where}: the state of another comparison: {'; '.join(clauses)}; give the same options, "
            "another --state, or --restart to start again"
        )


def default_name(source: TablePlace, destination: TablePlace) -> str:
    """Default name of the state file: the source's table and a digest of both places."""
    both = json.dumps([source.model_dump(), destination.model_dump()]).encode()
    return f"verify-{source.table}-{hashlib.sha256(both).hexdigest()[:8]}.json"


def _alias(name: str) -> str:
    return VerifyTask.model_fields[name].alias or name
