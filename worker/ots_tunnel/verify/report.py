"""The result of a comparison as lines of text and as one JSON object. Pure."""

from __future__ import annotations

import base64
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from ots_tunnel.model import KeyValue, Marker
from ots_tunnel.verify.comparison import CellDifference, Comparison, DifferingRow, ShownValue
from ots_tunnel.verify.state import VerifyState


@dataclass(frozen=True, slots=True)
class Outcome:
    """A complete comparison.

    Args:
        seconds: duration of this run.
        notes: notes about the options of the two tables.
    """

    state: VerifyState
    result: Comparison
    seconds: float
    notes: Sequence[str] = ()


def report_lines(outcome: Outcome) -> Iterator[str]:
    """The result in two to five lines, then the first differences."""
    result, state = outcome.result, outcome.state
    yield f"{_verdict(outcome)}: {state.task.source} | {state.task.destination}"
    if not result.equal:
        yield kinds_line(result)
    yield (
        f"{result.rows:,} rows, {result.cells:,} cells, {result.versions:,} versions compared in "
        f"{outcome.seconds:.1f} s; {result.missing:,} missing, {result.extra:,} extra, {result.different:,} different"
    )
    if result.near_expiry:
        yield f"{result.near_expiry:,} differing versions left out: they are near the end of their time to live"
    if result.settled:
        yield f"{result.settled:,} rows differed at first and were equal {state.task.recheck_seconds:g} s later"
    for row in result.first:
        yield from _row_lines(row)
    if (hidden := result.differences - len(result.first)) > 0:
        yield f"and {hidden:,} more"


def _verdict(outcome: Outcome) -> str:
    state = outcome.state
    verdict = "equal" if outcome.result.equal else "different"
    if state.task.sample_percent is None:
        return verdict
    return (
        f"{verdict} in a sample of {len(state.chosen):,} of {state.total_slices:,} slices "
        f"({state.task.sample_percent:g} %, seed {state.task.seed})"
    )


def kinds_line(result: Comparison) -> str:
    """What kind of difference it is, in one line; the tables differ."""
    natures = (
        (result.in_values, "in values"),
        (result.in_columns, "in columns"),
        (result.in_versions, "in versions alone"),
    )
    inside = ", ".join(f"{count:,} {words}" for count, words in natures if count)
    parts = (
        f"lacks {_rows(result.missing)}" if result.missing else "",
        f"has {_rows(result.extra)} that the source lacks" if result.extra else "",
        f"differs in {_rows(result.different)} ({inside})" if result.different else "",
    )
    return f"the destination {', and '.join(filter(None, parts))}"


def _rows(count: int) -> str:
    return "1 row" if count == 1 else f"{count:,} rows"


def _row_lines(row: DifferingRow) -> Iterator[str]:
    yield str(row)
    for cell in row.cells:
        yield f"    {cell}"
    if row.more:
        yield f"    and {row.more:,} more versions"


def report_document(outcome: Outcome) -> dict[str, Any]:
    """The result as one JSON object."""
    result, state = outcome.result, outcome.state
    task = state.task
    sample = {"percent": task.sample_percent, "seed": task.seed} if task.sample_percent is not None else None
    return {
        "equal": result.equal,
        "source": task.source.model_dump(by_alias=True),
        "destination": task.destination.model_dump(by_alias=True),
        "rows": result.rows,
        "cells": result.cells,
        "versions": result.versions,
        "missing": result.missing,
        "extra": result.extra,
        "different": result.different,
        "differentIn": {
            "values": result.in_values,
            "columns": result.in_columns,
            "versions": result.in_versions,
        },
        "nearExpiry": result.near_expiry,
        "settled": result.settled,
        "slices": {"compared": len(state.done), "total": state.total_slices},
        "sample": sample,
        "started": state.started.isoformat(),
        "seconds": round(outcome.seconds, 3),
        "notes": list(outcome.notes),
        "first": [_row_document(row) for row in result.first],
    }


def _row_document(row: DifferingRow) -> dict[str, Any]:
    return {
        "kind": row.kind.value,
        "key": {name: _key_value(value) for name, value in row.primary_key},
        "cells": [_cell_document(cell) for cell in row.cells],
        "moreCells": row.more,
    }


def _cell_document(cell: CellDifference) -> dict[str, Any]:
    return {
        "column": cell.column,
        "version": cell.version,
        "source": _shown(cell.first),
        "destination": _shown(cell.second),
    }


def _shown(value: ShownValue | None) -> dict[str, str] | None:
    return None if value is None else {"type": value.type, "value": value.text}


def _key_value(value: KeyValue) -> object:
    match value:
        case bytes():
            return {"base64": base64.b64encode(value).decode()}
        case Marker():
            return {"marker": value.name}
        case _:
            return value
