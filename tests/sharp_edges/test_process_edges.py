"""Traces of a worker in its process: logs without secrets, no handlers, no hooks."""

from __future__ import annotations

import asyncio
import atexit
import logging
import signal
import threading
from collections.abc import Iterator

import pytest

from ots_emulator.server.faults import FaultRule
from ots_tunnel.client.sync_tunnel import SyncTunnelClient
from ots_tunnel.daemon import TunnelDaemon, TunnelWorkerConfig
from ots_tunnel.errors import ConnectionLost
from ots_tunnel.logs import JsonLine
from ots_tunnel.model import ChannelType, Checkpoint, TunnelType
from ots_tunnel.processor import ChannelContext, SimpleProcessorFactory
from ots_tunnel.protocol import tunnel_pb2 as pb
from ots_tunnel.protocol.http.message import HttpRequest, HttpResponse
from ots_tunnel.sinks import Batch
from tests.support.channel_scene import CHANNEL, at, page
from tests.support.emulator.emulator_scene import CREDENTIALS, TABLE
from tests.support.emulator.virtual_scene import VirtualScene
from tests.support.sinks.sinks import RecordingSink
from tests.support.waiting import until

KEYS = [f"patient-{number:03}" for number in range(120)]


class Listening(VirtualScene):
    """Keeps every token that was on the wire."""

    async def handle(self, request: HttpRequest) -> HttpResponse:
        answer = await super().handle(request)
        if request.path.endswith("/checkpoint"):
            self.tokens.add(pb.CheckpointRequest.FromString(request.body).checkpoint)
        elif request.path.endswith("/readrecords"):
            self.tokens.add(pb.ReadRecordsRequest.FromString(request.body).token)
        return answer

    tokens: set[str]


async def eventful_life(scene: Listening) -> None:
    """Base data, stream, a split, lost answers, a conflict, a failing sink, an expired client, a drain."""
    await scene.create_table(partitions=2)
    await scene.put(KEYS)
    await scene.create_tunnel(TunnelType.BaseAndStream)
    sink = RecordingSink()
    worker = scene.worker(sink, checkpoint_interval=5)
    async with scene.running(worker):
        await until(lambda: len(sink.written) >= 120)
        scene.emulator.faults.add(FaultRule("Checkpoint", drop_response=True, count=3))
        scene.emulator.faults.add(FaultRule("ReadRecords", code="OTSTunnelServerUnavailable", count=3))
        scene.emulator.faults.add(FaultRule("Heartbeat", code="OTSTunnelServerUnavailable", count=1))
        await scene.put(KEYS, [2])
        await until(lambda: len(sink.written) >= 240)
        for channel_id in scene.channels():
            scene.emulator.conflict("demo", scene.tunnel_id, channel_id)
        sink.error = ConnectionLost("for the moment")
        await scene.put(KEYS, [3])
        await asyncio.sleep(30)
        sink.error = None
        scene.emulator.split("demo", TABLE)
        await scene.put(KEYS, [4])
        scene.emulator.expire_clients("demo", scene.tunnel_id)
        await until(lambda: {(key, 4) for key in KEYS} <= set(sink.written))


@pytest.mark.looptime
async def test_j19_neither_tokens_nor_keys_reach_the_log(caplog: pytest.LogCaptureFixture) -> None:
    """Java logs tokens, which hold primary keys; none of our lines has either, at any level and after any failure."""
    scene = Listening()
    scene.tokens = set()

    with caplog.at_level(logging.DEBUG):
        await eventful_life(scene)

    lines = [JsonLine().format(record) for record in caplog.records]
    assert {record.__dict__.get("action") for record in caplog.records} >= {
        "channel_opened",
        "channel_finished",
        "channel_failed",
        "checkpoint_adopted",
        "client_gone",
        "heartbeat_failed",
    }
    positions = {token for token in scene.tokens if token != "finished"}
    assert len(positions) > 10
    for line in lines:
        assert not [token for token in positions if token in line]
        assert "patient-" not in line


def test_j19_what_holds_a_token_does_not_print_it() -> None:
    """No token is in the text of an object that a log line, a traceback or a debugger prints."""
    token = at("t0")
    batch = Batch(CHANNEL, ChannelType.STREAM, page(2, "t1").records, token, at("t1"))

    for thing in (Checkpoint(token, 7), batch, ChannelContext(CHANNEL, ChannelType.STREAM, token), page(2, "t0")):
        assert token not in repr(thing)
        assert at("t1") not in repr(thing)


@pytest.mark.looptime
async def test_g18_channels_share_their_modules_loggers_and_add_no_handler() -> None:
    """Go's channels each open the log's file anew; ours share loggers that are there when the modules are loaded."""
    scene = Listening()
    scene.tokens = set()
    before = _handlers()

    await eventful_life(scene)

    assert _handlers() == before


def _handlers() -> dict[str, list[logging.Handler]]:
    loggers = {
        name: logger for name, logger in logging.Logger.manager.loggerDict.items() if isinstance(logger, logging.Logger)
    }
    loggers["root"] = logging.getLogger()
    return {
        name: list(logger.handlers)
        for name, logger in loggers.items()
        if name.startswith("ots_tunnel") or name == "root"
    }


@pytest.fixture
def own_handler() -> Iterator[object]:
    def handler(*arguments: object) -> None: ...

    previous = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)}
    for number in previous:
        signal.signal(number, handler)
    yield handler
    for number, former in previous.items():
        signal.signal(number, former)


def test_j18_a_daemon_that_has_ended_leaves_no_hook_behind(own_handler: object) -> None:
    """Java adds a hook at each start and removes none; ours restores the caller's signal handlers at the end."""
    client = SyncTunnelClient("http://127.0.0.1:1", "demo", CREDENTIALS)
    config = TunnelWorkerConfig(SimpleProcessorFactory(lambda context, records: None), reconnect=(0, 0))
    hooks, threads = atexit._ncallbacks(), set(threading.enumerate())

    for _ in range(3):
        daemon = TunnelDaemon(client, "no-such-tunnel", config)
        daemon.shutdown()
        daemon.run()

        assert signal.getsignal(signal.SIGTERM) is own_handler
        assert signal.getsignal(signal.SIGINT) is own_handler
    client.close()

    assert atexit._ncallbacks() == hooks
    assert set(threading.enumerate()) <= threads
