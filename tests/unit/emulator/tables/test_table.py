from __future__ import annotations

import pytest

from ots_tunnel.errors import ObjectAlreadyExist, ObjectNotExist, ParameterInvalid, RowRejected
from ots_tunnel.model import Action, Marker
from ots_tunnel.protocol import table_pb2
from ots_tunnel.protocol.plainbuffer.codec import decode_primary_key, encode_primary_key, encode_row
from tests.support.emulator.emulator_driver import IGNORE, Driver, delete_all, delete_one, increment, put

LOW = (("k", Marker.INF_MIN),)
HIGH = (("k", Marker.INF_MAX),)


async def test_put_replaces_the_whole_row(driver: Driver) -> None:
    await driver.put(1, put("a", 1), put("b", 2))
    await driver.put(1, put("b", 3))

    assert await driver.cells(1) == [("b", 3, driver.now_ms)]


async def test_a_clock_that_goes_back_hides_no_update_of_a_table_with_a_stream(make_driver: type[Driver]) -> None:
    driver = make_driver()
    await driver.create_table(hours=24)
    await driver.update(1, put("a", 1))
    newest = driver.now_ms
    driver.clock.advance(-3600)

    await driver.update(1, put("a", 2))
    assert await driver.cells(1) == [("a", 2, newest)]

    transaction = await driver.call("StartLocalTransaction", table_name="t", key=encode_primary_key((("k", 1),)))
    row = encode_row((("k", 1),), [put("a", 3)])
    await driver.call(
        "UpdateRow", table_name="t", row_change=row, condition=IGNORE, transaction_id=transaction.transaction_id
    )
    found = await driver.get(1, transaction_id=transaction.transaction_id)
    assert found is not None
    assert [column.value for column in found.columns] == [3]


async def test_many_rows_at_one_time_have_one_version(make_driver: type[Driver]) -> None:
    driver = make_driver()
    await driver.create_table(hours=24)
    await driver.fill(1500)

    assert await driver.cells(0) == [("v", 0, driver.now_ms)]
    assert await driver.cells(1499) == [("v", 1499, driver.now_ms)]


async def test_put_of_a_key_only_leaves_a_row_without_cells(driver: Driver) -> None:
    await driver.put(1, put("a", 1))
    await driver.put(1)

    assert await driver.cells(1) == []


async def test_cells_come_by_name_and_newest_first(driver: Driver) -> None:
    now = driver.now_ms
    await driver.put(1, put("b", 1, now), put("a", 1, now - 2), put("a", 2, now - 1))

    assert await driver.cells(1) == [("a", 2, now - 1), ("a", 1, now - 2), ("b", 1, now)]


async def test_versions_beyond_the_maximum_are_gone_at_once(driver: Driver) -> None:
    now = driver.now_ms
    for version in range(5):
        await driver.update(1, put("a", version, now + version))

    assert [value for _, value, _ in await driver.cells(1)] == [4, 3, 2]


async def test_a_deleted_version_does_not_bring_a_trimmed_one_back(driver: Driver) -> None:
    now = driver.now_ms
    for version in range(4):
        await driver.update(1, put("a", version, now + version))
    await driver.update(1, delete_one("a", now + 3))

    assert [value for _, value, _ in await driver.cells(1)] == [2, 1]


async def test_lowering_the_maximum_trims_every_row(driver: Driver) -> None:
    now = driver.now_ms
    for version in range(3):
        await driver.update(1, put("a", version, now + version))
    await driver.call("UpdateTable", table_name="t", table_options=table_pb2.TableOptions(max_versions=1))
    await driver.call("UpdateTable", table_name="t", table_options=table_pb2.TableOptions(max_versions=3))

    assert [value for _, value, _ in await driver.cells(1)] == [2]


async def test_update_with_every_kind_of_cell(driver: Driver) -> None:
    now = driver.now_ms
    await driver.put(1, put("a", 1, now - 1), put("a", 2, now), put("b", 1), put("c", 5))
    await driver.update(1, delete_one("a", now), delete_all("b"), increment("c", -2), increment("d", 1), put("e", "x"))

    assert await driver.cells(1) == [("a", 1, now - 1), ("c", 3, now), ("d", 1, now), ("e", "x", now)]


async def test_increment_wraps_like_a_64_bit_integer(driver: Driver) -> None:
    await driver.put(1, put("a", 2**63 - 1))
    await driver.update(1, increment("a", 1))

    assert (await driver.cells(1))[0][1] == -(2**63)


async def test_increment_of_text_fails_the_row_only(driver: Driver) -> None:
    await driver.put(1, put("a", "x"))

    rows = await driver.write((Action.UPDATE, 1, [increment("a", 1)]), (Action.PUT, 2, [put("a", 1)]))

    assert [row.is_ok for row in rows] == [False, True]
    assert rows[0].error.code == "OTSParameterInvalid"


async def test_repeated_keys_are_executed_in_order(driver: Driver) -> None:
    await driver.write(*[(Action.PUT, 1, [put("a", value)]) for value in range(10)])

    assert (await driver.cells(1))[0][1] == 9


async def test_expired_cells_and_rows_are_gone_for_every_reader(make_driver: type[Driver]) -> None:
    driver = make_driver(least_time_to_live=100)
    await driver.create_table(ttl=100)
    await driver.put(1, put("a", 1))
    driver.clock.advance(60)
    await driver.update(1, put("b", 2))
    await driver.put(2)

    driver.clock.advance(41)

    assert [name for name, _, _ in await driver.cells(1)] == ["b"]
    driver.clock.advance(60)
    assert await driver.get(1) is None
    assert await driver.range(LOW, HIGH) == ([2], b"")


async def test_versions_outside_of_the_deviation_are_refused(make_driver: type[Driver]) -> None:
    driver = make_driver()
    await driver.create_table(deviation=10)
    now = driver.now_ms

    inside, low, high = await driver.write(
        (Action.PUT, 1, [put("a", 1, now - 10_000)]),
        (Action.PUT, 2, [put("a", 1, now - 10_001)]),
        (Action.PUT, 3, [put("a", 1, now + 10_000)]),
    )

    assert inside.is_ok
    assert low.error.message == high.error.message == "Invalid timestamp. Cell:a."


async def test_range_in_both_directions_with_limit(driver: Driver) -> None:
    await driver.fill(10)

    keys, following = await driver.range(LOW, HIGH, limit=4)
    back, back_following = await driver.range(HIGH, LOW, direction="BACKWARD", limit=3)

    assert keys == [0, 1, 2, 3]
    assert decode_primary_key(following) == (("k", 4),)
    assert back == [9, 8, 7]
    assert decode_primary_key(back_following) == (("k", 6),)
    assert await driver.range((("k", 4),), (("k", 6),)) == ([4, 5], b"")
    assert await driver.range((("k", 6),), (("k", 4),), direction="BACKWARD") == ([6, 5], b"")


async def test_range_ends_exactly_at_the_last_row(driver: Driver) -> None:
    await driver.fill(4)

    assert await driver.range(LOW, HIGH, limit=4) == ([0, 1, 2, 3], b"")


async def test_range_stops_at_the_page_limits(make_driver: type[Driver]) -> None:
    driver = make_driver(range_rows=7, range_bytes=100)
    await driver.create_table()
    await driver.fill(10)
    one_row = len(encode_row((("k", 0),), [put("v", 0, 0)], header=False))

    keys, _ = await driver.range(LOW, HIGH)

    assert len(keys) == -(-100 // one_row)


async def test_range_refuses_bounds_in_the_wrong_order(driver: Driver) -> None:
    with pytest.raises(ParameterInvalid, match="Begin key must less than end key in FORWARD"):
        await driver.range(HIGH, LOW)
    with pytest.raises(ParameterInvalid, match="Begin key must more than end key in BACKWARD"):
        await driver.range(LOW, HIGH, direction="BACKWARD")


async def test_columns_and_versions_of_a_read(driver: Driver) -> None:
    now = driver.now_ms
    await driver.put(1, put("a", 1, now), put("a", 2, now + 1), put("b", 1, now + 5))

    newest = await driver.get(1, max_versions=1)
    one_column = await driver.get(1, columns_to_get=["a"])
    one_version = await driver.get(1, max_versions=0, time_range=table_pb2.TimeRange(specific_time=now))
    window = await driver.get(1, time_range=table_pb2.TimeRange(start_time=now + 1, end_time=now + 5))

    assert newest is not None
    assert one_column is not None
    assert one_version is not None
    assert window is not None
    assert [(c.name, c.value) for c in newest.columns] == [("a", 2), ("b", 1)]
    assert [(c.name, c.value) for c in one_column.columns] == [("a", 2), ("a", 1)]
    assert [(c.name, c.value) for c in one_version.columns] == [("a", 1)]
    assert [(c.name, c.value) for c in window.columns] == [("a", 2)]
    assert await driver.get(1, columns_to_get=["missing"]) is None
    assert (await driver.get(1, columns_to_get=["k"])) is not None


async def test_split_points_cut_by_size(driver: Driver) -> None:
    for key in range(40):
        await driver.put(key, put("v", bytes(100_000)))

    answer = await driver.call(
        "ComputeSplitPointsBySize", table_name="t", split_size=1, split_size_unit_in_byte=1 << 20
    )
    coarse = await driver.call("ComputeSplitPointsBySize", table_name="t", split_size=1)

    assert [decode_primary_key(point)[0][1] for point in answer.split_points] == [10, 20, 30]
    assert list(coarse.split_points) == []
    # The vendor's Java client fails without one location per split.
    assert sum(location.repeat for location in answer.locations) == 4
    assert sum(location.repeat for location in coarse.locations) == 1


async def test_split_points_keep_the_rows_of_a_partition_key_together(driver: Driver) -> None:
    meta = table_pb2.TableMeta(table_name="two")
    meta.primary_key.add(name="p", type="INTEGER")
    meta.primary_key.add(name="k", type="INTEGER")
    throughput = table_pb2.ReservedThroughput(capacity_unit=table_pb2.CapacityUnit(read=0, write=0))
    options = table_pb2.TableOptions(time_to_live=-1, max_versions=1)
    await driver.call("CreateTable", table_meta=meta, reserved_throughput=throughput, table_options=options)
    for key in range(40):
        row = encode_row((("p", key // 15), ("k", key)), (put("v", bytes(100_000)),))
        await driver.call("PutRow", table_name="two", row=row, condition=IGNORE)

    answer = await driver.call(
        "ComputeSplitPointsBySize", table_name="two", split_size=1, split_size_unit_in_byte=1 << 20
    )

    # Cut at rows 10, 20 and 30; the first cut is inside the lowest partition key, so no row is before it.
    assert [decode_primary_key(point) for point in answer.split_points] == [(("p", 1),), (("p", 2),)]


async def test_split_size_unit_has_a_minimum(driver: Driver) -> None:
    with pytest.raises(ParameterInvalid, match="should be greater equal than: 1048576"):
        await driver.call("ComputeSplitPointsBySize", table_name="t", split_size=1, split_size_unit_in_byte=1)
    with pytest.raises(ParameterInvalid, match="split_size should be greater than 0"):
        await driver.call("ComputeSplitPointsBySize", table_name="t", split_size=0)


@pytest.mark.parametrize(
    ("key", "message"),
    [
        ((("k", 1), ("l", 1)), "Validate PK size fail. Input: 2, Meta: 1."),
        ((("l", 1),), "Validate PK name fail. Input: l, Meta: k."),
        ((("k", "x"),), "Validate PK type fail. Input: VT_STRING, Meta: VT_INTEGER."),
        ((("k", b"x"),), "Validate PK type fail. Input: VT_BLOB, Meta: VT_INTEGER."),
    ],
)
async def test_keys_that_do_not_fit_the_table(driver: Driver, key: tuple[tuple[str, int], ...], message: str) -> None:
    with pytest.raises(RowRejected, match=message):
        await driver.call("PutRow", table_name="t", row=encode_row(key), condition=IGNORE)


async def test_a_marker_as_key_refuses_the_whole_batch(driver: Driver) -> None:
    good = table_pb2.RowInBatchWriteRowRequest(type="PUT", row_change=encode_row((("k", 1),)), condition=IGNORE)
    bad = table_pb2.RowInBatchWriteRowRequest(type="PUT", row_change=encode_row(LOW), condition=IGNORE)
    batch = table_pb2.TableInBatchWriteRowRequest(table_name="t", rows=[good, bad])

    with pytest.raises(ParameterInvalid, match="VT_INF_MIN is an invalid type"):
        await driver.call("BatchWriteRow", tables=[batch])
    assert await driver.get(1) is None


async def test_broken_checksum_is_refused(driver: Driver) -> None:
    row = bytearray(encode_row((("k", 1),), [put("a", 1)]))
    row[-12] ^= 1

    with pytest.raises(ParameterInvalid, match="checksum is mismatch"):
        await driver.call("PutRow", table_name="t", row=bytes(row), condition=IGNORE)


async def test_more_than_200_rows_are_refused(driver: Driver) -> None:
    with pytest.raises(ParameterInvalid, match="Rows count exceeds the upper limit: 200"):
        await driver.write(*[(Action.PUT, key, []) for key in range(201)])


async def test_a_batch_beyond_4_mb_is_refused(driver: Driver) -> None:
    with pytest.raises(ParameterInvalid, match="limit size: 4194304"):
        await driver.write(*[(Action.PUT, key, [put("a", bytes(1_500_000))]) for key in range(3)])


async def test_conditions_on_row_and_column(driver: Driver) -> None:
    expect_exist = table_pb2.Condition(row_existence="EXPECT_EXIST")
    a_is_1 = table_pb2.Filter(
        type="FT_SINGLE_COLUMN_VALUE",
        filter=table_pb2.SingleColumnValueFilter(
            comparator="CT_EQUAL",
            column_name="a",
            column_value=b"\x00" + (1).to_bytes(8, "little"),
            filter_if_missing=True,
            latest_version_only=True,
        ).SerializeToString(),
    )
    on_column = table_pb2.Condition(row_existence="IGNORE", column_condition=a_is_1.SerializeToString())
    row = encode_row((("k", 1),), [put("a", 1)])

    with pytest.raises(RowRejected, match="Condition check failed"):
        await driver.call("PutRow", table_name="t", row=row, condition=expect_exist)
    with pytest.raises(RowRejected, match="Condition check failed"):
        await driver.call("PutRow", table_name="t", row=row, condition=on_column)
    await driver.put(1, put("a", 1))
    await driver.call("PutRow", table_name="t", row=row, condition=expect_exist)
    await driver.call("PutRow", table_name="t", row=row, condition=on_column)


async def test_tables_that_are_missing_or_there_already(driver: Driver) -> None:
    with pytest.raises(ObjectAlreadyExist):
        await driver.create_table()
    with pytest.raises(ObjectNotExist):
        await driver.call("DescribeTable", table_name="other")
    rows = await driver.write((Action.PUT, 1, []), table="other")
    assert rows[0].error.code == "OTSObjectNotExist"


async def test_a_described_table_is_active_as_the_vendors_go_sdk_requires(driver: Driver) -> None:
    described = await driver.call("DescribeTable", table_name="t")
    assert described.table_status == table_pb2.ACTIVE


async def test_a_table_has_its_partitions_when_it_is_loaded(make_driver: type[Driver]) -> None:
    driver = make_driver()
    driver.emulator.set_partitions("demo", "t", 4)
    await driver.create_table()
    await driver.fill(400)

    described = await driver.call("DescribeTable", table_name="t")

    assert [decode_primary_key(split)[0][1] for split in described.shard_splits] == [100, 200, 300]


async def test_a_table_with_a_stream_splits_itself_towards_its_aim(make_driver: type[Driver]) -> None:
    driver = make_driver(partitions=4, partition_rows=16)
    await driver.create_table(hours=24)

    await driver.fill(200)

    described = await driver.call("DescribeTable", table_name="t")
    assert len(described.shard_splits) == 3
    assert described.stream_details.enable_stream


async def test_partition_rows_reach_tables_that_are_there(make_driver: type[Driver]) -> None:
    driver = make_driver(partitions=4, partition_rows=1000)
    await driver.create_table(hours=24)
    await driver.fill(100)
    assert not (await driver.call("DescribeTable", table_name="t")).shard_splits

    driver.emulator.change_settings(partition_rows=16)
    await driver.fill(100, start=100)

    assert len((await driver.call("DescribeTable", table_name="t")).shard_splits) == 3


async def test_more_parts_than_rows_cost_nothing(make_driver: type[Driver]) -> None:
    driver = make_driver(base_split_bytes=1)
    await driver.create_table(hours=24)
    await driver.fill(3)
    tunnel = await driver.create_tunnel("BaseAndStream")

    assert len(await driver.channels(tunnel, "BaseData")) == 3


async def test_batch_get_row_refuses_each_row_that_its_answer_has_no_room_for(make_driver: type[Driver]) -> None:
    driver = make_driver(batch_get_bytes=1000)
    await driver.create_table()
    for key in range(4):
        await driver.put(key, put("v", "x" * 600))
    keys = [encode_primary_key((("k", key),)) for key in range(4)]

    async def read(keys: list[bytes]) -> list[tuple[bool, str]]:
        asked = table_pb2.TableInBatchGetRowRequest(table_name="t", primary_key=keys, max_versions=1)
        (table,) = (await driver.call("BatchGetRow", tables=[asked])).tables
        return [(bool(row.row), row.error.code) for row in table.rows]

    assert await read(keys) == [(True, "")] * 2 + [(False, "OTSServerBusy")] * 2
    assert await read(keys[2:]) == [(True, "")] * 2


async def test_batch_get_row_answers_in_request_order(driver: Driver) -> None:
    await driver.fill(3)
    keys = [encode_primary_key((("k", key),)) for key in (2, 9, 0)]
    table = table_pb2.TableInBatchGetRowRequest(table_name="t", primary_key=keys, max_versions=1)
    missing = table_pb2.TableInBatchGetRowRequest(table_name="other", primary_key=keys[:1], max_versions=1)

    answer = await driver.call("BatchGetRow", tables=[table, missing])

    assert [bool(row.row) for row in answer.tables[0].rows] == [True, False, True]
    assert answer.tables[1].rows[0].error.code == "OTSObjectNotExist"
