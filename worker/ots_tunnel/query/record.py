"""The record of a query's progress: one ConfigMap that the driver writes. Pure.

    metadata.labels[PROGRESS_LABEL]   whose record it is: the tunnel's id
    data["label"]                     the same, as the driver wrote it; items with another label are ignored
    data["batchId"]                   number of the last batch; missing before the first one
    data["rowsPerSecond"]             of the last batch, a decimal number
    data["lagSeconds"]                age of the oldest change that waits; missing where it is not known
    data["channels"]                  channels that the query has open
    data["readUntil"]                 Unix seconds, by the service's clock, at which every stream channel of the tunnel
                                      had been read to its end and committed; missing where it is not known
    data["passedGaps"]                changes that may be missing, and without which drivers have gone on: a JSON array
                                      of [channel, from, to], in Unix seconds; missing without any
    data["error"]                     the error of the last driver in one line; missing while the query runs
    data["isFinal"]                   "true" with an error that no other attempt repairs
    data["updated"]                   time of this write by the driver's clock, ISO 8601; a driver that follows the
                                      tunnel writes at least every ALIVE_SECONDS

An error stays in the record until a driver has followed the tunnel again, so that it can be read between two attempts.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final

from ots_tunnel.errors import CodecError
from ots_tunnel.snapshot.record import PROGRESS_LABEL

#: Seconds after which a driver writes the same figures again, as a sign of life.
ALIVE_SECONDS: Final = 600

#: Most gaps of a record; the latest ones are kept. Each write of figures has them again, and so has every watcher.
MAX_PASSED_GAPS: Final = 100
#: Unix seconds that a date can have.
_DATES: Final = range(253_402_300_800)

_TRUE: Final = "true"


@dataclass(frozen=True, slots=True)
class PassedGap:
    """Changes of a channel between two times, Unix seconds, that may be missing, and behind which a driver went on."""

    channel_id: str
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class QueryProgress:
    """Progress of a query; None is unknown. `rows_per_second` and `lag_seconds` are rounded."""

    batch_id: int | None = None
    rows_per_second: int | None = None
    lag_seconds: int | None = None
    channels: int | None = None
    error: str = ""
    is_final: bool = False
    """Whether no other attempt repairs the error."""
    read_until: int | None = None
    """Unix seconds at which every stream channel had been read to its end."""
    passed_gaps: tuple[PassedGap, ...] = ()
    """Sorted by their ends."""


@dataclass(frozen=True, slots=True)
class QueryRecord:
    """A stored record; `updated` is the time of the driver's last write, Unix seconds, None before it."""

    label: str
    progress: QueryProgress = QueryProgress()
    updated: float | None = None


def read_query_record(config_map: Mapping[str, Any]) -> QueryRecord:
    """The stored record.

    Raises:
        CodecError: it is damaged; names the key.
    """
    label = (config_map["metadata"].get("labels") or {}).get(PROGRESS_LABEL, "")
    data: Mapping[str, str] = config_map.get("data") or {}
    if data.get("label") != label or "updated" not in data:
        return QueryRecord(label)
    try:
        updated = datetime.fromisoformat(data["updated"]).timestamp()
    except ValueError as error:
        raise CodecError(f"data.updated: a time was expected: {error}") from error
    progress = QueryProgress(
        batch_id=_number(data, "batchId"),
        rows_per_second=_number(data, "rowsPerSecond"),
        lag_seconds=_number(data, "lagSeconds"),
        channels=_number(data, "channels"),
        read_until=_number(data, "readUntil"),
        error=data.get("error", ""),
        is_final=data.get("isFinal") == _TRUE,
        passed_gaps=_gaps(data),
    )
    return QueryRecord(label, progress, updated)


def query_items(progress: QueryProgress, label: str, now: float) -> dict[str, str]:
    """The items of a record; `now` is Unix seconds."""
    items = {
        "batchId": progress.batch_id,
        "rowsPerSecond": progress.rows_per_second,
        "lagSeconds": progress.lag_seconds,
        "channels": progress.channels,
        "readUntil": progress.read_until,
        "passedGaps": _gaps_text(progress.passed_gaps),
        "error": progress.error or None,
        "isFinal": _TRUE if progress.is_final else None,
        "label": label,
        "updated": datetime.fromtimestamp(now, UTC).isoformat(timespec="milliseconds"),
    }
    return {key: str(value) for key, value in items.items() if value is not None}


def all_gaps(*several: Iterable[PassedGap]) -> tuple[PassedGap, ...]:
    """Each of the gaps once, as a record has them: sorted by their ends, the latest ones where they are too many."""
    found = sorted({gap for gaps in several for gap in gaps}, key=lambda gap: (gap.end, gap.start, gap.channel_id))
    return tuple(found[-MAX_PASSED_GAPS:])


def _gaps_text(gaps: Iterable[PassedGap]) -> str | None:
    found = [[gap.channel_id, gap.start, gap.end] for gap in gaps]
    return json.dumps(found, ensure_ascii=False, separators=(",", ":")) if found else None


def _gaps(data: Mapping[str, str]) -> tuple[PassedGap, ...]:
    text = data.get("passedGaps")
    if text is None:
        return ()
    try:
        found = tuple(PassedGap(channel, int(start), int(end)) for channel, start, end in json.loads(text))
    except (TypeError, ValueError, OverflowError) as error:
        raise CodecError(f"data.passedGaps: [channel, from, to] of each gap were expected: {error}") from error
    for gap in found:
        if (
            not isinstance(gap.channel_id, str)
            or gap.start > gap.end
            or not (gap.start in _DATES and gap.end in _DATES)
        ):
            raise CodecError(f"data.passedGaps: a channel and two times were expected, found {gap}")
    return found


def _number(data: Mapping[str, str], key: str) -> int | None:
    found = data.get(key)
    if found is None:
        return None
    if not found.isdecimal():
        raise CodecError(f"data.{key}: a number was expected, found {found!r}")
    return int(found)
