"""Table calls: create, describe, update, list, delete (tablestore-api 2.4)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from ots_emulator.call import Call
from ots_emulator.keys import KeyColumn, KeySchema
from ots_emulator.refusal import check_table_name, parameter_invalid
from ots_emulator.store import DefinedColumn, Table, TableOptions, TableTraits
from ots_tunnel.errors import CodecError
from ots_tunnel.model import KeyType
from ots_tunnel.protocol import table_pb2 as pb
from ots_tunnel.protocol.plainbuffer import decode_value

_DEVIATION_LIMIT: Final = ((1 << 63) - 1) // 1_000_000
_DEFINED_LIMIT: Final = 32
_PARTITION_LIMIT: Final = 10
_PARTITION_VALUE_BYTES: Final = 64
_RETENTION_HOURS: Final = range(1, 169)


def create_table(call: Call, request: pb.CreateTableRequest) -> bytes:
    """Create a table."""
    meta = request.table_meta
    check_table_name(meta.table_name)
    if request.index_metas:
        raise parameter_invalid("index_metas of CreateTable: secondary indexes are not available in this instance.")
    if len(meta.defined_column) > _DEFINED_LIMIT:
        raise parameter_invalid(f"The number of defined columns must be in range: [0, {_DEFINED_LIMIT}].")
    given = request.table_options
    if not given.HasField("time_to_live"):
        raise parameter_invalid("Time-to-live is missing while creating table.")
    if not given.HasField("max_versions"):
        raise parameter_invalid("MaxVersions is missing while creating table.")
    settings = call.settings
    columns = _key_columns(meta)
    table = Table(
        meta.table_name,
        KeySchema(columns),
        merged_options(TableOptions(), given),
        now_us=call.now_us,
        defined=tuple(DefinedColumn(column.name, column.type) for column in meta.defined_column),
        partition_aim=call.instance.partition_aims.get(meta.table_name, settings.partitions),
        partition_rows=settings.partition_rows,
        traits=_traits(request, columns),
    )
    hours = _stream_hours(request.stream_spec) if request.HasField("stream_spec") else None
    call.instance.add_table(table)
    if hours is not None:
        table.enable_stream(hours, call.now_us)
    return b""


def _traits(request: pb.CreateTableRequest, columns: list[KeyColumn]) -> TableTraits:
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
    return TableTraits(transactions, encryption, _cuts(request.partitions, columns[0]))


def _cuts(ranges: Sequence[pb.PartitionRange], column: KeyColumn) -> tuple[str, ...]:
    """Return the partition key values between the ranges a table is split into in advance."""
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
    if not isinstance(value, kinds[column.type]) or isinstance(value, bool) or value in ("", b""):
        raise parameter_invalid(
            f"The value of partition range must be a non-empty {column.type.name} of column '{column.name}'."
        )
    size = len(encoded) - 5 if column.type is not KeyType.INTEGER else 8
    if size > _PARTITION_VALUE_BYTES:
        raise parameter_invalid(
            f"The value of partition range exceeds the MaxLength:{_PARTITION_VALUE_BYTES} with CurrentLength:{size}."
        )
    return value.encode() if isinstance(value, str) else value


def _key_columns(meta: pb.TableMeta) -> list[KeyColumn]:
    columns: list[KeyColumn] = []
    if not 1 <= len(meta.primary_key) <= 4:
        raise parameter_invalid("The number of primary key columns must be in range: [1, 4].")
    for index, column in enumerate(meta.primary_key):
        if index and column.HasField("option") and any(other.auto_increment for other in columns):
            raise parameter_invalid("At most one primary key column can be auto increment.")
        if any(other.name == column.name for other in columns):
            raise parameter_invalid(f"Duplicated primary key name: '{column.name}'.")
        if not 1 <= len(column.name.encode()) <= 255:
            raise parameter_invalid(f"Invalid column name: '{column.name}'.")
        auto_increment = column.HasField("option") and column.option == pb.AUTO_INCREMENT
        if auto_increment and index == 0:
            raise parameter_invalid(f"First primary key can't be auto increment, table: {meta.table_name}.")
        if auto_increment and column.type != pb.INTEGER:
            raise parameter_invalid("AUTO_INCREMENT primary key must be integer.")
        columns.append(KeyColumn(column.name, KeyType(column.type), auto_increment))
    return columns


def merged_options(options: TableOptions, given: pb.TableOptions) -> TableOptions:
    """Return the options with the given ones put over them.

    Raises:
        Refusal: a value is out of its range.
    """
    if given.HasField("time_to_live"):
        if given.time_to_live == 0 or given.time_to_live < -1:
            raise parameter_invalid("TimeToLive cannot be 0 or less than -1.")
        options = replace(options, time_to_live=given.time_to_live)
    if given.HasField("max_versions"):
        if given.max_versions <= 0:
            raise parameter_invalid("MaxVersions must be greater than 0.")
        options = replace(options, max_versions=given.max_versions)
    if given.HasField("deviation_cell_version_in_sec"):
        if not 0 <= given.deviation_cell_version_in_sec <= _DEVIATION_LIMIT:
            raise parameter_invalid("The maximum deviation must be in range [0, INT64_MAX/1000000].")
        options = replace(options, max_deviation=given.deviation_cell_version_in_sec)
    if given.HasField("allow_update"):
        options = replace(options, allow_update=given.allow_update)
    return options


def _stream_hours(spec: pb.StreamSpecification) -> int | None:
    """Return the retention of a stream to switch on, None for one to switch off."""
    if spec.columns_to_get:
        names = ", ".join(spec.columns_to_get)
        raise parameter_invalid(f"columns_to_get of StreamSpecification is not supported, found: {names}.")
    if not spec.enable_stream:
        if spec.HasField("expiration_time"):
            raise parameter_invalid("Expiration time cannot be set when the stream is disabled.")
        return None
    hours = spec.expiration_time if spec.HasField("expiration_time") else 24
    if hours not in _RETENTION_HOURS:
        raise parameter_invalid(f"Expiration time must be in range: [1, 168], found: {hours}.")
    return hours


def update_table(call: Call, request: pb.UpdateTableRequest) -> bytes:
    """Change options, throughput or stream of a table; what is absent stays as it is."""
    table = call.instance.table(request.table_name)
    has_options = request.HasField("table_options")
    if not (has_options or request.HasField("stream_spec") or request.HasField("reserved_throughput")):
        raise parameter_invalid("No parameter is specified while updating table.")
    if has_options and not request.table_options.ListFields():
        raise parameter_invalid("No parameter is specified in table options.")
    options = merged_options(table.options, request.table_options)
    if request.HasField("stream_spec"):
        hours = _stream_hours(request.stream_spec)
        if (hours is not None) == (table.log is not None):
            raise parameter_invalid(f"Stream is already {'enabled' if table.log is not None else 'disabled'}.")
        if hours is None:
            call.instance.disable_stream(table)
        else:
            table.enable_stream(hours, call.now_us)
    table.change_options(options)
    return pb.UpdateTableResponse(
        reserved_throughput_details=_throughput(table),
        table_options=_options(table),
        stream_details=_stream(table),
    ).SerializeToString()


def describe_table(call: Call, request: pb.DescribeTableRequest) -> bytes:
    """Describe a table; the stream's details are there also when it has none (tablestore-api 2.4)."""
    table = call.instance.table(request.table_name)
    return pb.DescribeTableResponse(
        table_meta=pb.TableMeta(
            table_name=table.name,
            primary_key=key_schema(table),
            defined_column=[
                pb.DefinedColumnSchema(name=column.name, type=column.type)  # type: ignore[arg-type]
                for column in table.defined
            ],
        ),
        reserved_throughput_details=_throughput(table),
        table_options=_options(table),
        table_status=pb.ACTIVE,
        stream_details=_stream(table),
        shard_splits=[table.schema.encode(start) for start in table.partition_starts()[1:]],
        sse_details=_encryption(table),
        creation_time=table.created_us,
    ).SerializeToString()


def _encryption(table: Table) -> pb.SSEDetails:
    encryption = table.traits.encryption
    if encryption is None:
        return pb.SSEDetails(enable=False)
    key_type, key_id, role_arn = encryption
    return pb.SSEDetails(enable=True, key_type=key_type, key_id=key_id, role_arn=role_arn)  # type: ignore[arg-type]


def list_table(call: Call, request: pb.ListTableRequest) -> bytes:
    """List the tables of the instance."""
    return pb.ListTableResponse(table_names=sorted(call.instance.tables)).SerializeToString()


def delete_table(call: Call, request: pb.DeleteTableRequest) -> bytes:
    """Delete a table with its rows and tunnels."""
    call.instance.delete_table(request.table_name)
    return b""


def key_schema(table: Table) -> list[pb.PrimaryKeySchema]:
    """Return the key columns of a table as a message."""
    return [
        pb.PrimaryKeySchema(
            name=column.name,
            type=column.type.name,
            option=pb.AUTO_INCREMENT if column.auto_increment else None,
        )
        for column in table.schema.columns
    ]


def _throughput(table: Table) -> pb.ReservedThroughputDetails:
    return pb.ReservedThroughputDetails(
        capacity_unit=pb.CapacityUnit(read=0, write=0), last_increase_time=table.created_us // 1_000_000
    )


def _options(table: Table) -> pb.TableOptions:
    options = table.options
    return pb.TableOptions(
        time_to_live=options.time_to_live,
        max_versions=options.max_versions,
        deviation_cell_version_in_sec=options.max_deviation,
        allow_update=options.allow_update,
    )


def _stream(table: Table) -> pb.StreamDetails:
    log = table.log
    if log is None:
        return pb.StreamDetails(enable_stream=False)
    return pb.StreamDetails(
        enable_stream=True,
        stream_id=log.stream_id,
        expiration_time=log.retention_hours,
        last_enable_time=log.enabled_us,
    )


def _counted(handler: Callable[[Call, Any], bytes]) -> Callable[[Call, Any], bytes]:
    def handle(call: Call, request: Any) -> bytes:
        call.instance.count_table_operation(call.now)
        return handler(call, request)

    return handle


HANDLERS: Final[Mapping[str, Callable[[Call, Any], bytes]]] = {
    "CreateTable": _counted(create_table),
    "UpdateTable": _counted(update_table),
    "DescribeTable": _counted(describe_table),
    "ListTable": _counted(list_table),
    "DeleteTable": _counted(delete_table),
}
