"""Types of the compiled twin; `record`, `page`, `spans`, `matching` and `crc8` describe its functions."""

from collections.abc import Callable, Mapping, Sequence
from typing import TypeAlias

from ots_tunnel.model import Action
from ots_tunnel.protocol.plainbuffer.column import Column as Column
from ots_tunnel.protocol.plainbuffer.spans import RowSpan
from ots_tunnel.protocol.record import Record as Record

def crc8(data: bytes | bytearray | memoryview, crc: int = 0) -> int: ...
def read_page(page: bytes) -> tuple[list[Record], str, bool | None] | None: ...
def read_shard_page(page: bytes) -> tuple[list[Record], str | None, bool | None] | None: ...
def encode_batch_writes(table: str, requests: list[list[Record]]) -> list[bytes] | None: ...
def md5_of(bodies: list[bytes]) -> list[bytes]: ...
def parse_head(head: bytes) -> tuple[bytes, int, dict[str, str]] | None: ...
def room_for(size: int) -> tuple[bytes, memoryview]: ...
def all_rows_stored(answer: bytes, count: int) -> bool: ...
def plan_requests(
    records: Sequence[Record], max_rows: int, max_bytes: int, max_cells: int, max_waves: int
) -> list[list[list[Record]]] | None: ...
def scan_row(buf: bytes, offset: int, verify: bool) -> RowSpan | None: ...
def match_rows(first: bytes, at: int, second: bytes, other: int) -> tuple[int, int, int, int]: ...
def count_actions(records: list[Record]) -> dict[int, int] | None: ...
def total_size(records: list[Record]) -> int | None: ...
def json_lines(records: list[Record], first: int, heads: Mapping[Action, bytes], most: int) -> tuple[bytes, int]: ...
def json_record(record: Record, heads: Mapping[Action, bytes]) -> bytes | None: ...
def cloud_events(
    records: list[Record],
    first: int,
    end: int,
    heads: Mapping[Action, tuple[bytes, bytes, bytes]],
    identity: Callable[[bytes], bytes],
    most: int,
) -> tuple[list[bytes], int]: ...
def messages(
    records: list[Record],
    first: int,
    heads: Mapping[Action, bytes],
    headers: Mapping[Action, list[tuple[str, bytes]]],
    name: str,
    most: int,
) -> tuple[list[tuple[bytes, bytes, list[tuple[str, bytes]]]], int]: ...
def change_log(
    records: list[Record], first: int, key: tuple[tuple[bytes, int], ...], most: int
) -> tuple[ChangeColumns | None, int]: ...
def typed_columns(
    rows: bytes, wanted: tuple[tuple[bytes, int], ...]
) -> tuple[int, tuple[tuple[Block, Block, Block], ...]] | None: ...
def typed_log(
    records: list[Record],
    first: int,
    key: tuple[tuple[bytes, int], ...],
    wanted: tuple[tuple[bytes, int], ...],
    keeps_unknown: bool,
    most: int,
) -> tuple[TypedRows | None, int]: ...
def suspects(
    records: list[Record], first: int, wanted: tuple[tuple[bytes, int], ...], keeps_unknown: bool, most: int
) -> tuple[list[int], int]: ...
def select(
    records: list[Record],
    first: int,
    actions: int,
    prefixes: tuple[tuple[bytes, bytes], ...],
    begin: tuple[tuple[int, int | bytes], ...],
    end: tuple[tuple[int, int | bytes], ...],
    names: Mapping[bytes, bytes | bool | None] | None,
    keeps_others: bool,
    most: int,
) -> tuple[list[Record], int, int, int]: ...

ChangeColumns: TypeAlias = tuple[
    tuple[Block, Block, Block, tuple[Block, ...]], tuple[Block, ...], tuple[tuple[Block, Block], ...]
]
TypedRows: TypeAlias = tuple[ChangeColumns, ChangeColumns, tuple[tuple[Block, Block, Block], ...], tuple[Block, ...]]

class Block:
    def __len__(self) -> int: ...
    def __buffer__(self, flags: int, /) -> memoryview: ...
