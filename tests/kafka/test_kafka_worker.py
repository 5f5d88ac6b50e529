"""A tunnel into a topic: the worker with its Kafka sink, in process and as `ots-tunnel run`."""

from __future__ import annotations

import asyncio
import json
import re
import signal
import time
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest

from ots_emulator import Emulator, Settings
from ots_tunnel.config import KafkaSinkConfig, RetryConfig
from ots_tunnel.model import TunnelType
from ots_tunnel.sinks.kafka import KafkaSink
from ots_tunnel.sinks.kafka.message import Origin
from tests.kafka.broker import Broker
from tests.kafka.topic import Read, numbers_by_key, read_topic
from tests.support.emulator.emulator_scene import FAST, TABLE, EmulatorScene
from tests.support.programs.processes import bare_environment, module

pytestmark = [pytest.mark.oracle, pytest.mark.timeout(300), pytest.mark.xdist_group("kafka"), pytest.mark.lasts(3)]

KEYS = [f"key-{number:02}" for number in range(40)]
EXPECTED = {json.dumps([key]).encode() for key in KEYS}


@pytest.fixture
async def scene() -> AsyncIterator[EmulatorScene]:
    async with Emulator(settings=Settings(page_rows=25, init_delay=0.01)) as emulator:
        scene = EmulatorScene(emulator)
        await scene.create_table(partitions=4)
        await scene.put(KEYS, [1])
        await scene.create_tunnel(TunnelType.BaseAndStream)
        yield scene


async def messages_when(broker: Broker, topic: str, enough: Callable[[list[Read]], bool]) -> list[Read]:
    """The messages of the topic once there are enough."""
    give_up = time.monotonic() + 60
    while not enough(found := await asyncio.to_thread(read_topic, broker.address(), topic)):
        assert time.monotonic() < give_up, f"{len(found)} messages"
        await asyncio.sleep(0.2)
    return found


def reaches(number: int) -> Callable[[list[Read]], bool]:
    """Whether every key has reached a number."""

    def enough(messages: list[Read]) -> bool:
        by_key = numbers_by_key(messages)
        return by_key.keys() == EXPECTED and all(number in numbers for numbers in by_key.values())

    return enough


def first_times(numbers: list[int]) -> list[int]:
    return list(dict.fromkeys(numbers))


async def test_a_tunnel_arrives_complete_and_in_order_though_the_broker_stops_for_seconds(
    scene: EmulatorScene, broker: Broker, topic: str
) -> None:
    config = KafkaSinkConfig(bootstrap_servers=(broker.address(),), topic=topic)
    retry = RetryConfig(backoff_seconds=0.05, backoff_max_seconds=0.2)
    # The sink's deadline passes many times while the broker stands. The client's timeout does not: another client would
    # begin at the checkpoint again.
    sink = KafkaSink(config, Origin("demo", TABLE, "t"), retry=retry, deadline=FAST.write_deadline)
    async with scene.running(scene.worker(sink, timeout=60)):
        await messages_when(broker, topic, reaches(1))
        await scene.put(KEYS, range(2, 20))
        broker.send(signal.SIGSTOP)
        await scene.put(KEYS, range(20, 40))
        await asyncio.sleep(3)
        broker.send(signal.SIGCONT)
        await scene.put(KEYS, range(40, 60))
        messages = await messages_when(broker, topic, reaches(59))

    assert sink.retries > 0
    for key, numbers in numbers_by_key(messages).items():
        assert numbers == sorted(numbers), f"{key!r}: an older number after a newer one"
        assert first_times(numbers) == list(range(1, 60))
    kinds = [message.headers["ots-channel-type"] for message in messages]
    assert set(kinds) == {"BaseData", "Stream"}
    assert all(message.headers["ots-table"] == TABLE for message in messages)


async def test_a_killed_process_is_followed_by_one_that_loses_nothing(
    scene: EmulatorScene, broker: Broker, topic: str, tmp_path: Path
) -> None:
    document = worker_document(scene, tmp_path, f"bootstrapServers: ['{broker.address()}'], topic: {topic}")
    process = await start(document)
    await messages_when(broker, topic, reaches(1))
    await scene.put(KEYS, range(2, 100))
    process.kill()
    await ended(process)

    process = await start(document)
    await scene.put(KEYS, range(100, 110))
    messages = await messages_when(broker, topic, reaches(109))
    process.send_signal(signal.SIGTERM)
    code, lines = await ended(process)

    assert code == 0, lines
    # Repeats begin at a checkpoint and continue in order: first arrivals are in order.
    for numbers in numbers_by_key(messages).values():
        assert first_times(numbers) == list(range(1, 110))


async def test_a_record_that_is_too_large_ends_the_process_and_its_log_names_the_row(
    scene: EmulatorScene, broker: Broker, tmp_path: Path
) -> None:
    broker.create_topic("tiny", max_message_bytes=100)
    document = worker_document(scene, tmp_path, f"bootstrapServers: ['{broker.address()}'], topic: tiny")
    code, lines = await ended(await start(document))

    assert code == 4
    failed = [line for line in lines if line["action"] == "channel_failed"]
    assert failed
    assert all(re.fullmatch(r"\w+='key-\d\d'", line["refused_keys"][0]) for line in failed), failed
    assert str(lines[-1]["error"]).startswith("SinkRejected: MSG_SIZE_TOO_LARGE: topic 'tiny' at 127.0.0.1")


async def test_a_missing_topic_ends_the_process_with_code_4(
    scene: EmulatorScene, broker: Broker, tmp_path: Path
) -> None:
    document = worker_document(scene, tmp_path, f"bootstrapServers: ['{broker.address()}'], topic: nowhere")
    code, lines = await ended(await start(document))

    assert code == 4
    assert "topic 'nowhere' at 127.0.0.1" in str(lines[-1]["error"])


async def test_a_missing_password_ends_the_process_with_code_2(scene: EmulatorScene, tmp_path: Path) -> None:
    login = f"securityProtocol: SASL_SSL, sasl: {{mechanism: PLAIN, directory: {tmp_path / 'login'}}}"
    document = worker_document(scene, tmp_path, f"bootstrapServers: ['127.0.0.1:1'], topic: changes, {login}")
    code, lines = await ended(await start(document))

    assert code == 2
    assert "sink.kafka.sasl.directory" in str(lines[-1]["error"])


def worker_document(scene: EmulatorScene, directory: Path, sink: str) -> Path:
    (directory / "accessKeyId").write_text("test-id")
    (directory / "accessKeySecret").write_text("test-secret")
    path = directory / "worker.yaml"
    path.write_text(
        f"""
source:
  endpoint: {scene.emulator.endpoint}
  instance: demo
  table: {TABLE}
  tunnelName: t
  tunnelId: {scene.tunnel_id}
  credentials: {{directory: {directory}}}
sink:
  kafka: {{{sink}}}
client: {{heartbeatIntervalSeconds: 5, heartbeatTimeoutSeconds: 8, checkpointIntervalSeconds: 0.5}}
http: {{port: 0}}
"""
    )
    return path


async def start(document: Path) -> Process:
    command = module("ots_tunnel", "run", "--config", str(document))
    return await asyncio.create_subprocess_exec(*command, stderr=PIPE, env=bare_environment())


async def ended(process: Process) -> tuple[int | None, list[dict[str, Any]]]:
    """Exit code and log lines."""
    async with asyncio.timeout(60):
        _, output = await process.communicate()
    return process.returncode, [json.loads(line) for line in output.splitlines()]
