from __future__ import annotations

import asyncio

import pytest

from ots_tunnel.rate import RateLimit


@pytest.mark.looptime
async def test_reads_wait_until_what_was_read_is_paid_for() -> None:
    loop = asyncio.get_running_loop()
    limit = RateLimit(100)
    began = loop.time()

    await limit.ready()
    limit.spend(250)
    limit.spend(50)
    await limit.ready()

    assert loop.time() - began == pytest.approx(3.0, abs=0.01)


@pytest.mark.looptime
async def test_no_limit_never_waits() -> None:
    loop = asyncio.get_running_loop()
    limit = RateLimit(0)
    began = loop.time()

    limit.spend(1_000_000)
    await limit.ready()

    assert loop.time() == began
