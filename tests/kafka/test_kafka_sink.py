"""The Kafka sink against a real broker."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import random
import signal
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka.admin import AclOperation

from ots_tunnel.config import KafkaSinkConfig, RetryConfig
from ots_tunnel.errors import OwnershipLost, SinkError, SinkRejected
from ots_tunnel.model import Action, ChannelId, ChannelType, SequenceInfo
from ots_tunnel.protocol.plainbuffer.codec import encode_row
from ots_tunnel.protocol.plainbuffer.column import Column
from ots_tunnel.protocol.record import Record
from ots_tunnel.sinks import Batch
from ots_tunnel.sinks.kafka import KafkaSink
from ots_tunnel.sinks.kafka.message import Origin
from ots_tunnel.sinks.kafka.sending import MESSAGES_AT_ONCE
from ots_tunnel.sinks.kafka.settings import producer_settings
from tests.kafka.broker import PASSWORD, USER, Broker
from tests.kafka.certificate import make_certificate
from tests.kafka.topic import Read, java_partition, numbers_by_key, read_topic
from tests.support.guards import LimitedGuard, OpenGuard
from tests.support.records import COMMITTED_US, numbered_record, record

pytestmark = [
    pytest.mark.oracle,
    pytest.mark.timeout(300),  # the first test also fetches and starts it
    pytest.mark.xdist_group("kafka"),  # they share one broker, which some of them end
    pytest.mark.lasts(3),
]


def batch(records: Iterable[Record]) -> Batch:
    return Batch(ChannelId("c1"), ChannelType.STREAM, list(records))


def counted(keys: int, numbers: int) -> list[Record]:
    return [numbered_record(key, number) for number in range(numbers) for key in range(keys)]


@asynccontextmanager
async def opened(broker: Broker, topic: str, deadline: float = 10, **options: Any) -> AsyncIterator[KafkaSink]:
    listener = options.pop("listener", "PLAINTEXT")
    config = KafkaSinkConfig.model_validate({"bootstrapServers": [broker.address(listener)], "topic": topic, **options})
    retry = RetryConfig(backoff_seconds=0.05, backoff_max_seconds=0.2)
    sink = KafkaSink(config, Origin("shop", "orders", "t"), retry=retry, deadline=deadline)
    try:
        async with asyncio.timeout(60):
            await sink.open()
            yield sink
    finally:
        await sink.close()


def text_record(key: int, number: int, text: str) -> Record:
    """A record of the stream with a text instead of its number."""
    return record((("id", key),), Column("n", text), sequence=SequenceInfo(0, COMMITTED_US, number))


async def in_topic(broker: Broker, topic: str) -> list[Read]:
    return await asyncio.to_thread(read_topic, broker.address(), topic)


def without_repeats(numbers: list[int]) -> list[int]:
    return [number for place, number in enumerate(numbers) if place == 0 or number != numbers[place - 1]]


async def test_a_message_has_every_field(broker: Broker, topic: str) -> None:
    async with opened(broker, topic) as sink:
        await sink.write(batch([numbered_record(7, 1)]), OpenGuard())

    (read,) = await in_topic(broker, topic)
    assert read.key == b"[7]"
    assert read.value["key"] == {"id": 7}
    assert read.value["columns"] == [{"name": "n", "op": "PUT", "value": 1, "version": 5}]
    assert read.headers == {
        "content-type": "application/json",
        "ots-instance": "shop",
        "ots-table": "orders",
        "ots-tunnel": "t",
        "ots-channel-type": "Stream",
        "ots-action": "PUT",
        "ots-sequence": "0.1700000000123456.1",
    }


@pytest.mark.parametrize("compression", ["none", "gzip", "snappy", "lz4", "zstd"])
async def test_every_record_comes_once_in_order_where_java_would_put_it(
    broker: Broker, topic: str, compression: str
) -> None:
    async with opened(broker, topic, compression=compression) as sink:
        await asyncio.gather(
            *(sink.write(batch(numbered_record(key, number) for number in range(9) for key in keys), OpenGuard())
              for keys in (range(300), range(300, 400), [400]))
        )  # fmt: skip

    messages = await in_topic(broker, topic)
    assert numbers_by_key(messages) == {f"[{key}]".encode(): list(range(9)) for key in range(401)}
    assert {message.partition for message in messages} == {0, 1, 2, 3}
    assert all(message.partition == java_partition(message.key, 4) for message in messages)


async def pause(broker: Broker, seconds: float) -> None:
    broker.send(signal.SIGSTOP)
    await asyncio.sleep(seconds)
    broker.send(signal.SIGCONT)


async def restart(broker: Broker, seconds: float) -> None:
    await asyncio.to_thread(broker.kill)
    await asyncio.sleep(seconds)
    await asyncio.to_thread(broker.start)


@pytest.mark.parametrize("outage", [pause, restart])
async def test_a_broker_that_is_gone_for_seconds_costs_neither_record_nor_order(
    broker: Broker, topic: str, outage: Callable[[Broker, float], Any]
) -> None:
    """The deadline passes several times: messages that librdkafka gave up are sent again before later ones."""
    async with opened(broker, topic, deadline=1.2) as sink:

        async def write(keys: range) -> None:
            for start in range(0, 200, 20):
                numbers = range(start, start + 20)
                await sink.write(batch(numbered_record(key, number) for number in numbers for key in keys), OpenGuard())

        async with asyncio.TaskGroup() as tasks:
            writing = [tasks.create_task(write(range(first, first + 10))) for first in (0, 10, 20)]
            await asyncio.sleep(0.2)
            assert not any(task.done() for task in writing), "the outage began too late"
            await outage(broker, 4)

    assert sink.retries > 0
    by_key = numbers_by_key(await in_topic(broker, topic))
    # One record of a key is under way at a time, so a repeat can only follow the record itself.
    assert {key: without_repeats(numbers) for key, numbers in by_key.items()} == {
        f"[{key}]".encode(): list(range(200)) for key in range(30)
    }


async def test_a_record_that_is_too_large_is_refused_by_its_key(broker: Broker) -> None:
    topic = broker.create_topic("small", max_message_bytes=2000)
    noise = random.Random(1)
    records = [text_record(key, 0, noise.randbytes(100 if key != 5 else 5000).hex()) for key in range(20)]

    async with opened(broker, topic) as sink:
        with pytest.raises(SinkRejected, match=r"topic 'small' at 127\.0\.0\.1:\d+: .*too large") as refusal:
            await sink.write(batch(records), OpenGuard())

    assert refusal.value.code == "MSG_SIZE_TOO_LARGE"
    assert refusal.value.keys == ("id=5",)
    # A request that is too large as a whole is no reason to refuse what is in it.
    stored = {message.key for message in await in_topic(broker, topic)}
    assert stored == {f"[{key}]".encode() for key in range(20) if key != 5}


async def test_a_refused_record_is_handed_back_where_the_rest_is_wanted(broker: Broker) -> None:
    topic = broker.create_topic("tolerant", max_message_bytes=2000)
    noise = random.Random(1)
    large = text_record(1, 1, noise.randbytes(5000).hex())
    handed_back: list[tuple[Record, str]] = []
    given = batch([*counted(3, 1), large, numbered_record(1, 2), numbered_record(2, 1)])

    async with opened(broker, topic) as sink:
        tolerant = replace(given, on_refused=lambda each, code, text: handed_back.append((each, code)))
        await sink.write(tolerant, OpenGuard())

    assert handed_back == [(large, "MSG_SIZE_TOO_LARGE")]
    assert numbers_by_key(await in_topic(broker, topic)) == {b"[0]": [0], b"[1]": [0, 2], b"[2]": [0, 1]}


async def test_a_record_too_large_for_any_broker_is_refused(broker: Broker, topic: str) -> None:
    async with opened(broker, topic) as sink:
        with pytest.raises(SinkRejected) as refusal:
            await sink.write(batch([record((("id", 1),), Column("n", "x" * (31 << 20)))]), OpenGuard())

    assert refusal.value.keys == ("id=1",)


async def test_a_missing_topic_is_refused_and_not_made(broker: Broker) -> None:
    with pytest.raises(SinkRejected, match="topic 'nowhere'"):
        async with opened(broker, "nowhere"):
            pass

    assert "nowhere" not in broker.topics()


async def test_a_topic_that_is_deleted_meanwhile_is_refused(broker: Broker) -> None:
    topic = broker.create_topic("short-lived")
    async with opened(broker, topic) as sink:
        await sink.write(batch([numbered_record(1, 1)]), OpenGuard())
        broker.delete_topic(topic)
        with pytest.raises(SinkRejected, match="topic 'short-lived'"):
            await sink.write(batch(counted(1, 1000)), OpenGuard())


@pytest.mark.parametrize(("allowed", "keys"), [(AclOperation.CREATE, []), (AclOperation.DESCRIBE, ["id=0", "id=1"])])
async def test_a_login_that_may_not_write_is_refused(
    broker: Broker, topic: str, tmp_path: Path, allowed: AclOperation, keys: list[str]
) -> None:
    """Where describing the topic is allowed, the first record shows that writing is not."""
    broker.allow_only(topic, allowed)
    sasl = {"mechanism": "PLAIN", "directory": login(tmp_path)}
    with pytest.raises(SinkRejected, match=f"topic '{topic}'") as refusal:
        async with opened(broker, topic, listener="SASLPLAIN", securityProtocol="SASL_PLAINTEXT", sasl=sasl) as sink:
            await sink.write(batch(counted(2, 2)), OpenGuard())

    assert refusal.value.code == "TOPIC_AUTHORIZATION_FAILED"
    assert sorted(refusal.value.keys) == keys


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ots_tunnel.sinks.kafka.connections.CHECK_DEADLINE", 1.5)


@pytest.mark.usefixtures("impatient")
async def test_a_broker_that_does_not_answer_is_no_refusal(broker: Broker) -> None:
    with pytest.raises(SinkError, match="anything") as caught:
        async with opened(broker, "anything", bootstrapServers=["127.0.0.1:1"]):
            pass

    assert caught.value.retryable


@pytest.mark.usefixtures("impatient")
async def test_brokers_that_do_not_answer_are_told_in_the_same_words_each_time(broker: Broker) -> None:
    """The words become a condition of the object, which is written whenever they change."""
    servers = ["127.0.0.1:1", "127.0.0.1:2", "127.0.0.1:3"]
    config = KafkaSinkConfig.model_validate({"bootstrapServers": servers, "topic": "anything"})
    sink = KafkaSink(config, Origin("shop", "orders", "t"), retry=RetryConfig(backoff_seconds=0.05), deadline=10)
    told = []
    try:
        for _ in range(3):
            with pytest.raises(SinkError) as caught:
                await sink.open()
            told.append(str(caught.value))
    finally:
        await sink.close()

    assert set(told[1:]) == {
        f"topic 'anything' at {','.join(servers)}: _TRANSPORT: 127.0.0.1:1/bootstrap: Connect to "
        "ipv4#127.0.0.1:1 failed: Connection refused"
    }


def login(folder: Path, password: str = PASSWORD) -> Path:
    folder.mkdir(exist_ok=True)
    (folder / "username").write_text(f"{USER}\n")
    # replaced as a mounted Secret is: never half written
    (folder / "new").write_text(f"{password}\n")
    os.replace(folder / "new", folder / "password")
    return folder


@pytest.mark.parametrize("mechanism", ["PLAIN", "SCRAM-SHA-256"])
@pytest.mark.parametrize("secure", [False, True])
async def test_logs_in(
    broker: Broker, topic: str, tmp_path: Path, certificate: Path, mechanism: str, secure: bool
) -> None:
    options: dict[str, Any] = {"sasl": {"mechanism": mechanism, "directory": login(tmp_path)}}
    if secure:
        options |= {"listener": "SASLTLS", "securityProtocol": "SASL_SSL", "caFile": certificate}
    else:
        options |= {"listener": "SASLPLAIN", "securityProtocol": "SASL_PLAINTEXT"}
    async with opened(broker, topic, **options) as sink:
        await sink.write(batch(counted(3, 2)), OpenGuard())

    assert len(await in_topic(broker, topic)) == 6


@pytest.mark.parametrize("mechanism", ["PLAIN", "SCRAM-SHA-256"])
async def test_a_wrong_password_is_refused(
    broker: Broker, topic: str, tmp_path: Path, mechanism: str, caplog: pytest.LogCaptureFixture
) -> None:
    with pytest.raises(SinkRejected, match=f"topic '{topic}'") as refusal:
        async with opened(
            broker,
            topic,
            listener="SASLPLAIN",
            securityProtocol="SASL_PLAINTEXT",
            sasl={"mechanism": mechanism, "directory": login(tmp_path, "wrong-horse")},
        ) as sink:
            assert "wrong-horse" not in repr(vars(sink))

    assert refusal.value.code == "_AUTHENTICATION"
    assert "wrong-horse" not in f"{refusal.value!r}{caplog.text}"


async def test_a_password_that_changes_is_followed(
    broker: Broker, topic: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ots_tunnel.sinks.kafka.login_refusals.ATTEMPT_SECONDS", 3)
    sasl = {"mechanism": "SCRAM-SHA-256", "directory": login(tmp_path)}
    options: dict[str, Any] = {"listener": "SASLPLAIN", "securityProtocol": "SASL_PLAINTEXT", "sasl": sasl}
    try:
        async with opened(broker, topic, deadline=3, **options) as sink:
            await sink.write(batch([numbered_record(1, 1)]), OpenGuard())
            broker.set_password("battery-staple")
            login(tmp_path, "battery-staple")
            await restart(broker, 0)  # the open connection would stay valid
            await sink.write(batch([numbered_record(1, 2)]), OpenGuard())

            broker.set_password(PASSWORD)
            await restart(broker, 0)
            with pytest.raises(SinkRejected) as refusal:
                await sink.write(batch([numbered_record(1, 3)]), OpenGuard())
            assert refusal.value.code == "_AUTHENTICATION"
    finally:
        broker.set_password(PASSWORD)

    assert numbers_by_key(await in_topic(broker, topic)) == {b"[1]": [1, 2]}


@pytest.mark.usefixtures("impatient")
async def test_a_strange_certificate_is_not_trusted(broker: Broker, topic: str) -> None:
    with pytest.raises(SinkError, match=f"topic '{topic}'.*certificate"):
        async with opened(broker, topic, listener="TLS", securityProtocol="SSL"):
            pass


def correct(trusted: Path, certificate: Path, more: bytes = b"") -> None:
    """Replace a file of certificates as a mounted Secret is replaced."""
    new = trusted.with_name("new")
    new.write_bytes(certificate.read_bytes() + more)
    os.replace(new, trusted)


@pytest.mark.usefixtures("impatient")
async def test_certificates_that_change_are_followed(
    broker: Broker, topic: str, tmp_path: Path, certificate: Path
) -> None:
    trusted = make_certificate(tmp_path)  # of another broker
    options = {"topic": topic, "securityProtocol": "SSL", "caFile": trusted}
    config = KafkaSinkConfig.model_validate({"bootstrapServers": [broker.address("TLS")], **options})
    sink = KafkaSink(config, Origin("shop", "orders", "t"), retry=RetryConfig(backoff_seconds=0.05), deadline=3)
    try:
        with pytest.raises(SinkError, match="certificate"):
            await sink.open()
        correct(trusted, certificate)
        with contextlib.suppress(SinkError):
            await sink.open()
        await sink.open()
        await sink.write(batch(counted(3, 2)), OpenGuard())
    finally:
        await sink.close()

    assert len(await in_topic(broker, topic)) == 6


async def test_certificates_that_change_during_an_outage_cost_neither_record_nor_order(
    broker: Broker, topic: str, tmp_path: Path, certificate: Path
) -> None:
    trusted = tmp_path / "ca.pem"
    correct(trusted, certificate)
    async with opened(broker, topic, 1.2, listener="TLS", securityProtocol="SSL", caFile=trusted) as sink:
        await sink.write(batch(counted(20, 1)), OpenGuard())
        former = sink.retries
        correct(trusted, certificate, b"\n")
        await asyncio.gather(
            restart(broker, 3),
            *(sink.write(batch(numbered_record(key, n) for n in range(1, 9)), OpenGuard()) for key in range(20)),
        )
        assert sink.retries > former

    by_key = numbers_by_key(await in_topic(broker, topic))
    # The deadline may pass for a record that the broker has stored: the repeat follows the record itself.
    assert {key: without_repeats(numbers) for key, numbers in by_key.items()} == {
        f"[{key}]".encode(): list(range(9)) for key in range(20)
    }


async def test_a_full_queue_makes_the_writer_wait(broker: Broker, topic: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def settings(config: KafkaSinkConfig, deadline: float) -> dict[str, Any]:
        return {**producer_settings(config, deadline), "queue.buffering.max.messages": 7}

    monkeypatch.setattr("ots_tunnel.sinks.kafka.connections.producer_settings", settings)
    async with opened(broker, topic) as sink:
        await asyncio.gather(
            sink.write(batch(counted(100, 3)), OpenGuard()),
            sink.write(
                batch(numbered_record(1000 + key, number) for number in range(3) for key in range(100)), OpenGuard()
            ),
        )

    by_key = numbers_by_key(await in_topic(broker, topic))
    assert len(by_key) == 200
    assert all(numbers == [0, 1, 2] for numbers in by_key.values())


async def test_nothing_is_sent_once_the_fence_is_closed(broker: Broker, topic: str) -> None:
    async with opened(broker, topic) as sink:
        with pytest.raises(OwnershipLost):
            await sink.write(batch(counted(50, 2)), LimitedGuard(passes=1))
        await sink.write(batch([numbered_record(1000, 1)]), OpenGuard())

    by_key = numbers_by_key(await in_topic(broker, topic))
    assert by_key.pop(b"[1000]") == [1]
    # those that had not left yet were dropped when the sink was closed
    assert by_key.items() <= {f"[{key}]".encode(): [0] for key in range(MESSAGES_AT_ONCE)}.items()


async def test_an_abandoned_write_is_not_waited_for(broker: Broker, topic: str) -> None:
    async with opened(broker, topic) as sink:
        await sink.write(batch([numbered_record(0, 0)]), OpenGuard())
        broker.send(signal.SIGSTOP)
        try:
            writing = asyncio.create_task(sink.write(batch(counted(10, 10)), OpenGuard()))
            await asyncio.sleep(0.2)
            writing.cancel()
            async with asyncio.timeout(5):
                await asyncio.gather(writing, return_exceptions=True)
                await sink.close()
        finally:
            broker.send(signal.SIGCONT)
        assert writing.cancelled()


async def test_the_value_is_json_whatever_the_row_holds(broker: Broker, topic: str) -> None:
    wire = encode_row(
        (("a", "ü\n\x00"), ("b", -(1 << 63)), ("c", b"\xff\x00")), [Column("v", b"\x80"), Column("w", "\U0001f600")]
    )
    async with opened(broker, topic) as sink:
        await sink.write(batch([Record(Action.UPDATE, wire)]), OpenGuard())

    (read,) = await in_topic(broker, topic)
    assert json.loads(read.key) == ["ü\n\x00", -(1 << 63), {"base64": "/wA="}]
    assert [column["value"] for column in read.value["columns"]] == [{"base64": "gA=="}, "\U0001f600"]
    assert "ots-sequence" not in read.headers
