"""A broker for all tests of this folder."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.kafka.broker import Broker, running_broker
from tests.kafka.certificate import make_certificate

_numbers = itertools.count()


@pytest.fixture(scope="session")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A self-signed certificate for 127.0.0.1 in PEM form; `key.pem` beside it also has the key."""
    return make_certificate(tmp_path_factory.mktemp("certificate"))


@pytest.fixture(scope="session")
def broker(tmp_path_factory: pytest.TempPathFactory, certificate: Path) -> Iterator[Broker]:
    """The broker, which runs at the start of every test; a test that kills it starts it again."""
    with running_broker(tmp_path_factory.mktemp("kafka"), certificate.with_name("key.pem")) as broker:
        yield broker


@pytest.fixture
def topic(broker: Broker) -> str:
    """A topic of four partitions for one test."""
    return broker.create_topic(f"changes-{next(_numbers)}")
