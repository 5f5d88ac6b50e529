"""The pure parts of `ots-tunnel verify`: samples, differences, keys, expiry, checks, reports."""

from __future__ import annotations

import asyncio
import io
import struct
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ots_tunnel.client.table_calls import StreamDescription, TableDescription
from ots_tunnel.console.progress_bar import duration, shown
from ots_tunnel.console.retry_notes import RepeatNotes
from ots_tunnel.errors import ConfigError, ConnectionLost
from ots_tunnel.model import KeyColumn, KeyType, Marker, PrimaryKey
from ots_tunnel.protocol.plainbuffer.codec import encode_row
from ots_tunnel.protocol.plainbuffer.column import Column
from ots_tunnel.protocol.plainbuffer.spans import RowSpan, scan_row
from ots_tunnel.verify.checks import refuse_other_keys, refuse_same_table, warnings_of
from ots_tunnel.verify.comparison import Comparison, Difference
from ots_tunnel.verify.display import MeterPicture, meter_line, seconds_left
from ots_tunnel.verify.expiry import doubtful_until
from ots_tunnel.verify.job import Meter
from ots_tunnel.verify.keys import order, span
from ots_tunnel.verify.recheck import READ_ONE_BY_ONE, SecondLook, Suspects, ranges_of
from ots_tunnel.verify.rows import SAME, compare_rows, is_doubtful, show_cells, show_value
from ots_tunnel.verify.sampling import choose_slices
from ots_tunnel.verify.state_document import TablePlace


def span_of(*columns: Column, number: int = 1) -> RowSpan:
    return scan_row(encode_row((("pk", number),), columns))


@given(st.integers(1, 2000), st.floats(0.01, 100), st.integers(0, 10**6))
def test_a_sample_has_its_share_and_is_always_the_same(count: int, percent: float, seed: int) -> None:
    chosen = choose_slices(count, percent, seed)

    assert chosen == choose_slices(count, percent, seed)
    assert list(chosen) == sorted(set(chosen))
    assert set(chosen) <= set(range(count))
    assert count * percent / 100 <= len(chosen) < count * percent / 100 + 1
    assert set(chosen) <= set(choose_slices(count, min(100, percent * 2), seed))


def test_samples_are_the_same_for_ever() -> None:
    assert choose_slices(20, 25, 7) == (3, 4, 7, 8, 12)
    assert choose_slices(20, 25, 8) != choose_slices(20, 25, 7)
    assert choose_slices(3, 100, 1) == (0, 1, 2)


def test_every_slice_is_chosen_by_some_seed() -> None:
    assert {number for seed in range(200) for number in choose_slices(10, 10, seed)} == set(range(10))


@given(
    st.tuples(st.integers(-(2**63), 2**63 - 2), st.integers(-(2**63), 2**63 - 1))
    | st.tuples(st.text(max_size=3), st.text(max_size=3))
    | st.tuples(st.binary(max_size=3), st.binary(max_size=3))
)
def test_a_span_of_one_key_holds_that_key_alone(keys: tuple[int, int] | tuple[str, str] | tuple[bytes, bytes]) -> None:
    one, other = keys
    part = span((("a", 1), ("b", one)), (("a", 1), ("b", one)))
    start, end = sortable(part.start[1][1]), sortable(part.end[1][1])

    assert start == sortable(one) < end
    assert (start <= sortable(other) < end) == (one == other)


def sortable(value: object) -> tuple[int, bytes]:
    if isinstance(value, int):
        return (value, b"")
    assert isinstance(value, str | bytes)
    return (0, value.encode() if isinstance(value, str) else value)


def test_a_span_ends_openly_where_no_bound_can_be_written() -> None:
    for value in (2**63 - 1, "x" * 1024, b"x" * 1024):
        assert span((("a", value),), (("a", value),)).end == (("a", Marker.INF_MAX),)


def test_keys_are_ordered_as_the_service_orders_them() -> None:
    keys: list[PrimaryKey] = [(("a", -1),), (("a", 0),), (("a", 300),)]
    texts: list[PrimaryKey] = [(("a", ""),), (("a", "a"),), (("a", "\uffff"),), (("a", "\U0001f600"),)]
    for sequence in (keys, texts):
        spans = [scan_row(encode_row(key)).key for key in sequence]
        assert sorted(reversed(spans), key=order) == spans


def test_cells_that_differ_are_shown_with_both_values() -> None:
    one = span_of(Column("a", 1, 5), Column("b", "x", 5), Column("b", "y", 4), Column("c", 0.0, 5))
    two = span_of(Column("c", -0.0, 5), Column("b", "y", 4), Column("b", "z", 5), Column("a", 1, 6))
    verdict = compare_rows(one, two)

    assert [str(cell) for cell in show_cells(one, two, verdict)] == [
        "a @ 6: absent | INTEGER 1",
        "a @ 5: INTEGER 1 | absent",
        "b @ 5: STRING 'x' | STRING 'z'",
        "c @ 5: DOUBLE 0.0 | DOUBLE -0.0",
    ]
    assert compare_rows(one, one) == SAME


def test_only_the_first_cells_of_a_row_are_shown() -> None:
    one = span_of(*(Column(f"c{number}", number, 1) for number in range(9)))
    verdict = compare_rows(one, span_of())

    assert len(verdict.judged) == 9
    assert [cell.column for cell in show_cells(one, span_of(), verdict)] == ["c0", "c1", "c2", "c3", "c4"]


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (True, "BOOLEAN true"),
        (1, "INTEGER 1"),
        (1.0, "DOUBLE 1.0"),
        (0.1, "DOUBLE 0.1"),
        (float("inf"), "DOUBLE inf"),
        (struct.unpack(">d", bytes.fromhex("7ff8000000000001"))[0], "DOUBLE nan (bits 7ff8000000000001)"),
        ("a'b\n", 'STRING "a\'b\\n"'),
        (b"\x00\xff", "BINARY 00ff"),
        ("", "STRING ''"),
    ],
)
def test_values_are_shown_with_their_types(value: int | float | str | bytes, shown: str) -> None:
    assert str(show_value(value)) == shown


def test_long_values_are_cut_and_say_their_size() -> None:
    text, binary = show_value("x" * 2_000_000), show_value(b"\x01" * 5_000)

    assert text.text.endswith("... (2,000,000 bytes)")
    assert len(text.text) < 100
    assert binary.text.endswith("... (5,000 bytes)")
    assert len(binary.text) < 100


def test_long_values_are_shown_where_they_differ() -> None:
    common = "x" * 1000
    one, two = span_of(Column("c", common + "one", 1)), span_of(Column("c", common + "two", 1))
    (cell,) = show_cells(one, two, compare_rows(one, two))

    assert cell.first is not None
    assert cell.second is not None
    assert "one" in cell.first.text
    assert "two" in cell.second.text
    assert cell.first.text.startswith("from character 990: ")


def test_cells_near_the_end_of_their_life_are_left_out() -> None:
    one = span_of(Column("a", 1, 100), Column("a", 2, 200))
    two = span_of(Column("a", 3, 300))

    assert compare_rows(one, two, 99).left_out == 0
    assert compare_rows(one, two, 100).left_out == 1
    verdict = compare_rows(one, two, 200)
    assert (verdict.judged, verdict.left_out) == (((b"a", 300),), 2)
    assert is_doubtful(one, 200)
    assert not is_doubtful(one, 199)
    assert not is_doubtful(one, None)
    assert not is_doubtful(span_of(), 200)


def test_the_shorter_life_decides_what_is_in_doubt() -> None:
    assert doubtful_until((-1, -1), 1_000_000) is None
    assert doubtful_until((-1, 86_400), 1_000_000, margin=300) == (1_000_300 - 86_400) * 1000
    assert doubtful_until((100_000, 86_400), 1_000_000, margin=0) == (1_000_000 - 86_400) * 1000


def describe(name: str = "orders", **changes: object) -> TableDescription:
    keys = (KeyColumn("a", KeyType.STRING), KeyColumn("b", KeyType.INTEGER, auto_increment=True))
    return replace(TableDescription(name, keys, -1, 3, 86_400, StreamDescription(False)), **changes)  # type: ignore[arg-type]


def test_tables_of_other_keys_are_refused() -> None:
    plain = (KeyColumn("a", KeyType.STRING), KeyColumn("b", KeyType.INTEGER))
    refuse_other_keys(describe(), describe("copy", primary_key=plain))
    for other in (plain[:1], plain[::-1], (plain[0], KeyColumn("c", KeyType.INTEGER))):
        with pytest.raises(ConfigError, match=r"primary key: found .* in table 'copy', needed a STRING, b INTEGER"):
            refuse_other_keys(describe(), describe("copy", primary_key=other))


def test_what_makes_copies_differ_is_noted() -> None:
    assert warnings_of(describe(), describe("copy")) == ()
    (fewer,) = warnings_of(describe(), describe("copy", max_versions=1))
    (more,) = warnings_of(describe(), describe("copy", max_versions=9))
    (shorter,) = warnings_of(describe(), describe("copy", time_to_live=86_400))
    assert "counts as a difference" in fewer
    assert "only the newest 3" in more
    assert "86400 in the destination, -1 in the source" in shorter


def test_one_table_by_two_names_is_refused() -> None:
    public = TablePlace(endpoint="https://shop.cn-hangzhou.ots.aliyuncs.com", instance="shop", table="orders")
    inner = public.model_copy(update={"endpoint": "https://shop.cn-hangzhou.vpc.ots.aliyuncs.com"})
    with pytest.raises(ConfigError, match="'orders' in instance 'shop' is the source itself"):
        refuse_same_table(public, inner)
    refuse_same_table(public, inner.model_copy(update={"table": "copy"}))
    refuse_same_table(public, inner.model_copy(update={"instance": "other"}))


def test_few_suspects_are_read_one_by_one_and_many_in_one_scan() -> None:
    keys = [span_of(number=number).key for number in range(READ_ONE_BY_ONE + 1)]

    assert [part.start for part in ranges_of(keys[:-1])] == [(("pk", number),) for number in range(READ_ONE_BY_ONE)]
    (part,) = ranges_of(keys)
    assert (part.start, part.end) == ((("pk", 0),), (("pk", READ_ONE_BY_ONE + 1),))


def test_only_suspects_count_at_the_second_look() -> None:
    rows = [span_of(number=number) for number in range(4)]
    suspects, result = Suspects(), Comparison()
    for row in rows[:3]:
        suspects.differs(Difference.MISSING, row, None, SAME)
    assert len(suspects) == 3

    second = SecondLook(suspects.take(), result)
    second.differs(Difference.EXTRA, None, rows[1], SAME)
    second.differs(Difference.MISSING, rows[3], None, SAME)
    second.end()

    assert (len(suspects), result.extra, result.missing, result.settled) == (0, 1, 0, 2)


def test_progress_in_one_line() -> None:
    meter = Meter(slices=40, slices_done=20, slices_before=10, rows=3_000, rows_before=1_000, differences=2, suspects=5)

    assert meter_line(meter, 10) == (
        "3,000 rows, 200 rows/s, slices 20/40, 2 differences, 5 rows to look at again, about 0:20 left"
    )
    assert seconds_left(Meter(slices=4), 10) is None
    assert seconds_left(Meter(slices=4, slices_done=4), 10) is None
    assert (duration(59.6), duration(3_725)) == ("1:00", "1:02:05")


def test_repeated_calls_are_noted_now_and_then() -> None:
    now, said = [0.0], list[str]()
    note = RepeatNotes(said.append, lambda: now[0])
    for now[0] in (0.0, 1.0, 4.9, 5.0):
        note("GetRange", ConnectionLost("gone"))

    assert said == ["GetRange is repeated: gone", "GetRange is repeated (3 calls since the last note): gone"]


async def test_a_stream_that_is_no_terminal_gets_a_line_now_and_then(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ots_tunnel.console.progress_bar.LINE_PAUSE", 0.0)
    monkeypatch.setattr("ots_tunnel.console.progress_bar.TICK", 0.0)
    ticked, meter, stream = asyncio.Event(), Meter(slices=3, rows=7), io.StringIO()

    async with asyncio.timeout(5), shown(MeterPicture(meter), stream, ticked.set):
        await ticked.wait()
        meter.slices_done = 3

    lines = stream.getvalue().splitlines()
    assert lines[0].startswith("7 rows, ")
    assert "slices 3/3" in lines[-1], "the end is shown, too"


async def test_a_short_run_is_silent_where_there_is_no_terminal() -> None:
    stream = io.StringIO()
    async with shown(MeterPicture(Meter(slices=1)), stream):
        pass

    assert stream.getvalue() == ""
