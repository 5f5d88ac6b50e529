"""Cached pages: the second read of a token shows all changes since the first one."""

from __future__ import annotations

import zlib
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from ots_emulator.pages import Body, PageCache
from ots_tunnel.errors import ServiceError, TunnelExpired
from ots_tunnel.protocol.http.signing import content_md5
from ots_tunnel.protocol.plainbuffer.codec import decode_row
from tests.support.emulator.emulator_driver import Driver, delete_all, put

PAGE_ROWS = 3
ROWS = 10


@pytest.fixture
async def paged() -> Driver:
    driver = Driver(page_rows=PAGE_ROWS)
    await driver.create_table(max_versions=3, hours=24)
    await driver.fill(ROWS)
    return driver


async def first_page(driver: Driver, tunnel: str) -> Callable[[], Awaitable[Any]]:
    """A function that reads the first page of the tunnel's first channel."""
    (channel, *_) = await driver.channels(tunnel, "BaseData") or await driver.channels(tunnel, "Stream")
    token = (await driver.checkpoint_of(tunnel, channel)).checkpoint
    return lambda: driver.read(tunnel, channel, token)


def rows_of(page: Any) -> list[tuple[Any, list[tuple[Any, int | None]]]]:
    rows = [decode_row(record.record) for record in page.records]
    return [(row.primary_key[0][1], [(cell.value, cell.timestamp_ms) for cell in row.columns]) for row in rows]


def kept(driver: Driver) -> PageCache:
    return driver.emulator.instances["demo"].pages


@pytest.mark.parametrize("kind", ["BaseData", "Stream"])
async def test_a_page_is_built_once(paged: Driver, kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    read = await first_page(paged, await paged.create_tunnel(kind, **({"flag": 1} if kind == "Stream" else {})))
    page = await read()
    assert len(kept(paged)) == 1
    assert len(page.records) == PAGE_ROWS

    monkeypatch.setattr("ots_emulator.tunnels.delivery._page", None)

    assert await read() == page


@pytest.mark.parametrize("kind", ["BaseData", "Stream"])
async def test_a_page_that_may_change_is_not_kept(paged: Driver, kind: str) -> None:
    tunnel = await paged.create_tunnel(kind, **({"flag": 1} if kind == "Stream" else {}))
    (channel,) = await paged.channels(tunnel, kind)
    records, _ = await paged.drain(tunnel, channel)

    assert len(records) == ROWS
    assert len(kept(paged)) == ROWS // PAGE_ROWS


async def test_base_pages_show_every_change(paged: Driver) -> None:
    read = await first_page(paged, await paged.create_tunnel("BaseData"))
    assert [key for key, _ in rows_of(await read())] == [0, 1, 2]
    now = paged.now_ms

    await paged.put(1, put("v", "new", now + 1))
    assert rows_of(await read())[1] == (1, [("new", now + 1)])
    await paged.update(1, put("v", "newer", now + 2))
    assert rows_of(await read())[1] == (1, [("newer", now + 2), ("new", now + 1)])
    await paged.call("UpdateTable", table_name="t", table_options={"max_versions": 1})
    assert rows_of(await read())[1] == (1, [("newer", now + 2)])
    await paged.update(1, delete_all("v"))
    assert rows_of(await read())[1] == (1, [])
    await paged.delete(1)
    assert [key for key, _ in rows_of(await read())] == [0, 2, 3]
    await paged.put(-1, put("v", 1))
    assert [key for key, _ in rows_of(await read())] == [-1, 0, 2]


async def test_copies_of_a_table_have_their_own_revisions(paged: Driver) -> None:
    table = paged.emulator.instances["demo"].tables["t"]
    revision = table.revision

    assert table.fork(1).revision != revision
    assert table.revision == revision


async def test_cells_expire_on_kept_pages(paged: Driver) -> None:
    await paged.call("UpdateTable", table_name="t", table_options={"time_to_live": 86_400})
    read = await first_page(paged, await paged.create_tunnel("BaseData"))
    written = paged.now_ms
    paged.clock.advance(3600)
    await paged.update(1, put("w", "later"))
    page = rows_of(await read())
    assert page[1] == (1, [(1, written), ("later", paged.now_ms)])

    paged.clock.advance(86_400 - 3599)

    assert rows_of(await read()) == [(1, [("later", written + 3_600_000)])]


async def test_pages_of_a_deleted_table_are_not_those_of_its_successor(paged: Driver) -> None:
    await (await first_page(paged, await paged.create_tunnel("BaseData")))()
    await paged.call("DeleteTable", table_name="t")
    await paged.create_table()
    await paged.put(0, put("v", "other"))

    read = await first_page(paged, await paged.create_tunnel("BaseData"))

    assert rows_of(await read()) == [(0, [("other", paged.now_ms)])]


async def test_trimmed_pages_are_gone(paged: Driver) -> None:
    read = await first_page(paged, await paged.create_tunnel("Stream", flag=1))
    await read()
    paged.emulator.trim("demo", "t")

    with pytest.raises(TunnelExpired):
        await read()


async def test_entries_beyond_the_retention_are_gone(paged: Driver) -> None:
    read = await first_page(paged, await paged.create_tunnel("Stream", flag=1))
    await read()
    paged.clock.advance(24 * 3600 + 1)

    with pytest.raises(TunnelExpired):
        await read()


async def test_kept_pages_are_for_their_channel_only(paged: Driver) -> None:
    await (await first_page(paged, await paged.create_tunnel("Stream", flag=1)))()
    base = await paged.create_tunnel("BaseData", name="other")
    (channel,) = await paged.channels(base, "BaseData")
    stream = await paged.create_tunnel("Stream", name="third", flag=1)
    (stream_channel,) = await paged.channels(stream, "Stream")
    token = (await paged.checkpoint_of(stream, stream_channel)).checkpoint

    with pytest.raises(ServiceError, match="OTSParameterInvalid"):
        await paged.read(base, channel, token)


async def test_the_end_time_of_a_tunnel_counts(paged: Driver) -> None:
    whole = await first_page(paged, await paged.create_tunnel("Stream", flag=1))
    assert len((await whole()).records) == PAGE_ROWS
    log = paged.emulator.instances["demo"].tables["t"].log
    assert log is not None
    second_us = log.open_partitions[0].times_us[1]

    ended = await first_page(paged, await paged.create_tunnel("Stream", name="e", flag=1, endOffset=second_us * 1000))

    assert (len((await ended()).records), (await ended()).next_token) == (1, "finished")


async def test_pages_follow_their_settings(paged: Driver) -> None:
    read = await first_page(paged, await paged.create_tunnel("BaseData"))
    await read()
    paged.emulator.change_settings(page_rows=2)

    assert len((await read()).records) == 2


async def test_faults_and_expiry_precede_kept_pages(paged: Driver) -> None:
    tunnel = await paged.create_tunnel("BaseData")
    read = await first_page(paged, tunnel)
    await read()
    paged.emulator.expire_tunnel("demo", tunnel)

    with pytest.raises(TunnelExpired):
        await read()


def test_pages_that_were_not_used_for_longest_make_room() -> None:
    cache = PageCache()
    for name in "abc":
        cache.put(name, Body(bytes(10)), 30)
    cache.get("a")
    cache.put("d", Body(bytes(11)), 30)

    assert [name for name in "abcd" if cache.get(name) is not None] == ["a", "d"]


def test_a_page_larger_than_the_limit_is_not_kept() -> None:
    cache = PageCache()
    cache.put("a", Body(bytes(11)), 10)

    assert (len(cache), cache.get("a")) == (0, None)


def test_a_body_has_one_digest_whatever_is_sent() -> None:
    body = Body(b"page" * 100)

    assert body.digest == content_md5(body.content)
    assert zlib.decompress(body.deflated) == body.content
    assert body.deflated is body.deflated
