"""Until when a channel counts as read at the moment it is opened."""

from __future__ import annotations

import pytest

from ots_emulator import Emulator
from ots_tunnel.client.tunnel import TunnelClient
from ots_tunnel.model import ChannelId, Checkpoint
from ots_tunnel.transport.inprocess import InProcessTransport
from ots_tunnel.worker.gaps.guard import GapGuard
from ots_tunnel.worker.status.metrics import WorkerMetrics
from ots_tunnel.worker.status.worker_status import WorkerStatus
from tests.support.channel_scene import SETTINGS, at
from tests.support.emulator.emulator_scene import CREDENTIALS
from tests.support.records import page

CHANNEL = ChannelId("channel")
READ = 1_700_000_000.0


@pytest.mark.parametrize(
    ("mark", "read_until"),
    [(None, READ), (READ - 60, READ), (READ + 7200, READ + 7200)],
    ids=["no mark", "an older mark", "a sibling has read it since"],
)
async def test_a_channel_that_comes_back_at_the_token_where_it_was_left(mark: float | None, read_until: float) -> None:
    # the service may leave the token of an idle channel where it is, whoever reads there
    marks: list[float | None] = [None]
    metrics = WorkerMetrics("t")
    # without this tunnel the service describes nothing: only what the worker knows is left, and the mark
    client = TunnelClient("http://emulator", "demo", CREDENTIALS, InProcessTransport(Emulator().handle))
    status = WorkerStatus(SETTINGS.tunnel_id, "tag", metrics)
    guard = GapGuard(client, SETTINGS, status, metrics, lambda _: marks[-1])

    watch = await guard.watch(CHANNEL, Checkpoint(at("t0"), 1))
    await watch.check(page(0, at("t0"), may_more=False, service_time=READ), None)
    marks.append(mark)

    assert (await guard.watch(CHANNEL, Checkpoint(at("t0"), 1))).read_until == read_until
