from __future__ import annotations

import pytest

from ots_tunnel.client import table_calls as calls
from ots_tunnel.errors import CodecError
from ots_tunnel.model import Action, KeyType, Marker
from ots_tunnel.protocol import table_pb2 as pb
from ots_tunnel.protocol.plainbuffer.codec import decode_primary_key, encode_primary_key


def test_changes_keep_their_order_and_carry_no_condition() -> None:
    request = calls.batch_write_request(
        "t",
        [calls.RowChange(Action.DELETE, b"d"), calls.RowChange(Action.PUT, b"p"), calls.RowChange(Action.UPDATE, b"u")],
    )

    (table,) = request.tables
    assert [(row.type, row.row_change) for row in table.rows] == [(pb.DELETE, b"d"), (pb.PUT, b"p"), (pb.UPDATE, b"u")]
    assert {row.condition.row_existence for row in table.rows} == {pb.IGNORE}
    assert request.IsInitialized()


def test_outcomes_follow_the_rows() -> None:
    response = pb.BatchWriteRowResponse()
    table = response.tables.add(table_name="t")
    table.rows.add(is_ok=True)
    refused = table.rows.add(is_ok=False)
    refused.error.code, refused.error.message = "OTSInvalidPK", "no"

    assert calls.batch_write_outcomes(response, 2) == [calls.RowOutcome(None), calls.RowOutcome("OTSInvalidPK", "no")]
    with pytest.raises(CodecError, match="lists 2 rows, sent were 3"):
        calls.batch_write_outcomes(response, 3)


def test_a_range_goes_from_start_to_end() -> None:
    start, end = (("pk", Marker.INF_MIN),), (("pk", "z"),)

    request = calls.get_range_request("t", start, end, max_versions=3, limit=10)

    assert decode_primary_key(request.inclusive_start_primary_key) == start
    assert decode_primary_key(request.exclusive_end_primary_key) == end
    assert (request.direction, request.max_versions, request.limit) == (pb.FORWARD, 3, 10)
    assert not request.HasField("time_range")


def test_a_range_may_have_the_cells_of_some_versions_alone() -> None:
    start, end = (("pk", Marker.INF_MIN),), (("pk", "z"),)

    asked = calls.get_range_request("t", start, end, max_versions=3, versions=(5, 9)).time_range

    assert (asked.start_time, asked.end_time) == (5, 9)


def test_no_next_key_is_the_end() -> None:
    response = pb.GetRangeResponse(rows=b"r")
    assert calls.get_range_page(response) == calls.RangePage(b"r", None)

    response.next_start_primary_key = encode_primary_key((("pk", "m"),))
    assert calls.get_range_page(response).next_start == (("pk", "m"),)


def test_points_become_ranges_without_gaps_and_left_out_columns_count_as_least() -> None:
    response = pb.ComputeSplitPointsBySizeResponse()
    response.schema.add(name="a", type=pb.STRING)
    response.schema.add(name="b", type=pb.INTEGER)
    response.split_points.append(encode_primary_key((("a", "m"),)))
    response.split_points.append(encode_primary_key((("a", "t"), ("b", 5))))
    response.locations.add(location="x", repeat=2)

    ranges = calls.compute_splits_ranges(response)

    assert [(part.start, part.end) for part in ranges] == [
        ((("a", Marker.INF_MIN), ("b", Marker.INF_MIN)), (("a", "m"), ("b", Marker.INF_MIN))),
        ((("a", "m"), ("b", Marker.INF_MIN)), (("a", "t"), ("b", 5))),
        ((("a", "t"), ("b", 5)), (("a", Marker.INF_MAX), ("b", Marker.INF_MAX))),
    ]
    assert [part.location for part in ranges] == ["x", "x", ""]


def test_a_description_keeps_keys_options_and_stream() -> None:
    response = pb.DescribeTableResponse()
    response.table_meta.table_name = "t"
    response.table_meta.primary_key.add(name="a", type=pb.STRING)
    response.table_meta.primary_key.add(name="b", type=pb.INTEGER, option=pb.AUTO_INCREMENT)
    response.table_options.time_to_live = -1
    response.table_options.max_versions = 3
    response.table_options.deviation_cell_version_in_sec = 86400
    response.stream_details.enable_stream = True
    response.stream_details.stream_id = "s"
    response.stream_details.expiration_time = 168

    assert calls.describe_table_result(response) == calls.TableDescription(
        "t",
        (calls.KeyColumn("a", KeyType.STRING), calls.KeyColumn("b", KeyType.INTEGER, auto_increment=True)),
        -1,
        3,
        86400,
        calls.StreamDescription(True, "s", 168),
    )


@pytest.mark.parametrize("found", [None, 0])
def test_a_description_without_time_to_live_is_refused(found: int | None) -> None:
    # taken for 0 it would leave every cell out as expired
    response = pb.DescribeTableResponse()
    response.table_meta.table_name = "t"
    response.stream_details.enable_stream = True
    if found is not None:
        response.table_options.time_to_live = found

    with pytest.raises(CodecError, match="time_to_live: found 0 or none"):
        calls.describe_table_result(response)
    assert calls.describe_stream_result(response).enabled, "that does not rely on it"


@pytest.mark.parametrize("allowed", [True, False, None])
def test_a_description_says_whether_rows_may_be_updated(allowed: bool | None) -> None:
    response = pb.DescribeTableResponse()
    response.table_options.time_to_live = -1
    if allowed is not None:
        response.table_options.allow_update = allowed

    assert calls.describe_table_result(response).allow_update is (allowed is not False)
