from __future__ import annotations

import asyncio

import pytest

from ots_tunnel.rate import RateLimit


@pytest.mark.looptime
async def test_reads_wait_until_the_rate_allows_the_records_read() -> None:
    loop = asyncio.get_running_loop()
    limit = RateLimit(100)
    began = loop.time()

    await limit.ready()
    limit.spend(250)
    limit.spend(50)
    await limit.ready()

    assert loop.time() - began == pytest.approx(3.0, abs=0.01)


@pytest.mark.looptime
async def test_channels_that_wait_together_do_not_read_together() -> None:
    loop = asyncio.get_running_loop()
    limit, came = RateLimit(100), []

    async def channel() -> None:
        while loop.time() < end:
            charged = await limit.ready()
            await asyncio.sleep(0.1)
            came.append(loop.time())
            limit.spend(50, charged)

    end = loop.time() + 60
    await asyncio.gather(*(channel() for _ in range(8)))

    assert len(came) == pytest.approx(60 * 100 / 50, abs=10)
    settled = [at for at in came if at > came[0] + 10]
    assert max(sum(at <= other < at + 1 for other in settled) for at in settled) <= 3  # 150 rows


@pytest.mark.looptime
async def test_a_read_that_failed_costs_nothing() -> None:
    loop = asyncio.get_running_loop()
    limit = RateLimit(100)
    limit.spend(1000)
    charged = await limit.ready()
    before = loop.time()

    limit.refund(charged)
    await limit.ready()

    assert charged == 1000
    assert loop.time() == before


@pytest.mark.looptime
async def test_no_limit_never_waits() -> None:
    loop = asyncio.get_running_loop()
    limit = RateLimit(0)
    began = loop.time()

    limit.spend(1_000_000)
    await limit.ready()

    assert loop.time() == began
