"""A topic as the sink of an object: from the object on a real API server to the records in a real broker."""

from __future__ import annotations

import json
import random
import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from ots_tunnel.model import Action
from ots_tunnel.protocol.plainbuffer.column import Column
from ots_tunnel.tables import RowWrite
from tests.kafka.broker import PASSWORD, USER, Broker, running_broker
from tests.kafka.certificate import make_certificate
from tests.kafka.topic import numbers_by_key, read_topic
from tests.operator.scenes.loopback_node import LoopbackNode
from tests.operator.scenes.operator_scene import OperatorScene, running_scene
from tests.support.kube.api_server import ApiServer

pytestmark = [
    pytest.mark.api,
    pytest.mark.timeout(600),
    pytest.mark.unmeasured,
    pytest.mark.xdist_group("kafka-object"),  # they share one broker, which some of them stop
]

ROWS = [f"{number:06}" for number in range(40)]
#: Longest wait in seconds for a condition that stands until a worker has run for a minute.
SETTLING = 240.0


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The certificate of the broker."""
    return make_certificate(tmp_path_factory.mktemp("certificate"))


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory, authority: Path) -> Iterator[Broker]:
    """A broker, which runs at the start of every test."""
    with running_broker(tmp_path_factory.mktemp("kafka"), authority.with_name("key.pem")) as broker:
        yield broker


def create(scene: OperatorScene, kafka: dict[str, Any], **changes: Any) -> None:
    """Create the object with this topic, and let the operator work."""
    workers = {"heartbeatIntervalSeconds": 5, "heartbeatTimeoutSeconds": 15}
    scene.create(sink={"kafka": kafka}, workers=workers, **changes)
    scene.operator.start()


def has_pod(scene: OperatorScene) -> bool:
    return bool(scene.kube.list("Pod", scene.namespace))


def says(scene: OperatorScene, kind: str, status: str, reason: str, *words: str) -> Callable[[], bool]:
    """Whether a condition has this status and reason, and all these words in its message."""

    def found() -> bool:
        condition = scene.condition(kind)
        message = condition.get("message", "")
        return (condition.get("status"), condition.get("reason")) == (status, reason) and all(
            word in message for word in words
        )

    return found


def put(scene: OperatorScene, numbers: range) -> None:
    """Write every row again with each of the numbers."""
    for number in numbers:
        scene.put("flights", ROWS, number)


def arrived(broker: Broker, topic: str, number: int) -> bool:
    """Whether every row has come into the topic with this number."""
    by_key = numbers_by_key(read_topic(broker.address(), topic))
    return len(by_key) == len(ROWS) and all(number in numbers for numbers in by_key.values())


def first_times(numbers: list[int]) -> list[int]:
    return list(dict.fromkeys(numbers))


def secret(scene: OperatorScene, name: str, **values: str) -> None:
    metadata = {"name": name, "namespace": scene.namespace}
    scene.kube.create({"kind": "Secret", "metadata": metadata, "stringData": values})


@pytest.mark.lasts(150)
def test_from_wrong_keys_and_a_missing_topic_to_every_record_in_order(
    api_server: ApiServer, tmp_path: Path, broker: Broker, authority: Path
) -> None:
    with running_scene(api_server.kubeconfig, "kafka-sink", tmp_path) as scene, LoopbackNode(scene, tmp_path) as node:
        create(
            scene,
            {
                "bootstrapServers": [broker.address("SASLTLS")],
                "topic": "orders",
                "securityProtocol": "SASL_SSL",
                "sasl": {"mechanism": "SCRAM-SHA-256", "secretRef": {"name": "login"}},
                "caRef": {"name": "authorities", "key": "kafka.crt"},
            },
        )
        path = "spec.sink.kafka.sasl.secretRef.name 'login': no such Secret"
        scene.until(says(scene, "SinkReady", "False", "SecretNotFound", path, "username", "password"), "no login")
        assert scene.service.call("state")["instances"][0]["tunnels"] == []
        secret(scene, "login", username=USER, password="wrong-horse")
        path = "spec.sink.kafka.caRef.name 'authorities': no such Secret"
        scene.until(says(scene, "SinkReady", "False", "SecretNotFound", path, "kafka.crt"), "no certificates")
        secret(scene, "authorities", **{"kafka.crt": authority.read_text()})
        scene.until(lambda: has_pod(scene), "the Deployment has its pod")

        code, words = node.run_until_end()
        assert (code, words.startswith("SinkRejected: _AUTHENTICATION: topic 'orders' at 127.0.0.1:")) == (4, True)
        denied = says(scene, "SinkReady", "False", "SinkDenied", "exit code 4", "_AUTHENTICATION", "spec.sink")
        scene.until(denied, "the login is refused")
        assert says(scene, "Ready", "False", "SinkDenied")()
        assert says(scene, "Stalled", "False", "AsExpected")()

        login = {"stringData": {"password": PASSWORD}}
        scene.kube.patch("Secret", scene.namespace, "login", login)
        code, words = node.run_until_end()
        assert (code, "topic 'orders' at 127.0.0.1" in words) == (4, True), words
        scene.until(
            says(scene, "SinkReady", "False", "SinkDenied", "UNKNOWN_TOPIC", "'orders'"), "the topic is missing"
        )

        broker.create_topic("orders")
        node.run()
        scene.until(lambda: arrived(broker, "orders", 0), "existing rows are in the topic")
        put(scene, range(1, 20))
        node.restart()
        put(scene, range(20, 30))
        scene.until(lambda: arrived(broker, "orders", 29), "changes are in the topic")
        for key, numbers in numbers_by_key(read_topic(broker.address(), "orders")).items():
            assert first_times(numbers) == list(range(30)), key
        scene.until(lambda: scene.is_true("SinkReady"), "the sink has answered", SETTLING)
        scene.until(lambda: scene.is_true("Ready") and scene.is_true("CredentialsValid"), "all is well", SETTLING)
        assert not [
            word for word in ("wrong-horse", PASSWORD) if word in node.output() + scene.operator.last_output(1 << 30)
        ]


@pytest.mark.lasts(60)
def test_records_that_the_broker_refuses(api_server: ApiServer, tmp_path: Path, broker: Broker) -> None:
    broker.create_topic("small", max_message_bytes=2000)
    with (
        running_scene(api_server.kubeconfig, "kafka-refused", tmp_path) as scene,
        LoopbackNode(scene, tmp_path) as node,
    ):
        put_large(scene, "000007")
        create(scene, {"bootstrapServers": [broker.address()], "topic": "small"})
        scene.until(lambda: has_pod(scene), "the Deployment has its pod")

        code, words = node.run_until_end()
        assert (code, "MSG_SIZE_TOO_LARGE: topic 'small'" in words) == (4, True), words
        assert """"refused_keys": ["id='000007'"]""" in node.output()
        scene.until(
            says(scene, "Stalled", "True", "SinkRejected", "MSG_SIZE_TOO_LARGE", "kubectl ott"), "it is stalled"
        )
        assert says(scene, "SinkReady", "False", "SinkRejected")()
        scene.until(lambda: not has_pod(scene), "the workers are stopped")

        change = {"spec": {"delivery": {"onPermanentError": "Skip"}}}
        scene.kube.patch("TablestoreTunnel", scene.namespace, "copy", change)
        scene.until(lambda: has_pod(scene), "a worker is wanted again")
        node.run()
        rest = {json.dumps([key]).encode() for key in ROWS if key != "000007"}
        scene.until(lambda: {message.key for message in read_topic(broker.address(), "small")} == rest, "the others")
        scene.until(says(scene, "Degraded", "True", "RecordsRefused"), "it says what was left out")
        assert scene.status()["refused"]["keys"] == 1
        scene.until(lambda: scene.is_true("Ready") and scene.is_true("SinkReady"), "records flow", SETTLING)


def put_large(scene: OperatorScene, key: str) -> None:
    """Write a row that is larger than a message of the topic may be, and that no compression makes smaller."""
    text = random.Random(1).randbytes(4000).hex()
    assert scene.admin.write("flights", [RowWrite(Action.PUT, (("id", key),), (Column("number", text),))]) == (None,)


@pytest.mark.long
@pytest.mark.lasts(330)
def test_a_broker_that_is_away_is_said_and_costs_no_record(
    api_server: ApiServer, tmp_path: Path, broker: Broker
) -> None:
    broker.create_topic("away")
    with running_scene(api_server.kubeconfig, "kafka-away", tmp_path) as scene, LoopbackNode(scene, tmp_path) as node:
        broker.kill()
        create(scene, {"bootstrapServers": [broker.address()], "topic": "away"})
        scene.until(lambda: has_pod(scene), "the Deployment has its pod")
        address = node.begin()
        failing = says(scene, "SinkReady", "False", "SinkErrors", "topic 'away' at 127.0.0.1", "Connection refused")
        scene.until(failing, "no broker at the start", SETTLING)
        assert says(scene, "Degraded", "True", "SinkErrors")()

        broker.start()
        node.await_ready(address)
        scene.until(lambda: arrived(broker, "away", 0), "existing rows are in the topic")
        scene.until(lambda: scene.is_true("SinkReady") and scene.is_true("Ready"), "all is well", SETTLING)

        broker.send(signal.SIGSTOP)
        try:
            put(scene, range(1, 20))
            scene.until(says(scene, "SinkReady", "False", "SinkErrors"), "the broker stands", SETTLING)
        finally:
            broker.send(signal.SIGCONT)
        scene.until(lambda: arrived(broker, "away", 19), "changes are in the topic", SETTLING)
        scene.until(lambda: scene.is_true("SinkReady") and scene.is_true("Ready"), "all is well again", SETTLING)
        for key, numbers in numbers_by_key(read_topic(broker.address(), "away")).items():
            assert first_times(numbers) == list(range(20)), key
