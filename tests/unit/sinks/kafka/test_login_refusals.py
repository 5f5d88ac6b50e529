"""A refused login counts when it is about the login that is in use, and a new login is used by every producer."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from ots_tunnel.config import KafkaSinkConfig
from ots_tunnel.sinks.kafka import connections as connections_module
from ots_tunnel.sinks.kafka.connections import Connections
from ots_tunnel.sinks.kafka.failures import Failure
from ots_tunnel.sinks.kafka.login_refusals import ATTEMPT_SECONDS

REFUSED = Failure("_AUTHENTICATION", "invalid credentials")


class Producer:
    """Takes the place of librdkafka: remembers its login."""

    made: list[Producer]
    fatal = None

    def __init__(self, settings: dict[str, object], topic: str, on_error: Callable[[Failure], None]) -> None:
        self.password = settings["sasl.password"]
        self.on_error = on_error
        self.made.append(self)

    def log_in(self, username: str, password: str) -> None:
        self.password = password


class Scene:
    """Producers whose login is in a folder."""

    def __init__(self, folder: Path) -> None:
        self.now = 1000.0
        self._folder = folder
        (folder / "username").write_text("me")
        self.rotate("old")
        sasl = {"mechanism": "PLAIN", "directory": str(folder)}
        config = KafkaSinkConfig.model_validate(
            {"bootstrapServers": ["b:9092"], "topic": "t", "securityProtocol": "SASL_PLAINTEXT", "sasl": sasl}
        )
        self.connections = Connections(config, deadline=9, check_pause=lambda: 0, clock=lambda: self.now)

    def rotate(self, password: str) -> None:
        (self._folder / "password").write_text(password)

    @property
    def refusal(self) -> Failure | None:
        return self.connections.login_refusals.last


@pytest.fixture
def scene(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Scene:
    Producer.made = []
    monkeypatch.setattr(connections_module, "ReportingProducer", Producer)
    return Scene(tmp_path)


async def test_a_wrong_login_counts_at_once(scene: Scene) -> None:
    await scene.connections.ready()
    Producer.made[0].on_error(REFUSED)

    assert scene.refusal == REFUSED


async def test_a_refusal_of_the_former_login_does_not_count(scene: Scene) -> None:
    await scene.connections.ready()
    scene.rotate("new")
    for _ in range(2):  # of two connections
        Producer.made[0].on_error(REFUSED)
        scene.now += 0.5

    assert (scene.refusal, Producer.made[0].password) == (None, "new")


async def test_a_refusal_of_the_new_login_counts_when_no_attempt_with_the_former_one_is_left(scene: Scene) -> None:
    await scene.connections.ready()
    scene.rotate("new")
    Producer.made[0].on_error(REFUSED)
    scene.now += ATTEMPT_SECONDS + 0.1
    Producer.made[0].on_error(REFUSED)

    assert scene.refusal == REFUSED


async def test_a_new_producer_brings_its_login_to_the_other_one(scene: Scene) -> None:
    await scene.connections.ready()
    scene.rotate("new")
    await scene.connections.ready(alone=True)

    assert [each.password for each in Producer.made] == ["new", "new"]
