"""Leader election: one leader at a time, which gives up in time and releases the lease at its end."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any, cast

import pytest

from ots_tunnel.errors import ConfigError
from ots_tunnel_operator.kube import lease as lease_module
from ots_tunnel_operator.kube.cluster import Cluster
from ots_tunnel_operator.kube.errors import KubeError
from ots_tunnel_operator.kube.kinds import Kind
from ots_tunnel_operator.kube.lease import Lease
from ots_tunnel_operator.log_actions import LogAction
from tests.support.waiting import wait_until

#: Instead of 15, 10 and 2 seconds.
SCALE = 0.1
#: Seconds for which a test waits, on a machine that is busy.
PATIENCE = 60.0


class OneLease:
    """An API server with one Lease, or one that does not answer."""

    def __init__(self) -> None:
        self.stored: dict[str, Any] | None = None
        self.version = 0
        self.answers = True
        self.reads = 0

    async def get(self, kind: Kind, namespace: str, name: str) -> dict[str, Any] | None:
        self._refuse()
        self.reads += 1
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


class FairClock:
    """Seconds that count only while this process runs.

    A busy machine lets a process stand still for as long as a tenth of a lease lasts: then no candidate, whichever
    thread wakes up first, may find that time is over for the others.
    """

    #: Seconds between two steps, and the most that one of them counts for.
    step, most = 0.01, 0.05

    def __init__(self) -> None:
        self._seconds = 0.0
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run, name="fair clock", daemon=True)

    def __call__(self) -> float:
        return self._seconds

    def __enter__(self) -> FairClock:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()

    def _run(self) -> None:
        last = time.monotonic()
        while not self._over.wait(self.step):
            now = time.monotonic()
            self._seconds += min(now - last, self.most)
            last = now


@pytest.fixture
def clock() -> Iterator[FairClock]:
    with FairClock() as clock:
        yield clock


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch, clock: FairClock) -> OneLease:
    server = OneLease()

    async def connect() -> OneLease:
        return server

    monkeypatch.setattr(lease_module.Kube, "connect", connect)
    for name in ("LEASE_SECONDS", "RENEW_SECONDS", "LAST_SECONDS", "RETRY_SECONDS", "ABSENT_SECONDS", "STALL_SECONDS"):
        monkeypatch.setattr(lease_module, name, getattr(lease_module, name) * SCALE)
    monkeypatch.setattr(lease_module, "now", clock)
    monkeypatch.setattr(lease_module, "time", SimpleNamespace(monotonic=clock, time=time.time))
    return server


@contextmanager
def candidate(
    identity: str,
    still: Callable[[], float] = lambda: 0.0,
    *,
    serves: str = "every namespace",
    connect: Callable[[], Awaitable[Cluster]] | None = None,
) -> Iterator[Lease]:
    lease = Lease("ott", "operator", identity, tick=lambda: None, still=still, serves=serves, connect=connect)
    lease.start()
    try:
        yield lease
    finally:
        lease.stop()


def test_a_follower_takes_over_as_soon_as_the_leader_ends(server: OneLease) -> None:
    with candidate("first") as first:
        assert first.leading.wait(PATIENCE)
        with candidate("second") as second:
            assert not second.leading.wait(3 * lease_module.RETRY_SECONDS)
            first.stop()
            assert second.leading.wait(PATIENCE)


@pytest.mark.parametrize("serves", ["lake", "shop"])
def test_a_follower_says_for_whom_it_waits(server: OneLease, serves: str, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)

    def lines() -> list[logging.LogRecord]:
        return [line for line in caplog.records if getattr(line, "action", None) is LogAction.STANDING_BY]

    with candidate("first", serves="shop") as first:
        assert first.leading.wait(PATIENCE)
        with candidate("second", serves=serves) as second:
            wait_until(lines, PATIENCE)
            assert not second.leading.wait(3 * lease_module.RETRY_SECONDS)
            told = second.waits_for

    # one line for each holder, however often it renews
    (line,) = lines()
    if serves == "shop":
        assert (line.levelname, told) == ("INFO", "first")
    else:
        assert (line.levelname, told) == ("WARNING", "first, which serves shop, not lake")
        assert "lake has no operator" in line.message


def test_a_lease_of_an_older_release_says_nothing_about_namespaces(
    server: OneLease, caplog: pytest.LogCaptureFixture
) -> None:
    spec = {"holderIdentity": "first", "leaseDurationSeconds": 15}
    server.stored = {"metadata": {"name": "operator", "resourceVersion": "0"}, "spec": spec}
    with candidate("second", serves="lake") as second:
        wait_until(lambda: second.waits_for, PATIENCE)
        assert second.waits_for == "first"
    assert [line for line in caplog.records if line.levelno >= logging.WARNING] == []


def test_a_leader_that_cannot_renew_stops_before_another_may_take_over(server: OneLease, clock: FairClock) -> None:
    with candidate("first") as first:
        assert first.leading.wait(PATIENCE)
        lost: list[float] = []
        first.when_lost(lambda: lost.append(clock()))
        renewed = clock()
        server.answers = False

        assert first.lost.wait(PATIENCE)

        assert lost[0] - renewed < lease_module.LEASE_SECONDS


def test_a_lease_that_is_held_by_another_is_not_taken_while_it_is_renewed(server: OneLease) -> None:
    with candidate("first") as first:
        assert first.leading.wait(PATIENCE)
        with candidate("second") as second:
            assert not second.leading.wait(1.3 * lease_module.LEASE_SECONDS)
            assert not first.lost.is_set()


def test_a_leader_whose_loop_stands_still_loses_the_lease_to_another(
    server: OneLease, caplog: pytest.LogCaptureFixture
) -> None:
    blocked = threading.Event()

    def still() -> float:
        return 2 * lease_module.STALL_SECONDS if blocked.is_set() else 0.0

    with candidate("first", still) as first:
        assert first.leading.wait(PATIENCE)
        assert first.is_held()
        with candidate("second") as second:
            blocked.set()

            assert second.leading.wait(PATIENCE)

            assert first.lost.is_set()
            assert not first.is_held()
            assert second.is_held()
    assert "the event loop stands still, the lease is not renewed" in caplog.messages


def test_a_follower_is_alive_by_its_attempts_and_a_leader_is_not(server: OneLease) -> None:
    ticks: list[float] = []
    lease = Lease("ott", "operator", "first", tick=lambda: ticks.append(0.0), still=lambda: 0.0, serves="shop")
    lease.start()
    try:
        assert lease.leading.wait(PATIENCE)
        attempts = len(ticks)
        version = server.version
        wait_until(lambda: server.version > version + 2, PATIENCE, "renewals")
    finally:
        lease.stop()

    assert attempts > 0
    assert len(ticks) == attempts


def test_a_leader_that_was_suspended_holds_nothing_and_takes_nothing_back(
    server: OneLease, clock: FairClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    suspended = 0.0
    monkeypatch.setattr(lease_module, "now", lambda: clock() + suspended)
    with candidate("first") as first:
        assert first.leading.wait(PATIENCE)
        suspended = lease_module.LEASE_SECONDS

        assert not first.is_held()
        assert first.lost.wait(PATIENCE)


@pytest.mark.parametrize("is_deleted", [False, True], ids=["there", "deleted"])
def test_a_leader_that_was_suspended_within_a_renewal_does_not_send_it(
    server: OneLease, clock: FairClock, monkeypatch: pytest.MonkeyPatch, is_deleted: bool
) -> None:
    """The others would wait for the life of a Lease that its holder gives up."""
    suspended = 0.0
    versions: list[int] = []
    monkeypatch.setattr(lease_module, "now", lambda: clock() + suspended)
    read = server.get

    async def read_and_sleep(kind: Kind, namespace: str, name: str) -> dict[str, Any] | None:
        nonlocal suspended
        suspended = lease_module.LEASE_SECONDS
        versions.append(server.version)
        server.stored = None if is_deleted else server.stored
        return await read(kind, namespace, name)

    with candidate("first") as first:
        assert first.leading.wait(PATIENCE)
        monkeypatch.setattr(server, "get", read_and_sleep)

        assert first.lost.wait(PATIENCE)

    assert [server.version] == versions[:1]


def test_no_renewal_begins_in_the_last_moment(
    server: OneLease, clock: FairClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It may be stored when its sender has given up, and the others would wait for it."""
    suspended = 0.0
    monkeypatch.setattr(lease_module, "now", lambda: clock() + suspended)
    monkeypatch.setattr(lease_module, "LAST_SECONDS", 5.0)
    monkeypatch.setattr(lease_module, "RENEW_SECONDS", 10.0)
    with candidate("first") as first:
        assert first.leading.wait(PATIENCE)
        wait_until(lambda: server.version > 1, PATIENCE, "a renewal")
        suspended = 8.0
        version = server.version

        assert first.lost.wait(PATIENCE)

        assert server.version - version <= 1  # one may have been under way


def test_a_deleted_lease_has_no_second_holder_while_the_first_one_may_write(server: OneLease) -> None:
    blocked = threading.Event()

    def still() -> float:
        return 2 * lease_module.STALL_SECONDS if blocked.is_set() else 0.0

    with candidate("first", still) as first:
        assert first.leading.wait(PATIENCE)
        with candidate("second") as second:
            wait_until(lambda: second.waits_for, PATIENCE)
            blocked.set()
            server.stored = None

            assert second.leading.wait(PATIENCE)

            assert not first.is_held()


def test_a_deleted_lease_is_not_made_by_a_candidate_that_never_saw_it(
    server: OneLease, monkeypatch: pytest.MonkeyPatch
) -> None:
    with candidate("first") as first:
        assert first.leading.wait(PATIENCE)
        monkeypatch.setattr(lease_module, "ABSENT_SECONDS", 10.0)
        server.stored = None
        with candidate("second") as second:
            wait_until(lambda: second.waits_for, PATIENCE)

            assert second.waits_for == "first"
            assert first.is_held()


@pytest.mark.parametrize("is_deleted_before", [False, True], ids=["deleted once", "deleted twice"])
def test_a_deleted_lease_is_not_made_at_once_by_a_follower_that_was_cut_off(
    server: OneLease, clock: FairClock, is_deleted_before: bool
) -> None:
    """What it saw last, be it the Lease or that there is none, is older than the holder's last renewal."""
    blocked, missing, cut_off = threading.Event(), threading.Event(), threading.Event()

    class OwnConnection(OneLease):
        async def get(self, kind: Kind, namespace: str, name: str) -> dict[str, Any] | None:
            if cut_off.is_set():
                raise KubeError(0, "TimeoutError", "no answer")
            if missing.is_set():
                cut_off.set()  # in the moment before the holder makes the Lease again
                return None
            return await server.get(kind, namespace, name)

        async def create(self, kind: Kind, manifest: dict[str, Any]) -> None:
            await server.create(kind, manifest)

        async def replace(self, kind: Kind, manifest: dict[str, Any]) -> None:
            await server.replace(kind, manifest)

    async def connect() -> Cluster:
        return cast(Cluster, OwnConnection())

    def still() -> float:
        return 2 * lease_module.STALL_SECONDS if blocked.is_set() else 0.0

    with candidate("first", still) as first:
        assert first.leading.wait(PATIENCE)
        with candidate("second", connect=connect) as second:
            wait_until(lambda: second.waits_for, PATIENCE)
            (missing if is_deleted_before else cut_off).set()
            assert cut_off.wait(PATIENCE)
            missing.clear()
            seen = clock()
            wait_until(lambda: clock() - seen > 1.3 * lease_module.LEASE_SECONDS, PATIENCE)
            blocked.set()
            server.stored = None
            cut_off.clear()

            assert second.leading.wait(PATIENCE)

            assert not first.is_held()


def test_a_deleted_lease_is_made_again_by_its_holder(server: OneLease) -> None:
    with candidate("first") as first:
        assert first.leading.wait(PATIENCE)
        server.stored = None
        wait_until(lambda: server.stored, PATIENCE)

        assert first.is_held()


def test_a_leader_that_finds_another_holder_writes_nothing_more(server: OneLease) -> None:
    with candidate("first") as first:
        assert first.leading.wait(PATIENCE)
        before = server.reads
        server.stored = {
            "metadata": {"name": "operator", "resourceVersion": "other"},
            "spec": {"holderIdentity": "other", "leaseDurationSeconds": 15},
        }

        assert first.lost.wait(PATIENCE)

        assert not first.is_held()
        assert server.reads - before <= 2  # one may have been under way


def test_a_leader_that_releases_its_lease_holds_it_no_more(server: OneLease, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another candidate may lead from the moment in which the release is stored."""
    held: list[bool] = []
    store = server.replace

    async def replace(kind: Kind, manifest: dict[str, Any]) -> None:
        await store(kind, manifest)
        if not manifest["spec"]["holderIdentity"]:
            held.append(first.is_held())

    with candidate("first") as first:
        assert first.leading.wait(PATIENCE)
        monkeypatch.setattr(server, "replace", replace)
        first.stop()

    assert held == [False]


def test_a_deleted_lease_that_another_candidate_has_made_is_missing_from_anew(
    server: OneLease, clock: FairClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is deleted once more before the next look: who made it leads, and makes it again."""
    made: list[float] = []
    store = server.create

    async def create(kind: Kind, manifest: dict[str, Any]) -> None:
        made.append(clock())
        if len(made) == 1:
            raise KubeError(409, "AlreadyExists", "another candidate was faster")
        await store(kind, manifest)

    spec = {"holderIdentity": "first", "leaseDurationSeconds": 15}
    server.stored = {"metadata": {"name": "operator", "resourceVersion": "0"}, "spec": spec}
    monkeypatch.setattr(server, "create", create)
    with candidate("second") as second:
        wait_until(lambda: second.waits_for, PATIENCE)
        server.stored = None

        assert second.leading.wait(PATIENCE)

    assert made[1] - made[0] > lease_module.LEASE_SECONDS


def test_without_access_to_the_cluster_there_is_no_leader(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async def connect() -> OneLease:
        raise ConfigError("no kubeconfig")

    monkeypatch.setattr(lease_module.Kube, "connect", connect)
    with candidate("first") as first:
        assert first.lost.wait(PATIENCE)
        late: list[bool] = []
        first.when_lost(lambda: late.append(True))  # the lease is lost already: called at once

        assert late == [True]
        assert not first.leading.is_set()
    assert "no kubeconfig" in [entry.__dict__.get("error") for entry in caplog.records]


def test_a_lease_that_cannot_be_released_is_logged(server: OneLease, caplog: pytest.LogCaptureFixture) -> None:
    with candidate("first") as first:
        assert first.leading.wait(PATIENCE)
        server.answers = False
        first.stop()

    assert "the lease could not be released" in caplog.messages
