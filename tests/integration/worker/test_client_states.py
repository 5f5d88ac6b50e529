"""A worker as a client of its tunnel: ready, started, ended."""

from __future__ import annotations

import pytest

from ots_emulator import Emulator, Settings
from ots_emulator.server.faults import FaultRule
from ots_tunnel.config import DeliveryConfig
from ots_tunnel.errors import InvalidTransition, TunnelNotFound
from ots_tunnel.log_actions import LogAction
from ots_tunnel.protocol.lifecycle import ClientEvent, ClientState
from ots_tunnel.sinks.count import CountSink
from ots_tunnel.sinks.table.sink import TablestoreSink
from ots_tunnel.worker.worker import TunnelWorker
from tests.support.emulator.emulator_scene import TABLE, EmulatorScene
from tests.support.waiting import until

#: Heartbeat timeout of a worker that is to lose no other client: beside other tests a process may stand still.
PATIENT = 10


@pytest.fixture
async def scene() -> EmulatorScene:
    scene = EmulatorScene(Emulator(settings=Settings(init_delay=0.0)))
    await scene.create_table()
    await scene.create_tunnel()
    return scene


async def test_it_is_ready_again_without_its_client_and_ended_when_drained(
    scene: EmulatorScene, monkeypatch: pytest.MonkeyPatch
) -> None:
    worker = scene.worker(CountSink(), timeout=PATIENT)
    seen = [worker.status.state]
    happened = worker.status.happened

    def seeing(event: ClientEvent) -> None:
        happened(event)
        seen.append(worker.status.state)

    monkeypatch.setattr(worker.status, "happened", seeing)
    async with scene.running(worker):
        await until(lambda: worker.status.is_ready, what="the first client")
        scene.emulator.expire_clients("demo", scene.tunnel_id)
        await until(lambda: len(seen) == 4, what="the second client")
        assert worker.status.document()["state"] == "started"

    assert [state.value for state in seen] == ["ready", "started", "ready", "started", "ended"]


async def test_the_error_of_unanswered_heartbeats_is_shown_meanwhile(scene: EmulatorScene) -> None:
    async with scene.running(worker := scene.worker(CountSink(), timeout=PATIENT)):
        await until(lambda: worker.status.is_ready, what="the first heartbeat")
        scene.emulator.faults.add(FaultRule("Heartbeat", code="OTSAuthFailed", message="Signature mismatch."))
        await until(lambda: worker.status.document()["error"] is not None, what="the error")
        assert worker.status.document()["error"].startswith("AuthFailed: OTSAuthFailed: Signature mismatch.")
        scene.emulator.faults.clear()
        await until(lambda: worker.status.document()["error"] is None, what="the answer")


@pytest.mark.parametrize("operation", ["DescribeTunnel", "DescribeTable", "Connect"])
async def test_what_its_start_waits_for_is_logged_and_shown_meanwhile(
    scene: EmulatorScene, caplog: pytest.LogCaptureFixture, operation: str
) -> None:
    async def describe() -> None:
        await scene.describe()

    sink = TablestoreSink(scene.table, TABLE, delivery=DeliveryConfig(), lanes=1, deadline=PATIENT)
    settings = scene.settings(timeout=PATIENT)
    worker = TunnelWorker(scene.client, sink, settings, preflight=describe)
    scene.emulator.faults.add(FaultRule(operation, code="OTSServerBusy", message="too busy"))

    async with scene.running(worker):
        await until(lambda: worker.status.document()["error"] is not None, what="the error")
        assert "OTSServerBusy: too busy" in worker.status.document()["error"]
        scene.emulator.faults.clear()
        await until(lambda: worker.status.is_ready, what="the first heartbeat")
        assert worker.status.document()["error"] is None

    repeated = [record for record in caplog.records if getattr(record, "action", "") == LogAction.CALL_REPEATED]
    assert {record.operation for record in repeated} == {operation}
    assert {record.levelname for record in repeated} == {"WARNING"}


async def test_without_its_client_it_does_not_vouch_for_the_channels_of_others(scene: EmulatorScene) -> None:
    async with scene.running(first := scene.worker(CountSink())):
        await until(lambda: first.status.channels, what="the channel of the first worker")
        async with scene.running(second := scene.worker(CountSink())):
            await until(lambda: second.status.completed, what="a look at the tunnel")
            scene.emulator.faults.add(FaultRule("Connect", code="OTSServerUnavailable"))
            scene.emulator.expire_clients("demo", scene.tunnel_id, second.status.client_id)
            await until(lambda: second.status.state is ClientState.READY, what="the loss of the client")

            assert not second.status.completed


async def test_it_ends_when_it_is_refused_and_is_not_run_again(scene: EmulatorScene) -> None:
    worker = scene.worker(CountSink())
    await scene.client.delete_tunnel(TABLE, "t")

    with pytest.raises(TunnelNotFound):
        await worker.run()
    assert worker.status.state is ClientState.ENDED
    with pytest.raises(InvalidTransition, match="no transition from ended on a second run"):
        await worker.run()
