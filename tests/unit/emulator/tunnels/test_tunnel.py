from __future__ import annotations

import asyncio
import json
from collections.abc import Callable

import pytest

from ots_emulator.server.faults import FaultRule
from ots_emulator.tunnels.tokens import StreamCursor, stream_token
from ots_tunnel.errors import (
    ConnectionLost,
    ObjectAlreadyExist,
    ParameterInvalid,
    ResourceGone,
    SequenceNumberMismatch,
    ServerUnavailable,
    TunnelExpired,
)
from ots_tunnel.model import Action, CellOp
from ots_tunnel.protocol import table_pb2, tunnel_pb2
from ots_tunnel.protocol.plainbuffer.codec import encode_row
from tests.support.emulator.emulator_driver import IGNORE, Driver, delete_all, delete_one, increment, put

MakeDriver = Callable[..., Driver]


def keys_of(records: list) -> list[int]:
    return [row.primary_key[0][1] for _, row in records]


async def test_init_shows_no_channels(make_driver: MakeDriver) -> None:
    driver = make_driver(init_delay=5.0)
    await driver.create_table()
    tunnel = await driver.create_tunnel()
    client = await driver.connect(tunnel)

    during = await driver.describe(tunnel)
    held = await driver.heartbeat(tunnel, client)
    driver.clock.advance(5)
    after = await driver.describe(tunnel)

    assert (during.tunnel.stage, len(during.channels), held) == ("InitBaseDataAndStreamShard", 0, {})
    assert (after.tunnel.stage, len(after.channels)) == ("ProcessBaseData", 2)


async def test_create_tunnel_switches_the_stream_on_for_a_week(driver: Driver) -> None:
    await driver.create_tunnel()

    details = (await driver.call("DescribeTable", table_name="t")).stream_details

    assert details.enable_stream
    assert details.expiration_time == 168


async def test_base_channels_deliver_every_row_once_in_key_order(make_driver: MakeDriver) -> None:
    driver = make_driver(partitions=4, page_rows=7)
    await driver.create_table(max_versions=3)
    await driver.fill(100)
    now = driver.now_ms
    await driver.update(50, put("v", 1, now - 1), put("w", 2))
    tunnel = await driver.create_tunnel("BaseData")

    found: list[int] = []
    for channel in await driver.channels(tunnel, "BaseData"):
        records, token = await driver.drain(tunnel, channel)
        assert token == "finished"
        assert keys_of(records) == sorted(keys_of(records))
        assert all(action is Action.PUT and row.sequence is None for action, row in records)
        found += keys_of(records)
        for _, row in records:
            if row.primary_key[0][1] == 50:
                assert [(c.name, c.timestamp_ms) for c in row.columns] == [("v", now), ("v", now - 1), ("w", now)]
    assert sorted(found) == list(range(100))
    assert len(await driver.channels(tunnel, "BaseData")) == 4


async def test_the_base_scan_is_live(make_driver: MakeDriver) -> None:
    driver = make_driver(page_rows=5)
    await driver.create_table()
    await driver.fill(10)
    tunnel = await driver.create_tunnel("BaseData")
    token = (await driver.checkpoint_of(tunnel, "BaseData_0")).checkpoint

    page = await driver.read(tunnel, "BaseData_0", token)
    await driver.fill(5, start=10)
    await driver.delete(6)
    rest = await driver.read(tunnel, "BaseData_0", page.next_token)
    last = await driver.read(tunnel, "BaseData_0", rest.next_token)

    assert [len(page.records), len(rest.records), len(last.records)] == [5, 5, 4]
    assert last.next_token == "finished"


@pytest.mark.parametrize(("kind", "keys"), [("STRING", ["x" * 1024, "y"]), ("BINARY", [b"x" * 1024, b"y"])])
async def test_a_page_of_base_data_may_end_with_the_longest_key(
    make_driver: MakeDriver, kind: str, keys: list[str | bytes]
) -> None:
    driver = make_driver(page_rows=1)
    schema = table_pb2.TableMeta(table_name="t", primary_key=[table_pb2.PrimaryKeySchema(name="k", type=kind)])
    options = table_pb2.TableOptions(time_to_live=-1, max_versions=1)
    throughput = table_pb2.ReservedThroughput(capacity_unit=table_pb2.CapacityUnit(read=0, write=0))
    await driver.call("CreateTable", table_meta=schema, table_options=options, reserved_throughput=throughput)
    for key in keys:
        await driver.call("PutRow", table_name="t", row=encode_row((("k", key),)), condition=IGNORE)
    tunnel = await driver.create_tunnel("BaseData")

    records, token = await driver.drain(tunnel, "BaseData_0")

    assert keys_of(records) == keys
    assert token == "finished"


async def test_stream_records_hold_what_was_written(driver: Driver) -> None:
    tunnel = await driver.create_tunnel("Stream")
    now = driver.now_ms
    await driver.put(1, put("a", 1), put("b", 2, now - 5))
    await driver.update(1, put("c", 3), delete_one("b", now - 5), delete_all("a"), increment("d", 7))
    await driver.delete(1)
    channel = next(iter(await driver.channels(tunnel, "Stream")))

    records, _ = await driver.drain(tunnel, channel)

    assert [action for action, _ in records] == [Action.PUT, Action.UPDATE, Action.DELETE]
    assert [(c.name, c.value, c.timestamp_ms) for c in records[0][1].columns] == [("a", 1, now), ("b", 2, now - 5)]
    assert [(c.name, c.value, c.timestamp_ms, c.op) for c in records[1][1].columns] == [
        ("c", 3, now, CellOp.PUT),
        ("b", None, now - 5, CellOp.DELETE_ONE_VERSION),
        ("a", None, None, CellOp.DELETE_ALL_VERSIONS),
        ("d", 7, now, CellOp.PUT),
    ]
    assert records[2][1].delete_marker
    assert records[2][1].columns == ()
    sequences = [row.sequence for _, row in records]
    assert sequences == sorted(sequences)
    assert len(set(sequences)) == 3


async def test_stream_of_base_and_stream_starts_at_creation(driver: Driver) -> None:
    await driver.create_tunnel("Stream", name="first")
    await driver.put(1, put("a", 1))
    tunnel = await driver.create_tunnel("BaseAndStream")
    await driver.put(2, put("a", 1))
    channel = next(iter(await driver.channels(tunnel, "Stream")))

    records, _ = await driver.drain(tunnel, channel)

    assert keys_of(records) == [2]


async def test_earliest_and_start_offset_read_the_past(driver: Driver) -> None:
    await driver.create_tunnel("Stream", name="first")
    for key in range(3):
        await driver.put(key)
        driver.clock.advance(10)
    start_ns = int((driver.clock.now() - 20) * 1e9)
    earliest = await driver.create_tunnel("Stream", name="earliest", flag="EARLIEST")
    middle = await driver.create_tunnel("Stream", name="middle", startOffset=start_ns)
    latest = await driver.create_tunnel("Stream", name="latest")

    found = [
        keys_of((await driver.drain(tunnel, next(iter(await driver.channels(tunnel, "Stream")))))[0])
        for tunnel in (earliest, middle, latest)
    ]

    assert found == [[0, 1, 2], [1, 2], []]
    config = (await driver.describe(middle)).tunnel.stream_tunnel_config
    assert (config.flag, config.startOffset, config.endOffset) == (tunnel_pb2.LATEST, start_ns, 0)


async def test_a_partition_without_records_passes_its_parents_on(driver: Driver) -> None:
    """A partition that was split twice in a row: the second generation has no records, and the third waits with it."""
    await driver.create_tunnel("Stream", name="first")
    await driver.fill(10)
    first, *_ = driver.emulator.split("demo", "t")
    _, second, _ = driver.emulator.split("demo", "t")
    await driver.put(0)
    tunnel = await driver.create_tunnel("Stream", name="second", flag="EARLIEST")

    client = await driver.connect(tunnel)

    assert list(await driver.heartbeat(tunnel, client)) == [first]
    assert second in await driver.channels(tunnel, "Stream")


async def test_end_offset_finishes_the_channel(driver: Driver) -> None:
    end_ns = int((driver.clock.now() + 15) * 1e9)
    tunnel = await driver.create_tunnel("Stream", endOffset=end_ns)
    channel = next(iter(await driver.channels(tunnel, "Stream")))
    await driver.put(1)
    before = await driver.drain(tunnel, channel)
    driver.clock.advance(20)
    await driver.put(2)

    records, token = await driver.drain(tunnel, channel)

    assert before[1] != "finished"
    assert (keys_of(records), token) == ([1], "finished")


async def test_offsets_that_contradict_or_lie_outside_are_refused(driver: Driver) -> None:
    now_ns = int(driver.clock.now() * 1e9)
    for config in (
        {"startOffset": now_ns - 10, "endOffset": now_ns - 20},
        {"startOffset": now_ns + 10**9},
        {"startOffset": now_ns - 168 * 3600 * 10**9},
        {"endOffset": 2**63},
        {"endOffset": 2**64 - 1},
    ):
        with pytest.raises(ParameterInvalid):
            await driver.create_tunnel("Stream", **config)


async def test_names_are_taken_per_table(driver: Driver) -> None:
    await driver.create_tunnel()

    with pytest.raises(ObjectAlreadyExist):
        await driver.create_tunnel()
    with pytest.raises(ParameterInvalid):
        await driver.create_tunnel(table="other")
    with pytest.raises(ParameterInvalid):
        await driver.create_tunnel(name="no spaces")


async def test_list_describe_delete(driver: Driver) -> None:
    tunnel = await driver.create_tunnel()

    listed = await driver.call("ListTunnel", table_name="t")
    by_name = await driver.call("DescribeTunnel", table_name="t", tunnel_name="tunnel")
    await driver.call("DeleteTunnel", table_name="t", tunnel_name="tunnel")

    assert [info.tunnel_id for info in listed.tunnels] == [tunnel] == [by_name.tunnel.tunnel_id]
    with pytest.raises(ParameterInvalid, match="tunnel not exist"):
        await driver.describe(tunnel)
    with pytest.raises(ParameterInvalid):
        await driver.call("DeleteTunnel", table_name="t", tunnel_name="tunnel")


@pytest.mark.parametrize("name", ["DescribeTunnel", "DeleteTunnel"])
async def test_only_a_list_of_tunnels_takes_an_empty_name_of_the_table(driver: Driver, name: str) -> None:
    await driver.create_tunnel("Stream")

    with pytest.raises(ParameterInvalid, match="tunnel not exist"):
        await driver.call(name, table_name="", tunnel_name="tunnel")

    listed = await driver.call("ListTunnel", table_name="")
    assert [(tunnel.table_name, tunnel.tunnel_name) for tunnel in listed.tunnels] == [("t", "tunnel")]
    assert not (await driver.call("ListTunnel", table_name="other")).tunnels


async def test_stream_channels_open_when_base_channels_are_done(driver: Driver) -> None:
    tunnel = await driver.create_tunnel()
    client = await driver.connect(tunnel)
    base = await driver.heartbeat(tunnel, client)
    described = await driver.describe(tunnel)

    stream = await driver.heartbeat(tunnel, client, ("BaseData_0", 2, "TERMINATED"))

    assert base == {"BaseData_0": (1, "OPEN")}
    assert [channel.channel_status for channel in described.channels] == ["OPEN", "WAIT"]
    assert [status for _, status in stream.values()] == ["OPEN"]
    assert "BaseData_0" not in stream
    assert (await driver.describe(tunnel)).tunnel.stage == "ProcessStream"


async def test_children_wait_for_their_parent(driver: Driver) -> None:
    await driver.fill(10)
    tunnel = await driver.create_tunnel("Stream")
    client = await driver.connect(tunnel)
    held = await driver.heartbeat(tunnel, client)
    await driver.put(1, put("v", "before"))
    parent, *children = driver.emulator.split("demo", "t")
    await driver.put(1, put("v", "after"))

    waiting = await driver.heartbeat(tunnel, client)
    records, token = await driver.drain(tunnel, parent)
    channels = await driver.channels(tunnel, "Stream")
    opened = await driver.heartbeat(tunnel, client, (parent, 2, "TERMINATED"))

    assert list(held) == list(waiting) == [parent]
    assert (keys_of(records), token) == ([1], "finished")
    assert {channels[child].channel_status for child in children} == {"WAIT"}
    assert sorted(opened) == sorted(children)
    after = [len((await driver.drain(tunnel, child))[0]) for child in children]
    assert sorted(after) == [0, 1]


async def test_hand_over_goes_through_closing_and_close(driver: Driver) -> None:
    await driver.fill(100)
    await driver.create_tunnel("Stream", name="other")
    for _ in range(3):
        driver.emulator.split("demo", "t")
    tunnel = await driver.create_tunnel("Stream")
    first = await driver.connect(tunnel)
    all_four = await driver.heartbeat(tunnel, first)
    second = await driver.connect(tunnel)
    taken = await driver.heartbeat(tunnel, second)
    closing = {id_: state for id_, state in (await driver.heartbeat(tunnel, first)).items() if state[1] == "CLOSING"}

    kept = await driver.heartbeat(
        tunnel, first, *[(id_, version + 1, "CLOSE") for id_, (version, _) in closing.items()]
    )
    given = await driver.heartbeat(tunnel, second)

    assert (len(all_four), taken, len(closing)) == (4, {}, 2)
    assert len(kept) == len(given) == 2
    assert set(given) == set(closing)
    assert not set(kept) & set(given)


async def test_old_and_foreign_reports_are_ignored(driver: Driver) -> None:
    tunnel = await driver.create_tunnel("Stream")
    owner, other = await driver.connect(tunnel), await driver.connect(tunnel)
    channel, (version, _) = next(iter((await driver.heartbeat(tunnel, owner)).items()))

    await driver.heartbeat(tunnel, other, (channel, version + 5, "TERMINATED"))
    await driver.heartbeat(tunnel, owner, (channel, version, "CLOSE"))

    assert await driver.heartbeat(tunnel, owner) == {channel: (version, "OPEN")}


async def test_reports_are_accepted_as_a_whole_or_not(make_driver: MakeDriver) -> None:
    driver = make_driver(partitions=2)
    await driver.create_table()
    await driver.fill(10)
    tunnel = await driver.create_tunnel("Stream")
    client = await driver.connect(tunnel)
    held = await driver.heartbeat(tunnel, client)
    (first, (version, _)), (second, _) = held.items()

    with pytest.raises(ParameterInvalid, match="is too high"):
        await driver.heartbeat(tunnel, client, (first, version + 1, "CLOSE"), (second, 2**62 + 1, "OPEN"))

    assert await driver.heartbeat(tunnel, client) == held


async def test_a_tied_end_is_accepted_while_closing(driver: Driver) -> None:
    tunnel = await driver.create_tunnel("Stream")
    client = await driver.connect(tunnel)
    channel, (version, _) = next(iter((await driver.heartbeat(tunnel, client)).items()))
    driver.emulator.rebalance("demo", "tunnel", channel)

    await driver.heartbeat(tunnel, client, (channel, version + 1, "TERMINATED"))

    assert (await driver.channels(tunnel, "Stream"))[channel].channel_status == "TERMINATED"


async def test_a_silent_client_loses_its_channels(driver: Driver) -> None:
    tunnel = await driver.create_tunnel("Stream")
    silent = await driver.connect(tunnel, timeout=15)
    channel, (version, _) = next(iter((await driver.heartbeat(tunnel, silent)).items()))
    driver.clock.advance(15.1)

    shown = (await driver.channels(tunnel, "Stream"))[channel]
    other = await driver.connect(tunnel)

    assert (shown.channel_status, shown.client_id) == ("CLOSE", "")
    assert await driver.heartbeat(tunnel, other) == {channel: (version + 2, "OPEN")}
    with pytest.raises(ResourceGone):
        await driver.heartbeat(tunnel, silent)


async def test_a_silent_client_loses_its_channels_after_the_clock_was_set_back(driver: Driver) -> None:
    tunnel = await driver.create_tunnel("Stream")
    await driver.heartbeat(tunnel, await driver.connect(tunnel, timeout=15))
    driver.emulator.advance_clock(-86_400)
    other = await driver.connect(tunnel, timeout=300)
    driver.clock.advance(15.1)

    assert await driver.heartbeat(tunnel, other)


async def test_shutdown_frees_channels_at_once(driver: Driver) -> None:
    tunnel = await driver.create_tunnel("Stream")
    first, second = await driver.connect(tunnel), await driver.connect(tunnel)
    held = await driver.heartbeat(tunnel, first)

    await driver.call("Shutdown", tunnel_id=tunnel, client_id=first)
    await driver.call("Shutdown", tunnel_id=tunnel, client_id=first)

    assert set(await driver.heartbeat(tunnel, second)) == set(held)


async def test_forced_expiry_of_clients_and_tunnel(driver: Driver) -> None:
    tunnel = await driver.create_tunnel("Stream")
    client = await driver.connect(tunnel)
    assert driver.emulator.expire_clients("demo", "tunnel") == [client]
    with pytest.raises(ResourceGone):
        await driver.heartbeat(tunnel, client)

    client = await driver.connect(tunnel)
    channel = next(iter(await driver.heartbeat(tunnel, client)))
    token = (await driver.checkpoint_of(tunnel, channel)).checkpoint
    driver.emulator.expire_tunnel("demo", "tunnel")

    for call in (
        driver.connect(tunnel),
        driver.heartbeat(tunnel, client),
        driver.read(tunnel, channel, token),
    ):
        with pytest.raises(TunnelExpired):
            await call
    assert (await driver.describe(tunnel)).tunnel.expired


async def test_the_page_and_describe_tunnel_agree_about_expiry(driver: Driver) -> None:
    await driver.create_table("s", hours=1)
    tunnel = await driver.create_tunnel("Stream", table="s")
    await driver.fill(10, table="s")
    driver.clock.advance(7200)

    (shown,) = driver.emulator.state()["instances"][0]["tunnels"]

    assert shown["expired"] is True
    assert (await driver.describe(tunnel)).tunnel.expired


async def test_trimmed_log_expires_the_tunnel(driver: Driver) -> None:
    tunnel = await driver.create_tunnel("Stream")
    channel = next(iter(await driver.channels(tunnel, "Stream")))
    token = (await driver.checkpoint_of(tunnel, channel)).checkpoint
    await driver.put(1)
    driver.emulator.trim("demo", "t")

    with pytest.raises(TunnelExpired):
        await driver.read(tunnel, channel, token)


async def test_sequence_numbers(driver: Driver) -> None:
    tunnel = await driver.create_tunnel("Stream")
    channel = next(iter(await driver.channels(tunnel, "Stream")))
    first = await driver.checkpoint_of(tunnel, channel)
    await driver.checkpoint(tunnel, channel, first.checkpoint, 5)

    for stale in (5, 4):
        with pytest.raises(SequenceNumberMismatch):
            await driver.checkpoint(tunnel, channel, "finished", stale)
    await driver.checkpoint(tunnel, channel, "finished", 0)

    stored = await driver.checkpoint_of(tunnel, channel)
    assert (first.sequence_number, stored.sequence_number, stored.checkpoint) == (0, 5, "finished")


async def test_a_token_of_another_channel_is_refused(driver: Driver) -> None:
    await driver.fill(10)
    tunnel = await driver.create_tunnel()
    base = (await driver.checkpoint_of(tunnel, "BaseData_0")).checkpoint
    channel = next(iter(await driver.channels(tunnel, "Stream")))

    for token in (base, "nonsense"):
        with pytest.raises(ParameterInvalid):
            await driver.checkpoint(tunnel, channel, token, 1)
        with pytest.raises(ParameterInvalid):
            await driver.read(tunnel, channel, token)
    assert (await driver.checkpoint_of(tunnel, channel)).sequence_number == 0


async def test_a_token_of_another_base_channel_is_refused(make_driver: MakeDriver) -> None:
    driver = make_driver(base_split_bytes=500, page_rows=5)
    await driver.create_table()
    await driver.fill(40)
    tunnel = await driver.create_tunnel()
    channels = sorted(await driver.channels(tunnel, "BaseData"))
    tokens: dict[str, list[str]] = {}
    for channel in channels:
        tokens[channel] = [(await driver.checkpoint_of(tunnel, channel)).checkpoint]
        while (page := await driver.read(tunnel, channel, tokens[channel][-1])).next_token != "finished":
            tokens[channel].append(page.next_token)
    assert all(len(found) > 1 for found in tokens.values())

    for channel in channels:
        for token in (token for other in channels if other != channel for token in tokens[other]):
            with pytest.raises(ParameterInvalid, match="token does not belong to this channel"):
                await driver.read(tunnel, channel, token)
            with pytest.raises(ParameterInvalid, match="token does not belong to this channel"):
                await driver.checkpoint(tunnel, channel, token, 1)
        for sequence, token in enumerate(tokens[channel], 1):
            await driver.checkpoint(tunnel, channel, token, sequence)


async def consume(driver: Driver, tunnel: str, channel: str, sequence: int) -> None:
    token = (await driver.checkpoint_of(tunnel, channel)).checkpoint
    page = await driver.read(tunnel, channel, token)
    await driver.checkpoint(tunnel, channel, page.next_token, sequence)


async def test_consume_point_moves_with_checkpoints_of_idle_reads(driver: Driver) -> None:
    tunnel = await driver.create_tunnel("Stream")
    channel = next(iter(await driver.channels(tunnel, "Stream")))
    token = (await driver.checkpoint_of(tunnel, channel)).checkpoint
    driver.clock.advance(100)

    page = await driver.read(tunnel, channel, token)
    only_read = (await driver.describe(tunnel)).tunnel_rpo
    driver.clock.advance(100)
    await driver.checkpoint(tunnel, channel, page.next_token, 1)
    described = await driver.describe(tunnel)

    assert only_read == 0
    assert described.tunnel_rpo == described.channels[0].channel_rpo == int((driver.clock.now() - 100) * 1e9)


async def time_of_next_record_ns(driver: Driver, tunnel: str, channel: str) -> int:
    (_, row), *_ = (await driver.drain(tunnel, channel))[0]
    assert row.sequence is not None
    return row.sequence.timestamp_us * 1000


@pytest.mark.parametrize("seconds", [0, 3600])
async def test_no_record_comes_before_a_consume_point_where_the_clock_steps_back(driver: Driver, seconds: int) -> None:
    tunnel = await driver.create_tunnel("Stream")
    channel = next(iter(await driver.channels(tunnel, "Stream")))
    driver.clock.advance(3600)
    await consume(driver, tunnel, channel, 1)
    driver.clock.advance(-seconds)
    await driver.put(1)

    assert await time_of_next_record_ns(driver, tunnel, channel) > (await driver.describe(tunnel)).tunnel_rpo > 0


async def test_no_record_comes_before_an_end_time_that_was_reached(driver: Driver) -> None:
    end_ns = int((driver.clock.now() + 15) * 1e9)
    ended = await driver.create_tunnel("Stream", name="ended", endOffset=end_ns)
    tunnel = await driver.create_tunnel("Stream")
    channel = next(iter(await driver.channels(tunnel, "Stream")))
    driver.clock.advance(20)
    reached = await driver.drain(ended, channel)
    driver.clock.advance(-20)
    await driver.put(1)

    assert reached == await driver.drain(ended, channel) == ([], "finished")
    assert await time_of_next_record_ns(driver, tunnel, channel) > end_ns


async def test_a_forged_token_moves_no_consume_point_into_the_future(driver: Driver) -> None:
    tunnel = await driver.create_tunnel("Stream", endOffset=2**63 - 1)
    channel = next(iter(await driver.channels(tunnel, "Stream")))
    now_ns = int(driver.clock.now() * 1e6) * 1000

    for sequence, token in enumerate((stream_token(channel, StreamCursor(0, 0, 2**62 - 1)), "finished"), 1):
        await driver.checkpoint(tunnel, channel, token, sequence)
        assert (await driver.describe(tunnel)).channels[0].channel_rpo == now_ns


async def test_without_idle_advance_the_consume_point_is_the_last_record(make_driver: MakeDriver) -> None:
    driver = make_driver(idle_advance=False)
    await driver.create_table()
    tunnel = await driver.create_tunnel("Stream")
    channel = next(iter(await driver.channels(tunnel, "Stream")))
    await driver.put(1)
    (_, row), *_ = (await driver.drain(tunnel, channel))[0]
    driver.clock.advance(100)

    await consume(driver, tunnel, channel, 1)
    await consume(driver, tunnel, channel, 2)

    assert row.sequence is not None
    described = await driver.describe(tunnel)
    assert described.tunnel_rpo == row.sequence.timestamp_us * 1000
    assert described.channels[0].channel_count == 1


async def test_a_page_that_leaves_records_behind_carries_their_commit_time(make_driver: MakeDriver) -> None:
    driver = make_driver(page_rows=1)
    await driver.create_table()
    tunnel = await driver.create_tunnel("Stream")
    channel = next(iter(await driver.channels(tunnel, "Stream")))
    await driver.put(1)
    await driver.put(2)
    (_, first), *_ = (await driver.drain(tunnel, channel))[0]
    driver.clock.advance(100)

    await consume(driver, tunnel, channel, 1)

    assert first.sequence is not None
    assert (await driver.describe(tunnel)).tunnel_rpo == first.sequence.timestamp_us * 1000


async def test_consume_point_does_not_fall_back_when_a_partition_splits(driver: Driver) -> None:
    await driver.fill(10)
    tunnel = await driver.create_tunnel("Stream")
    client = await driver.connect(tunnel)
    parent = next(iter(await driver.heartbeat(tunnel, client)))
    await consume(driver, tunnel, parent, 1)
    before = (await driver.describe(tunnel)).tunnel_rpo

    driver.emulator.split("demo", "t")
    split = (await driver.describe(tunnel)).tunnel_rpo
    await consume(driver, tunnel, parent, 2)
    await driver.heartbeat(tunnel, client, (parent, 2, "TERMINATED"))
    after = (await driver.describe(tunnel)).tunnel_rpo

    assert 0 < before == split <= after


async def test_rows_of_a_finished_channel_are_counted(driver: Driver) -> None:
    await driver.fill(10)
    tunnel = await driver.create_tunnel("BaseData")
    await consume(driver, tunnel, "BaseData_0", 1)

    channel = (await driver.channels(tunnel, "BaseData"))["BaseData_0"]

    assert (channel.channel_count, channel.channel_rpo) == (10, 0)


async def test_schedule_suspends_resumes_and_ends(driver: Driver) -> None:
    tunnel = await driver.create_tunnel("Stream")
    client = await driver.connect(tunnel)
    channel, (version, _) = next(iter((await driver.heartbeat(tunnel, client)).items()))

    async def schedule(status: str) -> None:
        wanted = tunnel_pb2.Channel(channel_id=channel, version=0, status=status)
        await driver.call("Schedule", tunnel_id=tunnel, channels=[wanted])

    await schedule("CLOSING")
    await driver.heartbeat(tunnel, client, (channel, version + 2, "CLOSE"))
    suspended = await driver.heartbeat(tunnel, client)
    shown = (await driver.channels(tunnel, "Stream"))[channel].channel_status
    await schedule("OPEN")
    resumed = await driver.heartbeat(tunnel, client)
    await schedule("TERMINATED")

    assert (suspended, shown) == ({}, "CLOSING")
    assert set(resumed) == {channel}
    assert await driver.heartbeat(tunnel, client) == {}


async def test_rpo_as_json(driver: Driver) -> None:
    tunnel = await driver.create_tunnel()

    answer = await driver.call("GetRpo", tunnel_id=tunnel)

    infos = json.loads(answer.rpo_infos)
    assert infos["BaseData"]["BaseData_0"]["ChannelTyp"] == "BaseData"
    assert set(json.loads(answer.tunnel_rpo_infos)) == {"BaseData", "Stream"}
    assert answer.tunnel_id == tunnel


async def test_strict_owner_refuses_other_clients(make_driver: MakeDriver) -> None:
    driver = make_driver(strict_owner=True)
    await driver.create_table()
    tunnel = await driver.create_tunnel("Stream")
    channel = next(iter(await driver.channels(tunnel, "Stream")))

    with pytest.raises(ResourceGone):
        await driver.checkpoint_of(tunnel, channel)


async def test_deleting_the_table_deletes_its_tunnels(driver: Driver) -> None:
    tunnel = await driver.create_tunnel()

    await driver.call("DeleteTable", table_name="t")

    with pytest.raises(ParameterInvalid):
        await driver.describe(tunnel)


async def test_faults_by_call_and_count(driver: Driver) -> None:
    tunnel = await driver.create_tunnel()
    driver.emulator.faults.add(FaultRule("Connect", count=1, code="OTSTunnelServerUnavailable"))

    with pytest.raises(ServerUnavailable):
        await driver.connect(tunnel)
    await driver.connect(tunnel)


async def test_a_lost_answer_is_lost_after_the_write(driver: Driver) -> None:
    driver.emulator.faults.add(FaultRule("BatchWriteRow", count=1, drop_response=True))

    with pytest.raises(ConnectionLost):
        await driver.put(1)
    assert await driver.get(1) is not None


async def test_unavailable_for_a_while(driver: Driver) -> None:
    driver.emulator.faults.unavailable(5, driver.clock.now())

    with pytest.raises(ServerUnavailable):
        await driver.call("ListTable")
    driver.clock.advance(5)
    await driver.call("ListTable")


async def test_latency_delays_the_call(driver: Driver) -> None:
    driver.emulator.faults.add(FaultRule("ListTable", count=1, latency=60.0))

    with pytest.raises(TimeoutError):
        await asyncio.wait_for(driver.call("ListTable"), 0.01)
