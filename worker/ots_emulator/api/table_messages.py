"""Messages that describe a table (docs/data-plane.md 2.4)."""

from __future__ import annotations

from ots_emulator.tables.table import Table
from ots_tunnel.protocol import table_pb2 as pb


def key_schema_message(table: Table) -> list[pb.PrimaryKeySchema]:
    """Describe the key columns."""
    return [
        pb.PrimaryKeySchema(
            name=column.name,
            type=column.type.name,
            option=pb.AUTO_INCREMENT if column.auto_increment else None,
        )
        for column in table.schema.columns
    ]


def meta_message(table: Table) -> pb.TableMeta:
    """Describe name, key and predefined columns."""
    return pb.TableMeta(
        table_name=table.name,
        primary_key=key_schema_message(table),
        defined_column=[
            pb.DefinedColumnSchema(name=column.name, type=column.type)  # type: ignore[arg-type]  # the enum as a number
            for column in table.fixed.defined
        ],
    )


def encryption_message(table: Table) -> pb.SSEDetails:
    """Describe the encryption."""
    encryption = table.fixed.encryption
    if encryption is None:
        return pb.SSEDetails(enable=False)
    key_type, key_id, role_arn = encryption
    return pb.SSEDetails(enable=True, key_type=key_type, key_id=key_id, role_arn=role_arn)  # type: ignore[arg-type]  # the enum as a number


def throughput_message(table: Table) -> pb.ReservedThroughputDetails:
    """Describe the reserved throughput."""
    options = table.options
    return pb.ReservedThroughputDetails(
        capacity_unit=pb.CapacityUnit(read=options.reserved_read, write=options.reserved_write),
        last_increase_time=options.increased_s or table.created_us // 1_000_000,
        last_decrease_time=options.decreased_s,
    )


def options_message(table: Table) -> pb.TableOptions:
    """Describe the options."""
    options = table.options
    return pb.TableOptions(
        time_to_live=options.time_to_live,
        max_versions=options.max_versions,
        deviation_cell_version_in_sec=options.max_deviation,
        allow_update=options.allow_update,
        update_full_row=options.update_full_row,
    )


def stream_message(table: Table) -> pb.StreamDetails:
    """Describe the stream; a table without one has it disabled."""
    log = table.log
    if log is None:
        return pb.StreamDetails(enable_stream=False)
    return pb.StreamDetails(
        enable_stream=True,
        stream_id=log.stream_id,
        expiration_time=log.retention_hours,
        last_enable_time=log.enabled_us,
        column_to_get=log.origin_columns,
    )
