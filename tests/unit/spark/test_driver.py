"""The driver program around its job; the job itself is in tests/spark."""

from __future__ import annotations

import threading
from concurrent.futures import Future
from pathlib import Path
from typing import Any

import pytest

from ots_tunnel.errors import ConnectionLost, OwnershipLost
from ots_tunnel.snapshot.document import SnapshotConfig, dump_snapshot_config
from ots_tunnel.snapshot.splits import SplitList
from ots_tunnel.spark import driver as snapshot
from tests.support.snapshot_document import DOCUMENT


class Record:
    """Keeps the marked splits, like ProgressRecord."""

    def __init__(self, *failures: Exception) -> None:
        self.splits = SplitList(("k",), (b"1", b"2"))
        self.done: frozenset[int] = frozenset()
        self._failures = list(failures)

    def check(self) -> None:
        pass

    def mark(self, done: dict[int, int]) -> None:
        if self._failures:
            raise self._failures.pop(0)
        self.done |= frozenset(done)


@pytest.fixture(autouse=True)
def no_logs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(snapshot, "set_up_logs", lambda: None)
    monkeypatch.setattr(snapshot, "RECORD_SECONDS", 0.001)


def test_finished_splits_are_recorded_while_the_job_runs() -> None:
    job: Future[list[int]] = Future()
    record = Record()
    looks = iter([{0: 0}, {0: 0, 2: 0}])

    def done() -> dict[int, int]:
        found = next(looks, None)
        if found is None:
            job.set_result([1])
        return found or {}

    assert snapshot.follow(job, done, record) == [1]
    assert record.done == {0, 2}


def test_a_failed_job_leaves_finished_splits_recorded() -> None:
    job: Future[Any] = Future()
    job.set_exception(RuntimeError("\nJob aborted\n  ots_tunnel.errors.SinkRejected: OTSInvalidPK: bad\n  at x"))
    record = Record()

    with pytest.raises(snapshot.SnapshotIncomplete, match=r"failed: ots_tunnel\.errors\.SinkRejected: OTSInvalidPK"):
        snapshot.follow(job, lambda: {1: 0}, record)
    assert record.done == {1}


def test_a_timeout_inside_the_job_is_a_failure_of_the_job() -> None:
    job: Future[Any] = Future()
    job.set_exception(TimeoutError("inside"))

    with pytest.raises(snapshot.SnapshotIncomplete, match="inside"):
        snapshot.follow(job, dict, Record())


def test_an_api_server_that_is_away_does_not_end_the_job() -> None:
    job: Future[Any] = Future()
    record = Record(ConnectionLost("away"))
    looks = iter([{0: 0}, {0: 0}])

    def done() -> dict[int, int]:
        found = next(looks, None)
        if found is None:
            job.set_result([])
        return found or {}

    snapshot.follow(job, done, record)
    assert record.done == {0}


def test_another_driver_ends_the_job() -> None:
    with pytest.raises(OwnershipLost):
        snapshot.follow(Future(), dict, Record(OwnershipLost("another driver")))


def test_a_driver_that_is_cut_off_ends_its_job_while_a_call_hangs() -> None:
    job: Future[Any] = Future()
    answer = threading.Event()

    class Hanging(Record):
        def check(self) -> None:
            raise OwnershipLost("not confirmed")

        def mark(self, done: dict[int, int]) -> None:
            answer.wait(10)

    with pytest.raises(OwnershipLost, match="not confirmed"):
        snapshot.follow(job, dict, Hanging())
    assert not answer.is_set()
    answer.set()


def test_an_unexpected_error_of_the_record_ends_the_job() -> None:
    with pytest.raises(ValueError, match="no JSON"):
        snapshot.follow(Future(), dict, Record(ValueError("no JSON")))


def test_a_job_is_cancelled_until_it_has_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(snapshot, "CANCEL_SECONDS", 0.001)
    job: Future[Any] = Future()
    calls: list[int] = []

    def cancel() -> None:  # a job that is being planned is not there yet
        calls.append(1)
        if len(calls) == 3:
            job.set_exception(RuntimeError("cancelled"))

    snapshot.end(job, cancel)
    assert len(calls) == 3


@pytest.mark.parametrize("text", [None, "source: [", "source: {}"])
def test_a_wrong_document_is_exit_code_2(tmp_path: Path, text: str | None) -> None:
    path = tmp_path / "snapshot.yaml"
    if text is not None:
        path.write_text(text)

    assert snapshot.main(["--config", str(path)]) == 2


def test_outside_a_pod_is_exit_code_2(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("KUBERNETES_SERVICE_HOST", raising=False)
    path = tmp_path / "snapshot.yaml"
    path.write_text(dump_snapshot_config(SnapshotConfig.model_validate(DOCUMENT)))

    assert snapshot.main(["--config", str(path)]) == 2
