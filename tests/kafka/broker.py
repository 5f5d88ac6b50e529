"""A real broker: Apache Kafka as one process that is its own controller, on loopback.

Bound sockets that do not listen hold its ports until the end, so that no other process gets them between a kill and the
next start. Java can bind the same ports because both sides set SO_REUSEADDR.
"""

from __future__ import annotations

import base64
import os
import signal
import socket
import subprocess
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from confluent_kafka import KafkaException
from confluent_kafka.admin import (
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    AdminClient,
    NewTopic,
    ResourcePatternType,
    ResourceType,
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialUpsertion,
)

from tests.support.lacking import lack

BUILD = Path(__file__).parent / "build_kafka.sh"
#: Exit code of the script where the machine lacks Java or the network.
UNAVAILABLE = 1
STARTING = 60.0
ENDING = 20.0
JVM = ("-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn")
LISTENERS = {
    "PLAINTEXT": "PLAINTEXT",
    "SASLPLAIN": "SASL_PLAINTEXT",
    "TLS": "SSL",
    "SASLTLS": "SASL_SSL",
    "CONTROLLER": "PLAINTEXT",
}
USER, PASSWORD = "writer", "correct-horse"


class BrokerUnavailable(Exception):
    """This machine has no Java, or cannot reach the artifact repository."""


def class_path() -> str:
    """Class path of the broker's jars, which are downloaded once.

    Raises:
        BrokerUnavailable: they cannot be downloaded here; the text gives the reason.
        RuntimeError: a jar has a wrong checksum.
    """
    built = subprocess.run([BUILD], capture_output=True, text=True, check=False)
    if built.returncode == UNAVAILABLE:
        raise BrokerUnavailable(built.stderr.strip().splitlines()[-1])
    if built.returncode:
        raise RuntimeError(built.stderr)
    return built.stdout.strip()


class Broker:
    """One broker, which can be started and killed repeatedly.

    Args:
        jars: its class path.
        directory: for its data, settings and log.
        pem: file with its private key and certificate.
    """

    def __init__(self, jars: str, directory: Path, pem: Path) -> None:
        java = os.path.join(os.environ["JAVA_HOME"], "bin", "java") if os.environ.get("JAVA_HOME") else "java"
        self._java = [java, *JVM, "-cp", jars]
        self._directory = directory
        self._held = {name: _held_port() for name in LISTENERS}
        self._process: subprocess.Popen[bytes] | None = None
        self._settings = directory / "server.properties"
        self._settings.write_text("\n".join(f"{key}={value}" for key, value in self._properties(pem).items()))
        first, *rest = uuid.uuid4().bytes
        # Begins with a letter: a dash would be taken for an option.
        cluster = base64.urlsafe_b64encode(bytes((first & 0x3F, *rest))).decode().rstrip("=")
        scram = f"SCRAM-SHA-256=[name={USER},password={PASSWORD}]"
        subprocess.run(
            [
                *self._java,
                "kafka.tools.StorageTool",
                "format",
                "-t",
                cluster,
                "-c",
                self._settings,
                "--add-scram",
                scram,
            ],
            check=True,
            capture_output=True,
            timeout=STARTING,
        )

    def address(self, listener: str = "PLAINTEXT") -> str:
        """host:port of a listener."""
        return f"127.0.0.1:{self._port(listener)}"

    def start(self) -> None:
        """Start it and wait until it answers."""
        with (self._directory / "log").open("ab") as log:
            self._process = subprocess.Popen([*self._java, "kafka.Kafka", self._settings], stdout=log, stderr=log)
        give_up = time.monotonic() + STARTING
        admin = self._admin()
        while True:
            assert self._process.poll() is None, (self._directory / "log").read_text()[-4000:]
            try:
                if admin.list_topics(timeout=1).brokers:
                    return
            except KafkaException:
                assert time.monotonic() < give_up, (self._directory / "log").read_text()[-4000:]

    def send(self, number: signal.Signals) -> None:
        """Send it a signal."""
        assert self._process is not None
        self._process.send_signal(number)

    def kill(self) -> None:
        """Kill it without a warning."""
        self.send(signal.SIGKILL)
        assert self._process is not None
        self._process.wait(ENDING)

    def close(self) -> None:
        """Kill it and release its ports."""
        if self._process is not None and self._process.poll() is None:
            self.send(signal.SIGCONT)
            self.kill()
        for held in self._held.values():
            held.close()

    def create_topic(self, name: str, partitions: int = 4, **settings: object) -> str:
        """Make a topic; settings have underscores for dots."""
        config = {key.replace("_", "."): str(value) for key, value in settings.items()}
        admin = self._admin()
        admin.create_topics([NewTopic(name, partitions, 1, config=config)])[name].result(STARTING)
        return name

    def delete_topic(self, name: str) -> None:
        """Delete a topic and its messages."""
        admin = self._admin()
        admin.delete_topics([name])[name].result(STARTING)

    def topics(self) -> set[str]:
        """Names of its topics."""
        return set(self._admin().list_topics(timeout=STARTING).topics)

    def allow_only(self, topic: str, operation: AclOperation) -> None:
        """Allow the user one operation on a topic and no other."""
        rule = AclBinding(
            ResourceType.TOPIC,
            topic,
            ResourcePatternType.LITERAL,
            f"User:{USER}",
            "*",
            operation,
            AclPermissionType.ALLOW,
        )
        admin = self._admin()
        admin.create_acls([rule])[rule].result(STARTING)
        # The controller has accepted the rule; it is in force once the broker has loaded it.
        asked = AclBindingFilter(
            rule.restype,
            rule.name,
            rule.resource_pattern_type,
            rule.principal,
            rule.host,
            rule.operation,
            rule.permission_type,
        )
        give_up_at = time.monotonic() + STARTING
        while not admin.describe_acls(asked).result(STARTING):
            assert time.monotonic() < give_up_at, "the rule is not in force"
            time.sleep(0.02)

    def set_password(self, password: str) -> None:
        """Change the password of SCRAM-SHA-256."""
        info = ScramCredentialInfo(ScramMechanism.SCRAM_SHA_256, 4096)
        change = UserScramCredentialUpsertion(USER, info, password.encode())
        admin = self._admin()
        admin.alter_user_scram_credentials([change])[USER].result(STARTING)

    def _admin(self) -> AdminClient:
        # The client must exist until its answers arrive.
        return AdminClient({"bootstrap.servers": self.address(), "log_level": 0, "reconnect.backoff.max.ms": 200})

    def _port(self, listener: str) -> int:
        port: int = self._held[listener].getsockname()[1]
        return port

    def _properties(self, pem: Path) -> dict[str, Any]:
        public = [name for name in LISTENERS if name != "CONTROLLER"]
        login = "org.apache.kafka.common.security"
        properties: dict[str, Any] = {
            "process.roles": "broker,controller",
            "node.id": 1,
            "controller.quorum.voters": f"1@{self.address('CONTROLLER')}",
            "listeners": ",".join(f"{name}://{self.address(name)}" for name in LISTENERS),
            "advertised.listeners": ",".join(f"{name}://{self.address(name)}" for name in public),
            "listener.security.protocol.map": ",".join(f"{name}:{kind}" for name, kind in LISTENERS.items()),
            "inter.broker.listener.name": "PLAINTEXT",
            "controller.listener.names": "CONTROLLER",
            "log.dirs": self._directory / "data",
            "auto.create.topics.enable": "true",  # so that a sink that creates a topic is found
            "offsets.topic.replication.factor": 1,
            "offsets.topic.num.partitions": 1,
            "transaction.state.log.replication.factor": 1,
            "transaction.state.log.min.isr": 1,
            "group.initial.rebalance.delay.ms": 0,
            # After a kill, the broker can register again only when its former registration has expired.
            "broker.session.timeout.ms": 1500,
            "broker.heartbeat.interval.ms": 300,
            "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
            "allow.everyone.if.no.acl.found": "true",
            "super.users": "User:ANONYMOUS",
            "sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-256",
            "ssl.keystore.type": "PEM",
            "ssl.keystore.location": pem,
        }
        for name in ("saslplain", "sasltls"):
            properties |= {
                f"listener.name.{name}.plain.sasl.jaas.config": (
                    f'{login}.plain.PlainLoginModule required user_{USER}="{PASSWORD}";'
                ),
                f"listener.name.{name}.scram-sha-256.sasl.jaas.config": f"{login}.scram.ScramLoginModule required;",
            }
        return properties


@contextmanager
def running_broker(folder: Path, pem: Path) -> Iterator[Broker]:
    """A broker that runs when the block begins; where the machine cannot run one, the test is skipped or fails.

    Args:
        folder: for its data, settings and log.
        pem: file with its private key and certificate.
    """
    try:
        jars = class_path()
    except BrokerUnavailable as reason:
        lack("javac", f"Apache Kafka cannot be started: {reason}")
    with started_broker(jars, folder, pem) as broker:
        yield broker


@contextmanager
def started_broker(jars: str, folder: Path, pem: Path) -> Iterator[Broker]:
    """A broker that runs when the block begins, from `class_path`."""
    broker = Broker(jars, folder, pem)
    try:
        broker.start()
        yield broker
    finally:
        broker.close()


def _held_port() -> socket.socket:
    held = socket.socket()
    held.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    held.bind(("127.0.0.1", 0))
    return held
