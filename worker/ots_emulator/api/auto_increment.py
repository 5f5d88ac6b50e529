"""The placeholder of an auto-increment key column and the value it gets (docs/data-plane.md 2.5).

Values grow strictly within a partition key and are not contiguous: they are microseconds of the service's clock, each
at least one more than the last of the table, so they also grow over a restart.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ots_emulator.refusal import parameter_invalid
from ots_emulator.tables.keys import key_columns
from ots_emulator.tables.table import Table
from ots_tunnel.model import Action, Marker
from ots_tunnel.protocol import table_pb2 as pb
from ots_tunnel.protocol.plainbuffer.building import join_row
from ots_tunnel.protocol.plainbuffer.codec import encode_row
from ots_tunnel.protocol.plainbuffer.spans import scan_row

if TYPE_CHECKING:
    from ots_emulator.api.row_write import RowWrite


def fill_placeholder(write: RowWrite, table: Table, now_us: int) -> None:
    """Give a put or update with a placeholder its value; check what may be asked of explicit values.

    Raises:
        Refusal: a condition that contradicts it.
    """
    condition = write.request.condition
    columns = key_columns(write.span.key)
    place = table.schema.auto_increment
    assert place is not None
    if len(columns) <= place or columns[place][1] is not Marker.AUTO_INCREMENT or write.action is Action.DELETE:
        if condition.row_existence == pb.EXPECT_NOT_EXIST:
            raise parameter_invalid(
                "Invalid expect: EXPECT_NOT_EXIST when modify a specific row for table with pk auto increment."
            )
        return
    if condition.row_existence != pb.IGNORE or condition.column_condition:
        raise parameter_invalid("Can't set condition when modify row with pk auto increment.")
    filled = (*columns[:place], (columns[place][0], table.next_auto_increment(now_us)), *columns[place + 1 :])
    key = scan_row(encode_row(filled))
    write.row = join_row(key.key, key.key_checksums, ((cell.raw, cell.checksum) for cell in write.span.cells))
    write.span = scan_row(write.row)
