"""Leader election: one leader at a time, which gives up in time and releases the lease at its end."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from ots_tunnel.errors import ConfigError
from ots_tunnel_operator.kube import lease as lease_module
from ots_tunnel_operator.kube.client import KubeError
from ots_tunnel_operator.kube.kinds import Kind
from ots_tunnel_operator.kube.lease import Lease

#: Instead of 15, 10 and 2 seconds.
SCALE = 0.1


class OneLease:
    """An API server with one Lease, or one that does not answer."""

    def __init__(self) -> None:
        self.stored: dict[str, Any] | None = None
        self.version = 0
        self.answers = True

    async def get(self, kind: Kind, namespace: str, name: str) -> dict[str, Any] | None:
        self._refuse()
        return self.stored

    async def create(self, kind: Kind, manifest: dict[str, Any]) -> None:
        self._refuse()
        self._store(manifest)

    async def replace(self, kind: Kind, manifest: dict[str, Any]) -> None:
        self._refuse()
        if manifest["metadata"]["resourceVersion"] != str(self.version):
            raise KubeError(409, "Conflict", "changed meanwhile")
        self._store(manifest)

    async def close(self) -> None:
        pass

    def _refuse(self) -> None:
        if not self.answers:
            raise KubeError(0, "TimeoutError", "no answer")

    def _store(self, manifest: dict[str, Any]) -> None:
        self.version += 1
        self.stored = manifest | {"metadata": manifest["metadata"] | {"resourceVersion": str(self.version)}}


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> OneLease:
    server = OneLease()

    async def connect() -> OneLease:
        return server

    monkeypatch.setattr(lease_module.Kube, "connect", connect)
    for name in ("LEASE_SECONDS", "RENEW_SECONDS", "RETRY_SECONDS"):
        monkeypatch.setattr(lease_module, name, getattr(lease_module, name) * SCALE)
    return server


@contextmanager
def candidate(identity: str) -> Iterator[Lease]:
    lease = Lease("ott", "operator", identity, tick=lambda: None)
    lease.start()
    try:
        yield lease
    finally:
        lease.stop()


def test_a_follower_takes_over_as_soon_as_the_leader_ends(server: OneLease) -> None:
    with candidate("first") as first:
        assert first.leading.wait(10)
        with candidate("second") as second:
            assert not second.leading.wait(3 * lease_module.RETRY_SECONDS)
            first.stop()
            assert second.leading.wait(10)


def test_a_leader_that_cannot_renew_stops_before_another_may_take_over(server: OneLease) -> None:
    with candidate("first") as first:
        assert first.leading.wait(10)
        lost: list[float] = []
        first.when_lost(lambda: lost.append(time.monotonic()))
        renewed = time.monotonic()
        server.answers = False

        assert first.lost.wait(10)

        assert lost[0] - renewed < lease_module.LEASE_SECONDS


def test_a_lease_that_is_held_by_another_is_not_taken_while_it_is_renewed(server: OneLease) -> None:
    with candidate("first") as first:
        assert first.leading.wait(10)
        with candidate("second") as second:
            assert not second.leading.wait(1.3 * lease_module.LEASE_SECONDS)
            assert not first.lost.is_set()


def test_without_access_to_the_cluster_there_is_no_leader(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async def connect() -> OneLease:
        raise ConfigError("no kubeconfig")

    monkeypatch.setattr(lease_module.Kube, "connect", connect)
    with candidate("first") as first:
        assert first.lost.wait(10)
        late: list[bool] = []
        first.when_lost(lambda: late.append(True))  # the lease is lost already: called at once

        assert late == [True]
        assert not first.leading.is_set()
    assert "no kubeconfig" in [entry.__dict__.get("error") for entry in caplog.records]


def test_a_lease_that_cannot_be_released_is_logged(server: OneLease, caplog: pytest.LogCaptureFixture) -> None:
    with candidate("first") as first:
        assert first.leading.wait(10)
        server.answers = False
        first.stop()

    assert "the lease could not be released" in caplog.messages
