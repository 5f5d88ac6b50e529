"""Settings of an emulator; defaults are the real service's values where they are known."""

from __future__ import annotations

import enum
import json
from collections.abc import Mapping
from dataclasses import dataclass, fields
from types import MappingProxyType
from typing import Any, Final

from ots_emulator.refusal import parameter_invalid


class AfterRetention(enum.StrEnum):
    """What a stream channel does whose next records are beyond the retention; each may be what the service does."""

    EXPIRE = "Expire"
    """The tunnel expires: every call that needs the log is refused."""
    OLDEST = "Oldest"
    """A read goes on from the oldest record left, without an error."""
    LATEST = "Latest"
    """A read goes on from the log's end, without an error; records that are left are passed over as well."""
    LATEST_AT_OPEN = "LatestAtOpen"
    """A read is refused as trimmed; GetCheckpoint answers with a cursor at the log's end, without an error."""


@dataclass(frozen=True, slots=True)
class Settings:
    """Behaviour of one emulator; durations are seconds.

    Raises:
        ValueError: a value is out of its range (`RANGES`); the text names the setting, what was found and the range.
    """

    partitions: int = 1
    """Partitions of a new table; it splits itself between partition keys, at quantiles."""

    partition_rows: int = 64
    """Rows the largest partition must hold before a table with a stream splits itself towards its aim."""

    base_split_bytes: int = 32 << 20
    """Size of one base channel; a table has at least one per partition, if it has enough partition keys."""

    init_delay: float = 0.05
    """How long a new tunnel stays in its first stage, without channels (docs/protocol.md 4.1)."""

    page_rows: int = 1000
    """Most records in one answer to ReadRecords (docs/protocol.md 4.7)."""

    page_bytes: int = 1 << 20
    """An answer to ReadRecords ends with the record that reaches this size."""

    page_cache_bytes: int = 64 << 20
    """Most memory for finished pages of ReadRecords; a cached page costs a third of a new one."""

    range_rows: int = 5000
    """Most rows in one answer to GetRange (docs/data-plane.md 2.2)."""

    range_bytes: int = 4 << 20
    """An answer to GetRange ends with the row that reaches this size."""

    batch_get_bytes: int = 32 << 20
    """Rows of an answer to BatchGetRow that follow the one which reaches this size are refused with OTSServerBusy."""

    client_timeout: float = 300.0
    """Timeout of a client without one (docs/protocol.md 4.4)."""

    assign_interval: float = 0.0
    """Least time between two assignments of channels to clients, which come with heartbeats; 0 is at each of them."""

    idle_advance: bool = True
    """Whether a read that reaches the log's end moves the consume point to the time of the read."""

    after_retention: AfterRetention = AfterRetention.EXPIRE
    """What a channel does whose next records are beyond the retention: Expire, Oldest, Latest or LatestAtOpen."""

    one_time_per_commit: bool = False
    """Whether the records of an atomic batch or a transaction have one commit time, and row indexes from 0 on."""

    tunnel_retention_hours: int = 168
    """Retention of a stream that CreateTunnel enables (docs/protocol.md 4.1)."""

    date_skew: float | None = 900.0
    """Largest difference between x-ots-date and the clock; None switches the check off."""

    strict_owner: bool = False
    """Whether data calls of a client that does not own the channel are answered with 410 (docs/protocol.md 4.6)."""

    table_quota: int = 64
    """Tables per instance (docs/data-plane.md 2.2)."""

    fsync: bool = False
    """With a data directory: whether an answer waits for the disk, so that it survives a power loss."""

    body_limit: int = 5 << 20
    """Largest request body (docs/data-plane.md 2.2)."""

    transaction_lifetime: float = 60.0
    """How long a local transaction stays open before it is aborted (vendor's documentation)."""

    table_operations_per_second: int | None = None
    """Table calls per second and instance; the service allows 10, None is no limit (docs/data-plane.md 2.2)."""

    least_time_to_live: int = 86_400
    """Least time to live that a table may be given, beside -1; tests may need shorter ones (docs/data-plane.md 2.4)."""

    table_ready_delay: float = 0.0
    """How long a new table refuses row calls; the service needs up to a minute (docs/data-plane.md 2.4)."""

    refuse_repeated_rows: bool = False
    """Whether a batch with two rows of one key is refused, as older servers do (docs/data-plane.md 2.5)."""

    throughput_interval: float = 0.0
    """Least time between two changes of a table's reserved throughput; the service has 120 (docs/data-plane.md 2.4)."""

    admin_names: str | None = None
    """Host names, with commas between, under which the admin port is used beside localhost and addresses."""

    def __post_init__(self) -> None:
        for name, (least, most) in RANGES.items():
            value = getattr(self, name)
            # Also a number that is not one fails here.
            if value is not None and not least <= value <= most:
                raise ValueError(f"{name}: found {value}, allowed is a number from {least} to {most}")


#: 30 years.
_LONGEST: Final = 946_080_000.0
_MOST: Final = 1 << 40
#: Least and greatest value of each number. A partition of one row cannot be split.
RANGES: Final[Mapping[str, tuple[float, float]]] = MappingProxyType(
    {
        "partitions": (1, 1 << 16),
        "partition_rows": (2, _MOST),
        "base_split_bytes": (1, _MOST),
        "init_delay": (0, _LONGEST),
        "page_rows": (1, _MOST),
        "page_bytes": (1, _MOST),
        "page_cache_bytes": (0, _MOST),
        "range_rows": (1, _MOST),
        "range_bytes": (1, _MOST),
        "batch_get_bytes": (1, _MOST),
        "client_timeout": (0, _LONGEST),
        "assign_interval": (0, _LONGEST),
        "tunnel_retention_hours": (1, 168),
        "date_skew": (0, _LONGEST),
        "table_quota": (0, _MOST),
        "body_limit": (1, 1 << 30),
        "transaction_lifetime": (0, _LONGEST),
        "table_operations_per_second": (1, _MOST),
        "least_time_to_live": (1, 86_400),
        "table_ready_delay": (0, _LONGEST),
        "throughput_interval": (0, _LONGEST),
    }
)


def changed_settings(settings: Settings, changes: Mapping[str, Any]) -> Settings:
    """Return settings with some values changed.

    Raises:
        Refusal: names a setting that does not exist, or whose value has another type or is out of its range.
    """
    from pydantic import TypeAdapter, ValidationError  # takes time and memory, and few emulators are changed

    names = [field.name for field in fields(Settings)]
    unknown = sorted(set(changes) - set(names))
    if unknown:
        raise parameter_invalid(f"{', '.join(unknown)}: unknown, the settings are {', '.join(names)}")
    values = {name: getattr(settings, name) for name in names} | dict(changes)
    try:
        return TypeAdapter(Settings).validate_json(json.dumps(values), strict=True)
    except ValidationError as error:
        first = error.errors()[0]
        if not first["loc"]:
            raise parameter_invalid(str(first["ctx"]["error"])) from error
        raise parameter_invalid(f"{'.'.join(map(str, first['loc']))}: {first['msg']}") from error
