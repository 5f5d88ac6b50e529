from __future__ import annotations

import pytest

from ots_emulator.tables.changelog import HOUR_US, ChangeLog
from ots_emulator.tables.keys import BOTTOM_KEY, TOP_KEY, KeySchema
from ots_tunnel.model import Action, KeyColumn, KeyType, Marker, SequenceInfo
from ots_tunnel.protocol.plainbuffer.codec import decode_row, encode_row
from ots_tunnel.protocol.plainbuffer.column import Column
from ots_tunnel.protocol.tunnel_pb2 import ReadRecordsResponse

NOW = 1_700_000_000_000_000
ROW = encode_row((("k", 1),), [Column("a", 1, 5)], header=False)
EVERYTHING = {"rows": 1000, "size": 1 << 20, "end_us": None}


def make_log(*starts: tuple[int]) -> ChangeLog:
    return ChangeLog("t_1", 1, NOW, [BOTTOM_KEY, *starts])


def test_an_entry_is_a_record_with_its_sequence() -> None:
    log = make_log()

    log.append((1,), Action.UPDATE, ROW, NOW + 7)

    page = log.read(log.open_partitions[0], 0, **EVERYTHING)
    record = ReadRecordsResponse.FromString(page.entries[0] + b"\x12\x01x").records[0]
    row = decode_row(record.record)
    assert record.action_type == Action.UPDATE
    assert row.sequence == SequenceInfo(0, NOW + 7, 0)
    assert row.columns == (Column("a", 1, 5),)


def test_the_row_checksum_does_not_cover_the_extension() -> None:
    log = make_log()

    log.append((1,), Action.PUT, ROW, NOW + 7)

    record = log.read(log.open_partitions[0], 0, **EVERYTHING).entries[0]
    assert record.endswith(ROW[:-2] + record[-31:-2] + ROW[-2:])


def test_commit_times_grow_even_when_the_clock_does_not() -> None:
    log = make_log((5,))

    for key in (1, 9, 1, 9):
        log.append((key,), Action.PUT, ROW, NOW - 10)

    left, right = log.open_partitions
    assert left.times_us + right.times_us == [NOW + 1, NOW + 3, NOW + 2, NOW + 4]


def test_commit_times_are_behind_what_readers_were_promised() -> None:
    log = make_log()
    log.promise(NOW + 50)
    log.promise(NOW + 20)
    log.append((1,), Action.PUT, ROW, NOW + 1)

    assert log.open_partitions[0].times_us == [NOW + 51]


def test_keys_go_to_their_partition() -> None:
    log = make_log((5,), (9,))

    assert [log.open_partitions.index(log.locate((key,))) for key in (-1, 4, 5, 8, 9, 100)] == [0, 0, 1, 1, 2, 2]


def test_a_split_ends_the_parent_and_continues_in_two_children() -> None:
    log = make_log()
    parent = log.open_partitions[0]
    log.append((1,), Action.PUT, ROW, NOW + 1)

    left, right = log.split(parent, (5,), NOW + 1)
    log.append((4,), Action.PUT, ROW, NOW + 1)
    log.append((5,), Action.PUT, ROW, NOW + 1)

    assert log.open_partitions == (left, right)
    assert left.parents == right.parents == (parent.id,)
    assert parent.closed_us is not None
    assert parent.times_us[-1] < parent.closed_us < left.times_us[0] < right.times_us[0]


def test_a_page_ends_with_the_entry_that_reaches_its_size() -> None:
    log = make_log()
    for _ in range(10):
        log.append((1,), Action.PUT, ROW, NOW)
    partition = log.open_partitions[0]
    size = len(partition.entries[0])

    assert len(log.read(partition, 0, rows=4, size=1 << 20, end_us=None).entries) == 4
    assert len(log.read(partition, 0, rows=100, size=2 * size + 1, end_us=None).entries) == 3
    assert len(log.read(partition, 0, rows=100, size=1, end_us=None).entries) == 1
    assert log.read(partition, 8, **EVERYTHING).next_position == 10


def test_a_page_stops_before_the_end_time() -> None:
    log = make_log()
    for step in range(1, 6):
        log.append((1,), Action.PUT, ROW, NOW + step * 10)
    partition = log.open_partitions[0]

    page = log.read(partition, 0, rows=100, size=1 << 20, end_us=NOW + 30)

    assert len(page.entries) == 2
    assert page.last_us == NOW + 20
    assert log.read(partition, 4, rows=100, size=1 << 20, end_us=NOW + 30).entries == []


def test_positions_survive_trimming() -> None:
    log = make_log()
    for _ in range(5):
        log.append((1,), Action.PUT, ROW, NOW)
    partition = log.open_partitions[0]

    log.trim()
    log.append((1,), Action.PUT, ROW, NOW)

    assert (partition.base, partition.end) == (5, 6)
    assert len(log.read(partition, 5, **EVERYTHING).entries) == 1


def test_entries_and_closed_partitions_expire() -> None:
    log = make_log()
    parent = log.open_partitions[0]
    for _ in range(300):
        log.append((1,), Action.PUT, ROW, NOW)
    log.split(parent, (5,), NOW)

    log.expire(NOW + HOUR_US)
    assert parent.id in log.partitions
    log.expire(NOW + 2 * HOUR_US)

    assert parent.id not in log.partitions
    assert len(log.open_partitions) == 2


SCHEMA = KeySchema([KeyColumn("a", KeyType.STRING), KeyColumn("b", KeyType.INTEGER), KeyColumn("c", KeyType.BINARY)])


def test_bounds_order_like_the_service() -> None:
    def bound(*values: object) -> tuple[object, ...]:
        return SCHEMA.bound(tuple(zip("abc", values, strict=True)))

    low, high = Marker.INF_MIN, Marker.INF_MAX
    ordered = [
        bound(low, low, low),
        bound("", -5, b""),
        bound("a", low, low),
        bound("a", -1, b"\xff"),
        bound("a", 2, b""),
        bound("a", 2, b"\x00"),
        bound("a", 2, high),
        bound("a", high, high),
        bound("b", 0, b""),
        bound("ü", 0, b""),
        bound(high, low, low),
    ]

    assert all(ordered[i] < ordered[i + 1] for i in range(len(ordered) - 1))
    assert ordered[-1] == TOP_KEY


@pytest.mark.parametrize("key", [(b"x", 5, b"q"), (b"", -1, b""), (b"x", 2**63 - 1, b"\xff")])
def test_nothing_fits_between_a_key_and_what_follows_it(key: tuple[bytes, int, bytes]) -> None:
    assert key < SCHEMA.after(key) <= (*key[:-1], key[-1] + b"\0")
    assert SCHEMA.bound(SCHEMA.primary_key(SCHEMA.after(key))) == SCHEMA.after(key)


def test_the_key_after_the_largest_integer_is_above_all_others() -> None:
    schema = KeySchema([KeyColumn("a", KeyType.INTEGER)])

    assert schema.after((2**63 - 1,)) == TOP_KEY
    assert schema.after((1,)) == (2,)
