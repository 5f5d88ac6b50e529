"""A channel whose next records are beyond the retention: the tunnel expires, or goes on in one of three ways."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import pytest

from ots_emulator.settings import AfterRetention
from ots_tunnel.errors import TunnelExpired
from tests.support.emulator.emulator_driver import Driver

GOES_ON = [AfterRetention.OLDEST, AfterRetention.LATEST, AfterRetention.LATEST_AT_OPEN]
HOUR = 3600.0
Behind = Callable[[AfterRetention], Awaitable[tuple[Driver, str, str, str]]]


@pytest.fixture
def behind(make_driver: Callable[..., Driver]) -> Behind:
    """Makes a tunnel whose checkpoint lies before record 1, which is trimmed, and record 2, which is left."""

    async def make(after_retention: AfterRetention) -> tuple[Driver, str, str, str]:
        driver = make_driver(after_retention=after_retention)
        await driver.create_table(hours=1)
        tunnel = await driver.create_tunnel("Stream")
        (channel,) = await driver.channels(tunnel, "Stream")
        token = (await driver.checkpoint_of(tunnel, channel)).checkpoint
        await driver.put(1)
        driver.clock.advance(HOUR - 60)
        await driver.put(2)
        driver.clock.advance(120)
        return driver, tunnel, channel, token

    return make


async def test_the_tunnel_expires(behind: Behind) -> None:
    driver, tunnel, channel, token = await behind(AfterRetention.EXPIRE)

    with pytest.raises(TunnelExpired, match="OTSTunnelExpired"):
        await driver.read(tunnel, channel, token)
    assert (await driver.describe(tunnel)).tunnel.expired


async def test_a_read_at_an_older_token_than_the_checkpoint_expires_nothing(make_driver: Callable[..., Driver]) -> None:
    driver = make_driver()
    await driver.create_table(hours=1)
    tunnel = await driver.create_tunnel("Stream")
    (channel,) = await driver.channels(tunnel, "Stream")
    older = (await driver.checkpoint_of(tunnel, channel)).checkpoint
    await driver.put(1)
    stored = (await driver.read(tunnel, channel, older)).next_token
    await driver.checkpoint(tunnel, channel, stored, 1)
    driver.clock.advance(HOUR + 60)
    await driver.put(2)

    with pytest.raises(TunnelExpired, match="OTSTunnelExpired"):
        await driver.read(tunnel, channel, older)

    assert not (await driver.describe(tunnel)).tunnel.expired
    assert len((await driver.read(tunnel, channel, stored)).records) == 1


@pytest.mark.parametrize("variant", GOES_ON)
async def test_the_tunnel_goes_on(behind: Behind, variant: AfterRetention) -> None:
    driver, tunnel, channel, _ = await behind(variant)

    client = await driver.connect(tunnel)
    assert list(await driver.heartbeat(tunnel, client)) == [channel]
    described = await driver.describe(tunnel)
    assert not described.tunnel.expired
    assert described.channels[0].channel_rpo == 0


async def test_a_read_goes_on_from_the_oldest_record_left(behind: Behind) -> None:
    driver, tunnel, channel, _ = await behind(AfterRetention.OLDEST)

    records, _ = await driver.drain(tunnel, channel)
    assert [row.primary_key for _, row in records] == [(("k", 2),)]


async def test_a_read_goes_on_from_the_latest_record(behind: Behind) -> None:
    driver, tunnel, channel, token = await behind(AfterRetention.LATEST)

    records, following = await driver.drain(tunnel, channel)
    assert records == []
    await driver.put(3)
    page = await driver.read(tunnel, channel, following)
    assert len(page.records) == 1
    assert (await driver.checkpoint_of(tunnel, channel)).checkpoint == token, "the stored cursor does not move by reads"


async def test_an_opened_channel_goes_on_from_the_latest_record(behind: Behind) -> None:
    driver, tunnel, channel, token = await behind(AfterRetention.LATEST_AT_OPEN)

    with pytest.raises(TunnelExpired, match="OTSTunnelServerUnavailable: OTSTrimmedDataAccess Requested") as trimmed:
        await driver.read(tunnel, channel, token)
    assert len(trimmed.value.message) == 117, "as in a recording of the public Elixir client"
    opened = await driver.checkpoint_of(tunnel, channel)
    assert (opened.checkpoint != token, opened.sequence_number) == (True, 0)
    assert (await driver.describe(tunnel)).channels[0].channel_rpo == 0, "only a checkpoint moves the consume point"

    await driver.put(3)
    assert len((await driver.read(tunnel, channel, opened.checkpoint)).records) == 1
    driver.clock.advance(HOUR / 2)
    await driver.checkpoint(tunnel, channel, opened.checkpoint, 1)
    assert (await driver.checkpoint_of(tunnel, channel)).checkpoint == opened.checkpoint


@pytest.mark.parametrize("variant", GOES_ON)
async def test_a_channel_whose_partition_is_gone_ends(behind: Behind, variant: AfterRetention) -> None:
    driver, tunnel, channel, token = await behind(variant)
    driver.emulator.split("demo", "t")
    driver.clock.advance(2 * HOUR)

    if variant is AfterRetention.LATEST_AT_OPEN:
        with pytest.raises(TunnelExpired):
            await driver.read(tunnel, channel, token)
        assert (await driver.checkpoint_of(tunnel, channel)).checkpoint == "finished"
    else:
        assert (await driver.read(tunnel, channel, token)).next_token == "finished"


@pytest.mark.parametrize("variant", GOES_ON)
async def test_within_the_retention_nothing_changes(
    make_driver: Callable[..., Driver], variant: AfterRetention
) -> None:
    driver = make_driver(after_retention=variant)
    await driver.create_table(hours=1)
    await driver.fill(3)
    tunnel = await driver.create_tunnel("BaseAndStream")
    (channel,) = await driver.channels(tunnel, "Stream")
    await driver.fill(3)
    driver.clock.advance(HOUR - 1)

    assert len((await driver.drain(tunnel, channel))[0]) == 3
    assert len((await driver.drain(tunnel, "BaseData_0"))[0]) == 3


@pytest.mark.parametrize("variant", list(AfterRetention))
async def test_a_channel_that_has_read_everything_ends_with_its_partition(
    make_driver: Callable[..., Driver], variant: AfterRetention
) -> None:
    """It misses nothing when its partition has left the log, and its children go on."""
    driver = make_driver(after_retention=variant)
    await driver.create_table(hours=1)
    await driver.fill(4)
    tunnel = await driver.create_tunnel("Stream")
    (channel,) = await driver.channels(tunnel, "Stream")
    token = (await driver.checkpoint_of(tunnel, channel)).checkpoint
    driver.emulator.split("demo", "t")
    driver.clock.advance(2 * HOUR)

    assert (await driver.checkpoint_of(tunnel, channel)).checkpoint == token
    assert (await driver.read(tunnel, channel, token)).next_token == "finished"
    assert not (await driver.describe(tunnel)).tunnel.expired


async def test_a_table_without_a_log_expires_its_tunnels_whatever_the_setting_says(behind: Behind) -> None:
    driver, tunnel, channel, token = await behind(AfterRetention.OLDEST)
    instance = driver.emulator.instances["demo"]
    instance.disable_stream(instance.table("t"))

    with pytest.raises(TunnelExpired):
        await driver.read(tunnel, channel, token)
