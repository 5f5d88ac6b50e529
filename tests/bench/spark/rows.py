"""Tables of rows, and how many bytes a part of them has on the wire."""

from __future__ import annotations

from collections.abc import Collection

from ots_tunnel.client.table_calls import RowChange
from ots_tunnel.model import Action, KeyColumn, KeyType
from ots_tunnel.protocol.plainbuffer.codec import encode_row
from ots_tunnel.protocol.plainbuffer.column import Column
from ots_tunnel.tables import TableSchema
from tests.bench.bench_scene import REQUEST_ROWS, BenchScene, key_of, row_of

#: Any version: each has eight bytes.
_VERSION = 1_700_000_000_000


async def create_rows(scene: BenchScene, name: str, rows: int) -> None:
    """A table with this number of rows, in one partition."""
    schema = TableSchema(name, (KeyColumn("device", KeyType.STRING), KeyColumn("reading", KeyType.INTEGER)))
    await scene.create_empty(schema, channels=1)
    for start in range(0, rows, REQUEST_ROWS):
        numbers = range(start, min(start + REQUEST_ROWS, rows))
        await scene.write(name, [RowChange(Action.PUT, encode_row(key_of(each), row_of(each))) for each in numbers])


def asked_bytes(rows: int, columns: Collection[str]) -> int:
    """Bytes of the rows' key, which the service puts into every answer, and of these attributes with their versions."""
    found = 0
    for number in range(rows):
        cells = [Column(cell.name, cell.value, _VERSION) for cell in row_of(number) if cell.name in columns]
        found += len(encode_row(key_of(number), cells, header=False))
    return found
