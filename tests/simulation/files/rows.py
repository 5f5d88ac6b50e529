"""What a published file holds, in each form."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from tests.support.ledger import Change
from tests.support.row_changes import NUMBER

_COMPRESSIONS = {"jsonl": None, "gz": "gzip", "zst": "zstd"}


@dataclass(frozen=True, slots=True)
class Row:
    """A record of a file; `time_us` is that of its commit, None for a row that existed already."""

    channel: str
    time_us: int | None
    change: Change


def rows_of(path: Path) -> tuple[Row, ...]:
    """The records of a file.

    Raises:
        ValueError, OSError: it is not whole.
    """
    suffix = path.name.rpartition(".")[2]
    if suffix == "parquet":
        table = pq.read_table(path, use_threads=False)
        return tuple(map(_of_parquet, table.to_pylist()))
    with pa.input_stream(str(path), compression=_COMPRESSIONS[suffix]) as stream:
        text = stream.read().decode()
    if text and not text.endswith("\n"):
        raise ValueError("its last line has no end")
    return tuple(_of_line(json.loads(line)) for line in text.splitlines())


def _of_line(line: dict[str, Any]) -> Row:
    numbers = [cell["value"] for cell in line["columns"] if cell["name"] == NUMBER]
    sequence = line["sequence"]
    change = (str(line["key"]["pk"]), str(line["action"]), max(numbers, default=0))
    return Row(line["channel"], sequence[1] if sequence else None, change)


def _of_parquet(line: dict[str, Any]) -> Row:
    numbers = [cell["value"]["integer"] for cell in line["cells"] if cell["name"] == NUMBER]
    if line.get(NUMBER) is not None:
        numbers.append(line[NUMBER])
    sequence = line["sequence"]
    change = (str(line["key"]["pk"]), str(line["action"]), max(numbers, default=0))
    return Row(line["channel"], sequence["timestamp_us"] if sequence else None, change)
