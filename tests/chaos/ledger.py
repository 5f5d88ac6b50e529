"""The lines in which the recording emulator writes what it executed.

Times are seconds of the machine's monotonic clock. The emulator does not know when a call was sent: it counts as sent
when it was executed.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import Any, Final

from tests.support.ledger import Entry, Opened, Read, Reported, Stored, Written

#: Instance that workers copy into; its rows are in the ledger.
COPY: Final = "copy"


def parse(lines: Iterable[str]) -> Iterator[Entry]:
    """The entries of a ledger; of writes, only those to the instance of the copy."""
    for line in lines:
        entry = _entry(json.loads(line))
        if entry is not None:
            yield entry


def _entry(line: dict[str, Any]) -> Entry | None:
    operation, line["sent"] = line.pop("op"), line["t"]
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
