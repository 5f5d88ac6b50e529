"""The calls that the emulator executed, as the recording emulator writes them and the judge reads them.

Times are seconds of the machine's monotonic clock. A row change is (key, action, number); a removal has number 0.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Final

#: Instance that workers copy into; its rows are in the ledger.
COPY: Final = "copy"

Change = tuple[str, str, int]


@dataclass(frozen=True, slots=True)
class Read:
    """A page was read. `position` is that of its first record in the log, None for base data."""

    t: float
    who: str
    client: str
    channel: str
    owner: str | None
    token: str
    following: str
    position: int | None
    rows: tuple[Change, ...]


@dataclass(frozen=True, slots=True)
class Opened:
    """A client read the stored checkpoint."""

    t: float
    who: str
    client: str
    channel: str
    token: str


@dataclass(frozen=True, slots=True)
class Stored:
    """A checkpoint became durable."""

    t: float
    who: str
    client: str
    channel: str
    token: str


@dataclass(frozen=True, slots=True)
class Reported:
    """A heartbeat: (channel, status) as the client sees its channels."""

    t: float
    who: str
    client: str
    reports: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class Written:
    """Row changes took effect in the copy."""

    t: float
    who: str
    rows: tuple[Change, ...]


Entry = Read | Opened | Stored | Reported | Written


def parse(lines: Iterable[str]) -> Iterator[Entry]:
    """The entries of a ledger; of writes, only those to the instance of the copy."""
    for line in lines:
        entry = _entry(json.loads(line))
        if entry is not None:
            yield entry


def _entry(line: dict[str, Any]) -> Entry | None:
    operation = line.pop("op")
    for name in ("rows", "reports"):
        if name in line:
            line[name] = tuple(map(tuple, line[name]))
    match operation:
        case "ReadRecords":
            return Read(**line)
        case "GetCheckpoint":
            return Opened(**line)
        case "Checkpoint":
            return Stored(**line)
        case "Heartbeat":
            return Reported(**line)
        case _:
            return Written(**line) if line.pop("instance") == COPY else None
