"""Parsing of CreateTable: keys, columns, partitions and encryption; pure (docs/data-plane.md 2.2, 2.4)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from ots_emulator.api.rows.change_check import check_name
from ots_emulator.refusal import parameter_invalid
from ots_emulator.tables.options import DefinedColumn, FixedOptions
from ots_tunnel.errors import CodecError
from ots_tunnel.model import KeyColumn, KeyType
from ots_tunnel.protocol import table_pb2 as pb
from ots_tunnel.protocol.plainbuffer.codec import decode_value

#: Limits of docs/data-plane.md 2.2.
_DEFINED_LIMIT: Final = 32
_PARTITION_LIMIT: Final = 10
_PARTITION_VALUE_BYTES: Final = 64
#: Values at which no table is split, because nothing can come before them, with their names.
_NO_POINTS: Final[Mapping[object, str]] = {
    "": "empty string",
    b"": "empty binary",
    **dict.fromkeys((-(1 << 63), (1 << 63) - 1), "INT64_MIN or INT64_MAX"),
}


def key_columns_of(meta: pb.TableMeta) -> list[KeyColumn]:
    """Read the key columns.

    Raises:
        Refusal: their number, a name, or a misplaced auto-increment column.
    """
    columns: list[KeyColumn] = []
    if not 1 <= len(meta.primary_key) <= 4:
        raise parameter_invalid("The number of primary key columns must be in range: [1, 4].")
    for index, column in enumerate(meta.primary_key):
        if index and column.HasField("option") and any(other.auto_increment for other in columns):
            raise parameter_invalid("AUTO_INCREMENT primary key count must <= 1.")
        if any(other.name == column.name for other in columns):
            raise parameter_invalid(f"Duplicated primary key name: '{column.name}'.")
        check_name(column.name.encode())
        auto_increment = column.HasField("option") and column.option == pb.AUTO_INCREMENT
        if auto_increment and index == 0:
            raise parameter_invalid(f"First primary key can't be auto increment, table: {meta.table_name}.")
        if auto_increment and column.type != pb.INTEGER:
            raise parameter_invalid("AUTO_INCREMENT primary key must be integer.")
        columns.append(KeyColumn(column.name, KeyType(column.type), auto_increment))
    return columns


def fixed_options_of(request: pb.CreateTableRequest, columns: Sequence[KeyColumn]) -> FixedOptions:
    """Read the options that cannot be changed later.

    Raises:
        Refusal: a contradiction, or a value that is not allowed.
    """
    defined = _defined_columns(request.table_meta, columns)
    if request.enable_local_txn and any(column.auto_increment for column in columns):
        raise parameter_invalid("Local transaction and auto increment primary key cannot be used together.")
    spec, encryption = request.sse_spec, None
    if spec.enable:
        encryption = (
            spec.key_type if spec.HasField("key_type") else None,
            spec.key_id if spec.HasField("key_id") else None,
            spec.role_arn if spec.HasField("role_arn") else None,
        )
        if spec.key_type == pb.SSE_BYOK and not (spec.key_id and spec.role_arn):
            raise parameter_invalid("key_id and role_arn are required when key_type is SSE_BYOK.")
    transactions = request.enable_local_txn or not request.HasField("enable_local_txn")
    return FixedOptions(defined, transactions, encryption, _cuts(request.partitions, columns[0]))


def check_units(given: pb.CapacityUnit) -> None:
    """Refuse a negative reserved throughput of a new table.

    Raises:
        Refusal: a value is negative.
    """
    lowest = min(given.read, given.write)
    if lowest < 0:
        raise parameter_invalid(f"Invalid Capacity Unit:{lowest}. Capacity Unit must be nonnegative.")


def _defined_columns(meta: pb.TableMeta, key: Sequence[KeyColumn]) -> tuple[DefinedColumn, ...]:
    if len(meta.defined_column) > _DEFINED_LIMIT:
        raise parameter_invalid(f"The number of defined columns must be in range: [0, {_DEFINED_LIMIT}].")
    seen = {column.name for column in key}
    for column in meta.defined_column:
        check_name(column.name.encode())
        if column.name in seen:
            raise parameter_invalid(f"Duplicated defined column name: '{column.name}'.")
        seen.add(column.name)
    return tuple(DefinedColumn(column.name, column.type) for column in meta.defined_column)


def _cuts(ranges: Sequence[pb.PartitionRange], column: KeyColumn) -> tuple[str, ...]:
    """Return the partition key values between the ranges of a table that is split in advance."""
    if len(ranges) > _PARTITION_LIMIT:
        raise parameter_invalid(f"The count of partitions cannot be greater than {_PARTITION_LIMIT}")
    begins = [_partition_value(part.begin, column) for part in ranges[1:]]
    ends = [_partition_value(part.end, column) for part in ranges[:-1]]
    if begins != ends or begins != sorted(set(begins)):
        raise parameter_invalid("The partition ranges must be continuous, in order and not overlap.")
    return tuple(part.begin.hex() for part in ranges[1:])


def _partition_value(encoded: bytes, column: KeyColumn) -> Any:
    try:
        value = decode_value(encoded)
    except CodecError as error:
        raise parameter_invalid(f"The value of partition range is malformed: {error}") from error
    kinds = {KeyType.INTEGER: int, KeyType.STRING: str, KeyType.BINARY: bytes}
    if not isinstance(value, kinds[column.type]) or isinstance(value, bool):
        raise parameter_invalid("The value type of partition does not match with primary key.")
    if value in _NO_POINTS:
        raise parameter_invalid(f"The value of partition range can not be {_NO_POINTS[value]}.")
    size = len(encoded) - 5 if column.type is not KeyType.INTEGER else 8
    if size > _PARTITION_VALUE_BYTES:
        raise parameter_invalid(
            f"The value of partition range exceeds the MaxLength:{_PARTITION_VALUE_BYTES} with CurrentLength:{size}."
        )
    return value.encode() if isinstance(value, str) else value
