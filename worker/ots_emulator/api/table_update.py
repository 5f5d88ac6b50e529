"""Changes of a table's options, throughput and stream; pure (docs/data-plane.md 2.4).

Absent fields stay unchanged.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from ots_emulator.api.rows.change_check import check_name
from ots_emulator.refusal import Refusal, parameter_invalid
from ots_emulator.tables.options import TableOptions
from ots_tunnel.protocol import table_pb2 as pb

_DEVIATION_LIMIT: Final = ((1 << 63) - 1) // 1_000_000
_RETENTION_HOURS: Final = range(1, 169)


def merged_options(options: TableOptions, given: pb.TableOptions, least_time_to_live: int) -> TableOptions:
    """Return the options with the given ones applied; the least time to live that is allowed is in seconds.

    Raises:
        Refusal: a value is out of its range.
    """
    if given.HasField("time_to_live"):
        if given.time_to_live == 0 or given.time_to_live < -1:
            raise parameter_invalid("TimeToLive cannot be 0 or less than -1.")
        if given.time_to_live != -1 and given.time_to_live < least_time_to_live:
            raise parameter_invalid(
                f"TimeToLive must be -1 or greater equal than: {least_time_to_live}, found: {given.time_to_live}."
            )
        options = replace(options, time_to_live=given.time_to_live)
    if given.HasField("max_versions"):
        if given.max_versions <= 0:
            raise parameter_invalid("The maximum versions cannot be less than or equal to 0.")
        options = replace(options, max_versions=given.max_versions)
    if given.HasField("deviation_cell_version_in_sec"):
        if not 0 <= given.deviation_cell_version_in_sec <= _DEVIATION_LIMIT:
            raise parameter_invalid("The maximum deviation must be in range [0, INT64_MAX/1000000].")
        options = replace(options, max_deviation=given.deviation_cell_version_in_sec)
    if given.HasField("allow_update"):
        options = replace(options, allow_update=given.allow_update)
    if given.HasField("update_full_row"):
        options = replace(options, update_full_row=given.update_full_row)
    return options


def merged_throughput(
    options: TableOptions, given: pb.CapacityUnit, now_us: int, *, changed_us: int, interval: float
) -> TableOptions:
    """Return the options with the given reserved throughput applied.

    Args:
        options: the options so far.
        given: read and write units, either may be absent.
        now_us: the service's time.
        changed_us: when it was last changed.
        interval: least seconds between two changes.

    Raises:
        Refusal: a value is negative, or the change comes too soon.
    """
    if given.read < 0 or given.write < 0:
        raise parameter_invalid(
            f"Invalid Capacity Unit for UpdateTable: Either read({given.read}) or write({given.write}) "
            "should be non-negative."
        )
    read = given.read if given.HasField("read") else options.reserved_read
    write = given.write if given.HasField("write") else options.reserved_write
    # It may have been changed at a time ahead of a clock that was set back.
    if 0 <= now_us - changed_us < interval * 1_000_000:
        raise Refusal("OTSTooFrequentReservedThroughputAdjustment", "Capacity unit adjustment is too frequent.")
    now_s = now_us // 1_000_000
    if read > options.reserved_read or write > options.reserved_write:
        options = replace(options, increased_s=now_s)
    if read < options.reserved_read or write < options.reserved_write:
        options = replace(options, decreased_s=now_s)
    return replace(options, reserved_read=read, reserved_write=write)


def stream_hours(spec: pb.StreamSpecification) -> int | None:
    """Return the retention of a stream to enable, None for a stream to disable.

    Raises:
        Refusal: a contradiction, a retention out of its range, or an origin column that no table has.
    """
    for name in spec.columns_to_get:
        check_name(name.encode())
    if not spec.enable_stream:
        if spec.HasField("expiration_time"):
            raise parameter_invalid("Expiration time cannot be set when the stream is disabled.")
        return None
    hours = spec.expiration_time if spec.HasField("expiration_time") else 24
    if hours not in _RETENTION_HOURS:
        raise parameter_invalid(f"Expiration time must be in range: [1, 168], found: {hours}.")
    return hours
