"""The driver program around the job of a round; the job itself is in tests/spark."""

from __future__ import annotations

import threading
from collections.abc import Collection
from concurrent.futures import Future
from typing import Any
from unittest.mock import MagicMock

import pytest

from ots_tunnel.client.sync_table import SyncTableClient
from ots_tunnel.errors import ConnectionLost, OwnershipLost, PermissionDenied
from ots_tunnel.protocol.plainbuffer.codec import encode_primary_key
from ots_tunnel.protocol.service_codes import service_error
from ots_tunnel.snapshot.copied import Copied, Report
from ots_tunnel.snapshot.cursors import MAX_BYTES
from ots_tunnel.snapshot.document import SnapshotConfig
from ots_tunnel.snapshot.splits import SplitList
from ots_tunnel.spark.failures import Refusal, SnapshotIncomplete, SnapshotRefused
from ots_tunnel.spark.snapshot import rounds
from tests.support.documents.snapshot_document import DOCUMENT

SPLITS = SplitList(("k",), tuple(encode_primary_key((("k", value),)) for value in (1, 2)))


class Record:
    """Keeps what is copied, like ProgressRecord."""

    def __init__(self, *failures: Exception) -> None:
        self.splits = SPLITS
        self.copied = Copied()
        self._failures = list(failures)

    def check(self) -> None:
        pass

    def mark(self, reports: Collection[Report]) -> None:
        if self._failures:
            raise self._failures.pop(0)
        self.copied = self.copied.after(reports, SPLITS)


def finished(*splits: int) -> dict[int, Report | Refusal]:
    return {split: Report(split, SPLITS.split(split).start, None, 1, 0) for split in splits}


@pytest.fixture(autouse=True)
def short_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rounds, "RECORD_SECONDS", 0.001)


def test_results_are_recorded_while_the_job_runs() -> None:
    job: Future[list[int]] = Future()
    record: Any = Record()
    looks = iter([finished(0), finished(0, 2)])

    def results() -> Any:
        found = next(looks, None)
        if found is None:
            job.set_result([1])
        return found or {}

    assert rounds.follow(job, results, record) == [1]
    assert record.copied.done == {0, 2}


def test_a_failed_job_leaves_what_is_copied_recorded() -> None:
    job: Future[Any] = Future()
    job.set_exception(RuntimeError("\nJob aborted\n  ots_tunnel.errors.OwnershipLost: too slow\n  at x"))
    record: Any = Record()

    with pytest.raises(SnapshotIncomplete, match=r"^the job failed: ots_tunnel\.errors\.OwnershipLost: too slow$"):
        rounds.follow(job, lambda: finished(1), record)
    assert record.copied.done == {1}


@pytest.mark.parametrize(("is_final", "error"), [(True, SnapshotRefused), (False, SnapshotIncomplete)])
def test_a_permanent_error_of_a_task_ends_the_round_while_others_run(is_final: bool, error: type[Exception]) -> None:
    record: Any = Record()
    results = {**finished(0), 1: Refusal(1, "split 1: no", is_final)}

    with pytest.raises(error, match=r"^split 1: no$") as caught:
        rounds.follow(Future(), lambda: results, record)

    assert type(caught.value) is error
    assert record.copied.done == {0}


def test_of_permanent_errors_one_that_is_final_decides() -> None:
    record: Any = Record()

    with pytest.raises(SnapshotRefused, match="row"):
        rounds.take(record, {0: Refusal(0, "rights", False), 1: Refusal(1, "row", True)})


def test_a_timeout_inside_the_job_is_a_failure_of_the_job() -> None:
    job: Future[Any] = Future()
    job.set_exception(TimeoutError("inside"))
    record: Any = Record()

    with pytest.raises(SnapshotIncomplete, match="inside"):
        rounds.follow(job, dict, record)


def test_an_api_server_that_is_away_does_not_end_the_job() -> None:
    job: Future[Any] = Future()
    record: Any = Record(ConnectionLost("away"))
    looks = iter([finished(0), finished(0)])

    def results() -> Any:
        found = next(looks, None)
        if found is None:
            job.set_result([])
        return found or {}

    rounds.follow(job, results, record)
    assert record.copied.done == {0}


def test_another_driver_ends_the_job() -> None:
    record: Any = Record(OwnershipLost("another driver"))

    with pytest.raises(OwnershipLost):
        rounds.follow(Future(), dict, record)


def test_a_driver_that_is_cut_off_ends_its_job_while_a_call_hangs() -> None:
    job: Future[Any] = Future()
    answer = threading.Event()

    class Hanging(Record):
        def check(self) -> None:
            raise OwnershipLost("not confirmed")

        def mark(self, reports: Collection[Report]) -> None:
            answer.wait(10)

    record: Any = Hanging()
    with pytest.raises(OwnershipLost, match="not confirmed"):
        rounds.follow(job, dict, record)
    assert not answer.is_set()
    answer.set()


def test_an_unexpected_error_of_the_record_ends_the_job() -> None:
    record: Any = Record(ValueError("no JSON"))

    with pytest.raises(ValueError, match="no JSON"):
        rounds.follow(Future(), dict, record)


def test_a_job_is_cancelled_until_it_has_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rounds, "CANCEL_SECONDS", 0.001)
    job: Future[Any] = Future()
    calls: list[int] = []

    def cancel() -> None:  # a job that is being planned is not there yet
        calls.append(1)
        if len(calls) == 3:
            job.set_exception(RuntimeError("cancelled"))

    rounds.end(job, cancel)
    assert len(calls) == 3


def test_a_round_has_some_tasks_for_each_core_and_room_for_their_cursors() -> None:
    assert rounds.round_size(4, SPLITS) == 64
    long = SplitList(("k",), (b"x" * 4_000,))
    assert rounds.round_size(4, long) == MAX_BYTES // 4_000
    assert rounds.round_size(1_000, SPLITS) == MAX_BYTES // rounds.CURSOR_BYTES
    assert rounds.round_size(1, SplitList(("k",), (b"x" * 2 * MAX_BYTES,))) == 1


@pytest.mark.parametrize(
    ("code", "error"), [("OTSObjectNotExist", SnapshotRefused), ("OTSNoPermissionAccess", PermissionDenied)]
)
def test_a_source_that_is_gone_between_rounds_is_refused_for_good(
    monkeypatch: pytest.MonkeyPatch, code: str, error: type[Exception]
) -> None:
    def describe_table(self: Any, table: str) -> None:
        raise service_error(code, "no")

    monkeypatch.setattr(SyncTableClient, "describe_table", describe_table)
    record: Any = Record()

    with pytest.raises(error, match=code) as caught:
        rounds.copy_round(SnapshotConfig.model_validate(DOCUMENT), MagicMock(), record, [])
    assert "\n" not in str(caught.value)
