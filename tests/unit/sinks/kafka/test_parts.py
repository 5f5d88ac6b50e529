"""Decisions of the Kafka sink without a broker: keys, settings, failures, order of sending."""

from __future__ import annotations

import asyncio
import builtins
import math
import os
import random
import sys
from collections import deque
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from ots_tunnel.config import KafkaSinkConfig, WorkerConfig, load_config
from ots_tunnel.errors import ConfigError
from ots_tunnel.model import ChannelId, ChannelType, KeyValue, SequenceInfo
from ots_tunnel.protocol.plainbuffer.column import Column
from ots_tunnel.protocol.record import Record
from ots_tunnel.sinks.choice import open_sink
from ots_tunnel.sinks.kafka.connections import Connections
from ots_tunnel.sinks.kafka.failures import (
    NO_PLACE,
    VERDICTS,
    Failure,
    Verdict,
    is_about_login,
    is_about_one_record,
    is_in_doubt,
    verdict,
)
from ots_tunnel.sinks.kafka.login import FileLogin, Login
from ots_tunnel.sinks.kafka.message import Message, Messages, Origin
from ots_tunnel.sinks.kafka.places import Places
from ots_tunnel.sinks.kafka.settings import delivery_timeout, producer_settings
from ots_tunnel.sinks.kafka.shipment import PORTION, Parcel, Shipment
from tests.support.records import record

TIMED_OUT = Failure("_MSG_TIMED_OUT", "Local: Message timed out")
TOO_LARGE = Failure("MSG_SIZE_TOO_LARGE", "Broker: Message size too large")


def keyed(*key: KeyValue, number: int = 0) -> Record:
    columns = tuple((f"pk{place}", value) for place, value in enumerate(key))
    return record(columns, Column("n", number), sequence=SequenceInfo(1, 2, number))


def message(*key: KeyValue) -> Message:
    messages = Messages(Origin("shop", "orders", "t"), ChannelId("c"), ChannelType.STREAM)
    ((made,),) = messages.of([keyed(*key)])
    return made


@pytest.mark.parametrize(
    ("key", "expected"),
    [
        (("user-1", 42), '["user-1",42]'),
        (("42",), '["42"]'),
        ((42,), "[42]"),
        ((b"42",), '[{"base64":"NDI="}]'),
        (('{"base64":"NDI="}',), '["{\\"base64\\":\\"NDI=\\"}"]'),
        (("a,b", "c"), '["a,b","c"]'),
        (("a", "b,c"), '["a","b,c"]'),
        (("ä\n",), '["ä\\n"]'),
        ((-(1 << 63), (1 << 63) - 1), "[-9223372036854775808,9223372036854775807]"),
    ],
)
def test_the_key_is_the_same_for_equal_keys_alone(key: tuple[KeyValue, ...], expected: str) -> None:
    assert message(*key)[0] == expected.encode()


def test_contents_do_not_show_up_in_texts() -> None:
    row = keyed("user-1")
    assert "user-1" not in repr(Parcel(row, row.key, row.size, deque(), Places()))


@pytest.mark.parametrize(
    ("timeout", "deadline", "expected"),
    [(30, 16.7, 15.7), (5, 16.7, 4), (30, 1.2, 0.6), (1, 60, 0.5), (30, 0.3, 0.15)],
)
def test_no_message_leaves_later_than_the_deadline(timeout: float, deadline: float, expected: float) -> None:
    assert delivery_timeout(timeout, deadline) == pytest.approx(expected)
    settings = producer_settings(kafka(timeoutSeconds=timeout), deadline)
    assert settings["message.timeout.ms"] == pytest.approx(expected * 1000)
    assert settings["message.timeout.ms"] < deadline * 1000


def kafka(**more: Any) -> KafkaSinkConfig:
    return KafkaSinkConfig.model_validate({"bootstrapServers": ["b1:9092", "[::1]:9093"], "topic": "changes", **more})


def test_settings_keep_order_and_lose_nothing() -> None:
    settings = producer_settings(kafka(), 10)

    assert settings["bootstrap.servers"] == "b1:9092,[::1]:9093"
    assert (settings["enable.idempotence"], settings["acks"]) == (True, "all")
    assert settings["partitioner"] == "murmur2_random"
    assert settings["allow.auto.create.topics"] is False


@pytest.mark.parametrize(
    ("given", "named"),
    [
        ({"bootstrapServers": []}, "sink.kafka.bootstrapServers"),
        ({"bootstrapServers": "b1:9092"}, "sink.kafka.bootstrapServers"),
        ({"bootstrapServers": ["b1:9092,b2:9092"]}, "sink.kafka.bootstrapServers.0"),
        ({"bootstrapServers": ["b1"]}, "sink.kafka.bootstrapServers.0"),
        ({"topic": "a b"}, "sink.kafka.topic"),
        (
            {"compression": "brotli"},
            "sink.kafka.compression: found 'brotli', allowed is one of none, .*zstd",
        ),
        ({"securityProtocol": "TLS"}, "sink.kafka.securityProtocol: .*SASL_SSL"),
        ({"timeoutSeconds": 0}, "sink.kafka.timeoutSeconds"),
        ({"password": "hush"}, "sink.kafka.password: unknown, allowed is bootstrapServers, .*timeoutSeconds$"),
        ({"securityProtocol": "SASL_SSL"}, "sink.kafka.sasl: missing, securityProtocol SASL_SSL needs"),
        (
            {"sasl": {"mechanism": "PLAIN", "directory": "/login"}},
            "sink.kafka.sasl: found with securityProtocol PLAINTEXT, allowed is SASL_PLAINTEXT or SASL_SSL",
        ),
        (
            {"sasl": {"mechanism": "GSSAPI", "directory": "/login"}, "securityProtocol": "SASL_SSL"},
            "sink.kafka.sasl.mechanism: .*SCRAM-SHA-512",
        ),
        (
            {"caFile": "/ca.pem", "securityProtocol": "PLAINTEXT"},
            "sink.kafka.caFile: found with securityProtocol PLAINTEXT, allowed is SSL or SASL_SSL",
        ),
    ],
)
def test_a_wrong_document_is_refused_by_its_path(tmp_path: Path, given: dict[str, Any], named: str) -> None:
    path = tmp_path / "worker.yaml"
    path.write_text(str(document({"bootstrapServers": ["b1:9092"], "topic": "changes", **given})))  # a subset of YAML

    with pytest.raises(ConfigError, match=named):
        load_config(path)


def document(sink: dict[str, Any]) -> dict[str, Any]:
    source = {"endpoint": "http://nowhere", "instance": "i", "table": "t", "tunnelName": "n", "tunnelId": "id"}
    return {"source": {**source, "credentials": {"directory": "/keys"}}, "sink": {"kafka": sink}}


def opened(sink: dict[str, Any]) -> None:
    open_sink(WorkerConfig.model_validate(document({"bootstrapServers": ["b1:9092"], "topic": "changes", **sink})))


def test_files_that_cannot_be_used_are_named_before_anything_is_touched(tmp_path: Path) -> None:
    (tmp_path / "username").write_text("writer")
    (tmp_path / "nonsense.pem").write_text("nonsense")
    sasl = {"securityProtocol": "SASL_SSL", "sasl": {"mechanism": "PLAIN", "directory": str(tmp_path)}}

    with pytest.raises(ConfigError, match=r"sink\.kafka\.sasl\.directory: .*password: No such file"):
        opened(sasl)
    (tmp_path / "password").write_text("\n")
    with pytest.raises(ConfigError, match=r"sink\.kafka\.sasl\.directory: .*password: is empty"):
        opened(sasl)
    with pytest.raises(ConfigError, match=r"sink\.kafka\.caFile: .*missing\.pem: No such file"):
        opened({"securityProtocol": "SSL", "caFile": str(tmp_path / "missing.pem")})
    with pytest.raises(ConfigError, match=r"sink\.kafka\.caFile: .*nonsense\.pem: allowed are certificates in PEM"):
        opened({"securityProtocol": "SSL", "caFile": str(tmp_path / "nonsense.pem")})


def test_a_missing_library_is_named_with_its_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    original = builtins.__import__

    def without_kafka(name: str, *rest: Any, **more: Any) -> Any:
        if name.partition(".")[0] == "confluent_kafka":
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
        return original(name, *rest, **more)

    for name in [name for name in sys.modules if name.startswith("ots_tunnel.sinks.kafka")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setattr(builtins, "__import__", without_kafka)
    with pytest.raises(ConfigError, match=r"sink\.kafka: confluent_kafka is not installed.*'ots-tunnel\[kafka\]'"):
        opened({})


def test_a_login_is_read_again_when_it_changes(tmp_path: Path) -> None:
    now = [0.0]
    files = FileLogin(tmp_path, clock=lambda: now[0])
    (tmp_path / "username").write_text("writer\n")
    (tmp_path / "password").write_text(" with blanks \n")

    assert files.read() == Login("writer", " with blanks ")
    now[0] = 2
    assert files.changed() is None
    (tmp_path / "new").write_text("other")
    os.replace(tmp_path / "new", tmp_path / "password")
    assert files.changed() is None, "files are read at most once a second"
    now[0] = 4
    assert files.changed() == Login("writer", "other")
    assert "other" not in repr(files.read())


@pytest.mark.parametrize(
    ("failure", "expected"),
    [
        (TIMED_OUT, Verdict.AGAIN),
        (Failure("NOT_ENOUGH_REPLICAS", ""), Verdict.AGAIN),
        (Failure("_PURGE_INFLIGHT", ""), Verdict.AGAIN),
        (Failure("A_CODE_OF_THE_FUTURE", ""), Verdict.AGAIN),
        (Failure("UNKNOWN_TOPIC_OR_PART", ""), Verdict.CHECK_TOPIC),
        (TOO_LARGE, Verdict.ALONE),
        (Failure("MSG_SIZE_TOO_LARGE", "", by_client=True), Verdict.REJECTED),
        (Failure("TOPIC_AUTHORIZATION_FAILED", ""), Verdict.REJECTED),
        (Failure("_AUTHENTICATION", ""), Verdict.REJECTED),
    ],
)
def test_every_failure_has_its_verdict(failure: Failure, expected: Verdict) -> None:
    assert verdict(failure) is expected


@pytest.mark.parametrize(
    ("failure", "doubtful"),
    [
        (TIMED_OUT, True),
        (Failure("_PURGE_INFLIGHT", ""), True),
        (Failure("_PURGE_QUEUE", ""), True),  # it may wait there for its second try
        (Failure("OUT_OF_ORDER_SEQUENCE_NUMBER", ""), True),
        (Failure("_FATAL", "", by_client=True), False),
        (Failure("UNKNOWN_TOPIC_OR_PART", ""), False),
        (TOO_LARGE, False),
    ],
)
def test_a_message_that_was_not_refused_may_still_arrive(failure: Failure, doubtful: bool) -> None:
    assert is_in_doubt(failure) is doubtful


def test_an_error_that_may_concern_other_records_refuses_none() -> None:
    """A record is refused only if it was alone in its request, or if the client itself refused it."""
    concerned = [name for name in VERDICTS if is_about_one_record(Failure(name, ""))]

    assert "MSG_SIZE_TOO_LARGE" in concerned
    for name in concerned:
        assert verdict(Failure(name, "")) is Verdict.ALONE
        assert verdict(Failure(name, ""), alone=True) is Verdict.REJECTED


def test_a_broker_that_went_away_while_we_logged_in_did_not_refuse_us() -> None:
    refused = "sasl_ssl://b1: SASL authentication error: Authentication failed: Invalid username or password"
    gone = "sasl_ssl://b1: SASL PLAIN mechanism handshake failed: Local: Broker transport failure"

    assert is_about_login(Failure("_AUTHENTICATION", refused))
    assert not is_about_login(Failure("_AUTHENTICATION", gone))
    assert not is_about_login(Failure("_TRANSPORT", refused))


@pytest.mark.parametrize(
    ("text", "broker"),
    [
        (
            "127.0.0.1:9092/bootstrap: Connect to ipv4#127.0.0.1:9092 failed: Connection refused",
            "127.0.0.1:9092/bootstrap",
        ),
        ("sasl_ssl://b1.shop:9093/2: SSL handshake failed: certificate verify failed", "b1.shop:9093/2"),
        ("ssl://[::1]:9093/bootstrap: Disconnected", "[::1]:9093/bootstrap"),
        ("Local: Timed out", ""),
    ],
)
def test_an_error_of_a_connection_names_its_broker(text: str, broker: str) -> None:
    assert Failure("_TRANSPORT", text).broker == broker


def portion_of(shipment: Shipment) -> tuple[Parcel, ...]:
    """The next portion, as the sink asks for it."""
    asyncio.run(shipment.fill())
    return shipment.portion()


def take_all(shipment: Shipment) -> list[Parcel]:
    taken: list[Parcel] = []
    while portion := portion_of(shipment):
        taken += portion
    return taken


def test_the_next_record_of_a_key_waits_for_the_former_one() -> None:
    shipment = Shipment([keyed("a", number=1), keyed("b", number=1), keyed("a", number=2)])

    first = take_all(shipment)
    assert [parcel.key for parcel in first] == [keyed("a").key, keyed("b").key]
    shipment.confirmed([first[1]])
    assert take_all(shipment) == []
    shipment.confirmed([first[0]])
    (last,) = take_all(shipment)
    assert last.record.columns[0].value == 2
    shipment.confirmed([last])
    assert shipment.is_done


def test_failed_records_go_first_when_everything_under_way_has_ended() -> None:
    shipment = Shipment(keyed(str(key)) for key in range(PORTION.max_rows + 5))
    first = portion_of(shipment)

    shipment.failed(first[3], TIMED_OUT)
    assert portion_of(shipment) == (), "nothing new after a failure"
    for parcel in first:
        if parcel is not first[3]:
            shipment.confirmed([parcel])
    assert shipment.is_stuck
    shipment.resume()
    assert portion_of(shipment) == (first[3],)
    assert len(portion_of(shipment)) == 5


def test_a_request_that_is_too_large_is_taken_apart_before_anything_is_refused() -> None:
    shipment = Shipment([keyed("a"), keyed("b")])
    small, large = take_all(shipment)

    shipment.failed(small, TOO_LARGE)
    shipment.failed(large, TOO_LARGE)
    assert not shipment.refused
    shipment.resume()
    assert [parcel.alone for parcel in take_all(shipment)] == [True, True]
    shipment.confirmed([small])
    shipment.failed(large, TOO_LARGE)
    assert [parcel for parcel, _ in shipment.refused] == [large]
    assert portion_of(shipment) == ()


def test_no_more_than_a_portion_of_single_messages_is_under_way() -> None:
    """Each has a request of its own: thousands of them would time out in the client's queue."""
    shipment = Shipment(keyed(str(key)) for key in range(PORTION.max_rows + 5))
    for parcel in take_all(shipment):
        shipment.failed(parcel, NO_PLACE)
    shipment.resume()

    first = portion_of(shipment)
    assert [parcel.alone for parcel in first] == [True] * PORTION.max_rows
    assert not shipment.goes_on
    shipment.confirmed(first[1:])
    assert portion_of(shipment) == ()
    shipment.confirmed(first[:1])
    assert shipment.goes_on
    assert len(portion_of(shipment)) == 5


@pytest.mark.parametrize("seed", range(20))
def test_whatever_fails_every_record_is_stored_and_none_overtakes_its_key(seed: int) -> None:
    """A destination that confirms, stores without confirming, or loses, in any order."""
    chance = random.Random(seed)
    shipment = Shipment(keyed(chance.choice("abcdef"), number=number) for number in range(300))
    under_way: deque[Parcel] = deque()
    stored: list[tuple[bytes, int]] = []
    while not shipment.is_done:
        under_way += portion_of(shipment)
        if shipment.is_stuck:
            assert not under_way
            shipment.resume()
            continue
        under_way.rotate(chance.randrange(10))
        parcel = under_way.popleft()
        outcome = chance.random()
        if outcome < 0.9:
            stored.append((parcel.key, parcel.record.columns[0].value))
        if outcome < 0.8:
            shipment.confirmed([parcel])
        else:
            shipment.failed(parcel, TIMED_OUT)

    assert {number for _, number in stored} == set(range(300))
    for key in {key for key, _ in stored}:
        numbers = [number for each, number in stored if each == key]
        assert numbers == sorted(numbers)


def test_a_login_that_vanishes_for_a_moment_is_kept(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("username", "password"):
        (tmp_path / name).write_text("hush")
    sasl = {"mechanism": "PLAIN", "directory": tmp_path}
    config = kafka(securityProtocol="SASL_SSL", sasl=sasl)
    impatient = partial(FileLogin, clock=lambda: math.inf)
    monkeypatch.setattr("ots_tunnel.sinks.kafka.connections.FileLogin", impatient)
    connections = Connections(config, deadline=10, check_pause=lambda: 0.0)

    (tmp_path / "password").unlink()
    assert not connections.refresh_login()
    assert "the login cannot be read" in caplog.text
    assert "hush" not in caplog.text
