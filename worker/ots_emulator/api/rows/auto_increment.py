"""The placeholder of an auto-increment key column and its value (docs/data-plane.md 2.5).

Values grow strictly within a partition key and are not contiguous: each is the service's time in microseconds, in whole
milliseconds, but at least one more than the last of the table, and than any that a client has chosen. So they never
name a row that is there, and grow over a restart.
"""

from __future__ import annotations

from ots_emulator.refusal import parameter_invalid
from ots_emulator.tables.sent_keys import key_columns
from ots_emulator.tables.table import Table
from ots_tunnel.model import Action, Marker
from ots_tunnel.protocol import table_pb2 as pb
from ots_tunnel.protocol.plainbuffer.building import join_row
from ots_tunnel.protocol.plainbuffer.codec import encode_row
from ots_tunnel.protocol.plainbuffer.spans import RowSpan, scan_row


def fill_placeholder(
    span: RowSpan, action: Action, condition: pb.Condition, table: Table, place: int, now_us: int
) -> bytes | None:
    """Return the row with the next value in place of its placeholder, None for a row with an explicit value.

    Args:
        span: the row.
        action: what is done with it.
        condition: what the row must meet.
        table: gives the value.
        place: position of the auto-increment column in the key.
        now_us: the service's time.

    Raises:
        Refusal: a row without a value cannot be deleted, or the condition contradicts the placeholder or the value.
    """
    columns = key_columns(span.key)
    if len(columns) <= place or columns[place][1] is not Marker.AUTO_INCREMENT:
        if condition.row_existence == pb.EXPECT_NOT_EXIST:
            raise parameter_invalid(
                "Invalid expect: EXPECT_NOT_EXIST when modify a specific row for table with pk auto increment."
            )
        return None
    if action is Action.DELETE:
        raise parameter_invalid("Invalid row to delete which with pk auto increment.")
    if condition.row_existence != pb.IGNORE:
        expected = pb.RowExistenceExpectation.Name(condition.row_existence)
        raise parameter_invalid(f"Invalid expect:{expected} when modify row with pk auto increment.")
    if condition.column_condition:
        raise parameter_invalid("Can't set condition when modify row with pk auto increment.")
    filled = (*columns[:place], (columns[place][0], table.next_auto_increment(now_us)), *columns[place + 1 :])
    key = scan_row(encode_row(filled))
    return join_row(key.key, key.key_checksums, ((cell.raw, cell.checksum) for cell in span.cells))
