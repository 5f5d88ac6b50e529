"""A broker for all tests of this folder."""

from __future__ import annotations

import datetime
import ipaddress
import itertools
from collections.abc import Iterator
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from tests.kafka.broker import Broker, BrokerUnavailable, class_path
from tests.support.lacking import lack

_numbers = itertools.count()


@pytest.fixture(scope="session")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A self-signed certificate for 127.0.0.1 in PEM form; `key.pem` beside it also has the key."""
    folder = tmp_path_factory.mktemp("certificate")
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "broker")])
    now = datetime.datetime.now(datetime.UTC)
    made = (
        x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
        .public_bytes(serialization.Encoding.PEM)
    )
    private = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    (folder / "ca.pem").write_bytes(made)
    (folder / "key.pem").write_bytes(private + made)
    return folder / "ca.pem"


@pytest.fixture(scope="session")
def broker(tmp_path_factory: pytest.TempPathFactory, certificate: Path) -> Iterator[Broker]:
    """The broker, which runs at the start of every test; a test that kills it starts it again."""
    try:
        jars = class_path()
    except BrokerUnavailable as reason:
        lack("javac", f"Apache Kafka cannot be started: {reason}")
    made = Broker(jars, tmp_path_factory.mktemp("kafka"), certificate.with_name("key.pem"))
    try:
        made.start()
        yield made
    finally:
        made.close()


@pytest.fixture
def topic(broker: Broker) -> str:
    """A topic of four partitions for one test."""
    return broker.create_topic(f"changes-{next(_numbers)}")
