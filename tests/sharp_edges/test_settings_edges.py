"""Settings: wrong ones are refused by name, not replaced, and workers of one configuration share no limit."""

from __future__ import annotations

import asyncio
import socket
from typing import Any

import pytest
from pydantic import ValidationError

from ots_tunnel.config import ClientConfig, DeliveryConfig, WorkerConfig
from ots_tunnel.daemon import TunnelWorkerConfig
from ots_tunnel.errors import ConfigError
from ots_tunnel.model import TunnelId, TunnelType
from ots_tunnel.processor import ChannelContext, SimpleProcessorFactory
from ots_tunnel.worker.settings import WorkerSettings
from tests.support.emulator.virtual_scene import VirtualScene
from tests.support.sinks.sinks import RecordingSink
from tests.support.waiting import until

NOTHING = SimpleProcessorFactory(lambda context, records: None)
DOCUMENT: dict[str, Any] = {
    "source": {
        "endpoint": "http://service",
        "instance": "demo",
        "credentials": {"directory": "/keys"},
        "table": "events",
        "tunnelName": "t",
        "tunnelId": "id",
    },
    "sink": {"count": {}},
}


@pytest.mark.parametrize(("interval", "timeout"), [(30, 30), (30, 10), (400, 300)])
def test_g15_a_timeout_that_does_not_exceed_the_interval_is_refused(interval: int, timeout: int) -> None:
    """Go replaces it by 300 s, which may also be below the interval; ours names both values and does not start."""
    with pytest.raises(ConfigError, match=f"heartbeat_timeout: found {timeout}"):
        TunnelWorkerConfig(NOTHING, heartbeat_interval=interval, heartbeat_timeout=timeout)
    with pytest.raises(ValidationError, match=f"heartbeatTimeoutSeconds: found {timeout}, allowed is more"):
        ClientConfig(heartbeat_interval_seconds=interval, heartbeat_timeout_seconds=timeout)


def test_g23_a_timeout_with_a_fraction_is_refused() -> None:
    """Go truncates the fraction on the wire, so that the service's timeout is shorter; ours allows whole seconds."""
    with pytest.raises(ConfigError, match=r"heartbeat_timeout: found 60\.9, allowed are whole seconds"):
        TunnelWorkerConfig(NOTHING, heartbeat_timeout=60.9)
    with pytest.raises(ValidationError, match="heartbeatTimeoutSeconds"):
        ClientConfig.model_validate({"heartbeatTimeoutSeconds": 60.9})


@pytest.mark.looptime
@pytest.mark.parametrize(("timeout", "sent"), [(0.4, 1), (1.9, 2), (40, 40)])
async def test_g23_the_service_is_never_less_patient_than_the_worker(timeout: float, sent: int) -> None:
    """Where a fraction is possible, as in tests, it is rounded up on the wire."""
    scene = VirtualScene()
    await scene.create_table()
    await scene.create_tunnel(TunnelType.Stream)
    worker = scene.worker(RecordingSink(), timeout=timeout, interval=timeout / 4, early_spacing=0.01)

    async with scene.running(worker):
        await until(lambda: worker.status.is_ready)

    assert [request.client_config.timeout for request in scene.connects] == [sent]


@pytest.mark.looptime
async def test_j05_workers_of_one_configuration_have_their_own_limits() -> None:
    """Java keeps the limit in the shared configuration; here a waiting worker takes no turn from another."""
    scene = VirtualScene()
    await scene.create_table(partitions=4)
    await scene.put([f"k{number:03}" for number in range(100)])
    await scene.create_tunnel(TunnelType.BaseData)
    gate, inside = asyncio.Event(), 0

    async def process(context: ChannelContext, records: object) -> None:
        nonlocal inside
        inside += 1
        await gate.wait()
        inside -= 1

    config = TunnelWorkerConfig(SimpleProcessorFactory(process), heartbeat_interval=5, max_parallel_channels=1)
    workers = [config.worker(scene.calling_client(), scene.tunnel_id) for _ in range(2)]
    async with scene.running(*workers):
        await until(lambda: inside == 2)
        await asyncio.sleep(20)
        assert inside == 2  # one each, of two channels each
        gate.set()
        await until(lambda: not scene.owners())


@pytest.mark.parametrize(
    "wrong",
    [
        {"max_parallel_channels": -1},
        {"rows_per_second": -5},
        {"memory_budget_bytes": 0},
        {"checkpoint_interval": 0},
        {"drain_timeout": 0},
    ],
    ids=lambda wrong: next(iter(wrong)),
)
def test_j12_a_limit_that_would_read_nothing_is_refused(wrong: dict[str, Any]) -> None:
    """Java takes a round of zero reads for the channel's end; ours does not start with that setting."""
    ((name, value),) = wrong.items()

    with pytest.raises(ConfigError, match=f"{name}: found {value}, allowed is"):
        TunnelWorkerConfig(NOTHING, **wrong)


@pytest.mark.parametrize("name", ["batchMaxRows", "batchMaxBytes"])
def test_j12_an_empty_batch_is_refused(name: str) -> None:
    """The same of the document's limits."""
    with pytest.raises(ValidationError, match=name):
        DeliveryConfig.model_validate({name: 0})


@pytest.mark.looptime
async def test_j16_a_client_carries_the_name_of_its_host(monkeypatch: pytest.MonkeyPatch) -> None:
    """Java's clients are all called Linux; ours carry their prefix and the host's name, which is the pod's."""
    monkeypatch.setattr(socket, "gethostname", lambda: "orders-7f9c-2")
    document = WorkerConfig.model_validate({**DOCUMENT, "client": {"tagPrefix": "8c1d"}})
    assert TunnelWorkerConfig(NOTHING).settings(TunnelId("t")).client_tag == "orders-7f9c-2"
    assert WorkerSettings.of(document).client_tag == "8c1d-orders-7f9c-2"

    scene = VirtualScene()
    await scene.create_table()
    await scene.create_tunnel(TunnelType.Stream)
    worker = scene.worker(RecordingSink(), client_tag=WorkerSettings.of(document).client_tag)
    async with scene.running(worker):
        await until(lambda: worker.status.is_ready)
        assert str(worker.status.client_id).startswith("8c1d-orders-7f9c-2")
