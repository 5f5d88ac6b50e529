"""Table calls: create, describe, update, list, delete (docs/data-plane.md 2.4)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from ots_emulator.api.call import Call
from ots_emulator.api.table_create import check_units, fixed_options_of, key_columns_of
from ots_emulator.api.table_messages import (
    encryption_message,
    meta_message,
    options_message,
    stream_message,
    throughput_message,
)
from ots_emulator.api.table_update import merged_options, merged_throughput, stream_hours
from ots_emulator.ledger import ERRORS, GO, JAVA, PYTHON, documented, guessed, tested
from ots_emulator.refusal import check_table_name, parameter_invalid, unavailable
from ots_emulator.tables.keys import KeySchema
from ots_emulator.tables.options import Partitioning, TableOptions
from ots_emulator.tables.table import Table
from ots_tunnel.protocol import table_pb2 as pb
from ots_tunnel.protocol.plainbuffer.codec import encode_primary_key


def create_table(call: Call, request: pb.CreateTableRequest) -> bytes:
    """Create a table."""
    meta = request.table_meta
    check_table_name(meta.table_name)
    if request.index_metas:
        raise parameter_invalid(unavailable("CreateTable with index_metas"))
    given = request.table_options
    if not given.HasField("time_to_live"):
        raise parameter_invalid("Time-to-live is missing while creating table.")
    if not given.HasField("max_versions"):
        raise parameter_invalid("MaxVersions is missing while creating table.")
    check_units(request.reserved_throughput.capacity_unit)
    settings = call.settings
    columns = key_columns_of(meta)
    options = merged_throughput(
        merged_options(TableOptions(), given, settings.least_time_to_live),
        request.reserved_throughput.capacity_unit,
        call.now_us,
        changed_us=0,
        interval=0,
    )
    table = Table(
        meta.table_name,
        KeySchema(columns),
        options,
        now_us=call.now_us,
        fixed=fixed_options_of(request, columns),
        partitioning=Partitioning(
            call.instance.partition_aims.get(meta.table_name, settings.partitions), settings.partition_rows
        ),
        listener=call.instance.journal,
        on_children=call.instance.follow_children,
    )
    hours = stream_hours(request.stream_spec) if request.HasField("stream_spec") else None
    call.instance.add_table(table)
    if hours is not None:
        table.enable_stream(hours, call.now_us, request.stream_spec.columns_to_get)
    return b""


def update_table(call: Call, request: pb.UpdateTableRequest) -> bytes:
    """Change options, throughput or stream of a table; absent fields stay unchanged."""
    table = call.instance.table(request.table_name)
    has_options = request.HasField("table_options")
    if not (has_options or request.HasField("stream_spec") or request.HasField("reserved_throughput")):
        raise parameter_invalid("No parameter is specified while updating table.")
    if has_options and not request.table_options.ListFields():
        raise parameter_invalid("No parameter is specified in table options.")
    if request.table_options.HasField("update_full_row"):
        raise parameter_invalid("The table options of UpdateTable must not contain updateFullRow.")
    options = merged_options(table.options, request.table_options, call.settings.least_time_to_live)
    if request.HasField("reserved_throughput"):
        changes = (options.increased_s or 0, options.decreased_s or 0)
        options = merged_throughput(
            options,
            request.reserved_throughput.capacity_unit,
            call.now_us,
            changed_us=max(table.created_us, *(change * 1_000_000 for change in changes)),
            interval=call.settings.throughput_interval,
        )
    if request.HasField("stream_spec"):
        _change_stream(call, table, request.stream_spec)
    table.change_options(options, call.now_us)
    return pb.UpdateTableResponse(
        reserved_throughput_details=throughput_message(table),
        table_options=options_message(table),
        stream_details=stream_message(table),
    ).SerializeToString()


def _change_stream(call: Call, table: Table, spec: pb.StreamSpecification) -> None:
    """Switch the stream on or off, or choose other origin columns for one that is on.

    Raises:
        Refusal: it is on or off already, or a value is out of its range.
    """
    hours, columns, log = stream_hours(spec), spec.columns_to_get, table.log
    if hours is None and log is not None:
        call.instance.disable_stream(table)
    elif hours is not None and log is None:
        table.enable_stream(hours, call.now_us, columns)
    elif log is not None and columns and hours == log.retention_hours:
        log.origin_columns = tuple(columns)
    else:
        raise parameter_invalid(f"Stream is already {'enabled' if log is not None else 'disabled'}.")


def describe_table(call: Call, request: pb.DescribeTableRequest) -> bytes:
    """Describe a table; the answer has stream details also for a table without a stream (docs/data-plane.md 2.4)."""
    table = call.instance.table(request.table_name)
    return pb.DescribeTableResponse(
        table_meta=meta_message(table),
        reserved_throughput_details=throughput_message(table),
        table_options=options_message(table),
        table_status=pb.ACTIVE,
        stream_details=stream_message(table),
        # what follows the partition key is left out, as of split points: SDK 4.3.1 for Java, which the vendor's Stream
        # Client has, knows no INF_MIN there
        shard_splits=[
            encode_primary_key(table.schema.primary_key(start)[:1]) for start in table.partition_starts()[1:]
        ],
        sse_details=encryption_message(table),
        creation_time=table.created_us,
    ).SerializeToString()


def list_table(call: Call, request: pb.ListTableRequest) -> bytes:
    """List the tables of the instance."""
    return pb.ListTableResponse(table_names=sorted(call.instance.tables)).SerializeToString()


def delete_table(call: Call, request: pb.DeleteTableRequest) -> bytes:
    """Delete a table with its rows and tunnels."""
    call.instance.delete_table(request.table_name)
    return b""


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

LEDGER: Final = (
    documented("CreateTable", "time to live and versions are required, in the service's words", ERRORS),
    tested(
        "CreateTable",
        "1 to 4 key columns, their names once, split points within the key's values",
        JAVA(
            "RestrictedItemTest.testCase16",
            "SplitPointTest.testPartitionIntegerPrimaryKey",
            "SplitPointTest.testPartitionStringPrimaryKey",
            "SplitPointTest.testPartitionBinaryPrimaryKey",
        ),
        PYTHON("table_operation_test.test_duplicate_PK_name_in_table_meta"),
    ),
    guessed(
        "CreateTable",
        "`AUTO_INCREMENT primary key count must <= 1.`",
        "a test of the .NET SDK knows the words, but passes without a refusal as well",
    ),
    documented("CreateTable, UpdateTable", "a time to live is -1 or at least a day (`least_time_to_live`)"),
    guessed(
        "CreateTable, UpdateTable",
        "the words for one that is positive and shorter than a day",
        "the limit is documented, not the refusal",
    ),
    documented(
        "CreateTable, UpdateTable", "the words for numbers of versions and throughput that are out of range", ERRORS
    ),
    documented("CreateTable", "64 tables for each instance, ten table calls a second (off at first)"),
    guessed("CreateTable", "a table is ready at once (`table_ready_delay`)", "the service needs up to a minute"),
    tested(
        "CreateTable, UpdateTable",
        "origin columns of a stream, which DescribeTable names in their order",
        GO("TableStoreSuite.TestCreateTableWithOriginColumn", "TableStoreSuite.TestUpdateAndDescribeTable"),
    ),
    guessed(
        "UpdateTable", "a stream that is on takes other origin columns", "a test of the vendor's does so, but is off"
    ),
    guessed("UpdateTable", "switching a stream on or off twice is refused", "no source says what happens"),
    tested(
        "UpdateTable", "`updateFullRow` is refused with that word", GO("TableStoreSuite.TestUpdateAndDescribeTable")
    ),
    documented("UpdateTable", "options that are not named stay"),
    guessed("UpdateTable", "the rest of that sentence", "the test compares a part of it"),
    tested("DescribeTable", "stream details also for a table without a stream", GO("TableStoreSuite.TestListStream")),
    documented("DescribeTable", "all rows of one partition key are in one partition, so it may hold one of them alone"),
    documented("ListTable", "all tables of the instance"),
    guessed("ListTable", "names in order", "no source says in which"),
    documented("DeleteTable", "the table goes with its rows"),
    guessed("DeleteTable", "its tunnels go at the same time", "no source says what becomes of them"),
)
