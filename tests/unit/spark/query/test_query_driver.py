"""The driver program around a query that is played: what it records, and its exit codes."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import yaml
from pyspark.errors import StreamingQueryException

from ots_tunnel.errors import ConfigError, OwnershipLost, QueryRefused, TransportError, TunnelError
from ots_tunnel.query.document import QueryConfig, dump_query_config
from ots_tunnel.query.record import PassedGap, QueryProgress
from ots_tunnel.spark.query import driver, start
from ots_tunnel.spark.query.stop_request import StopRequest
from tests.support.documents.query_document import QUERY

CONFIG = QueryConfig.model_validate(QUERY)
GAPS = {"c1": [1_699_990_000.5, 1_699_993_600.5]}
REPORT = {"channels": 3, "lagSeconds": 4.2, "heldBytes": 0, "error": "", "readUntil": 1_700_000_000, "passedGaps": GAPS}
PROGRESS = {
    "timestamp": "2023-11-14T22:13:20.000Z",
    "batchId": 7,
    "numInputRows": 50,
    "inputRowsPerSecond": 12.4,
    "sources": [{"latestOffset": json.dumps(REPORT)}],
}
SETTINGS = {"spark.speculation": "false", "spark.sql.shuffle.partitions": "8"}
SESSION: Any = SimpleNamespace(conf=SimpleNamespace(get=SETTINGS.get), version="4.2.1")


class Query:
    """Each look at it is one step: a progress, an error, SIGTERM, or seconds of a batch that is under way."""

    def __init__(self, stop: StopRequest, *steps: object) -> None:
        self.lastProgress: Any = None
        self.status = {"isTriggerActive": False}
        self.stopped = 0
        self.seconds = 0.0
        self._stop, self._steps = stop, list(steps)

    def awaitTermination(self, seconds: float) -> bool:
        match self._steps.pop(0):
            case (last, Exception() as error):
                self.lastProgress = last
                raise error
            case (last, "SIGTERM"):
                self.lastProgress = last
                self._stop.is_made = True
                return True
            case Exception() as error:
                raise error
            case "ended":
                return True
            case "SIGTERM":
                self._stop.is_made = True
            case float() as seconds:
                self.status = {"isTriggerActive": True}
                self.seconds += seconds
            case found:
                self.lastProgress = found
                self.status = {"isTriggerActive": False}
        return False

    def stop(self) -> None:
        self.stopped += 1


class Records:
    def __init__(self, refusal: Exception | None = None) -> None:
        self.followed: list[QueryProgress] = []
        self.noted: tuple[PassedGap, ...] = ()
        self.ended: list[tuple[str, bool]] = []
        self._refusal = refusal

    def follow(self, progress: QueryProgress) -> None:
        if self._refusal is not None:
            raise self._refusal
        self.followed.append(progress)

    def note(self, gaps: Iterable[PassedGap]) -> None:
        self.noted = tuple(gaps)

    def end(self, error: str, *, is_final: bool) -> None:
        if self._refusal is not None:
            raise self._refusal
        self.ended.append((error, is_final))


def failure(line: str) -> StreamingQueryException:
    text = f"[STREAM_FAILED] Query terminated\nTraceback (most recent call last):\n  File ...\n{line}\n\n== Progress =="
    return StreamingQueryException(text)


def run(monkeypatch: pytest.MonkeyPatch, records: Any, *steps: object) -> tuple[int, Query]:
    stop = StopRequest()
    query = Query(stop, *steps)
    monkeypatch.setattr(driver, "start_query", lambda config, spark, report: query)
    monkeypatch.setattr(driver, "monotonic", lambda: query.seconds)
    # the document's folders are those of a pod
    monkeypatch.setattr(driver, "check_folders", lambda config: None)
    monkeypatch.setattr(driver, "leave_folders", lambda config: None)
    return driver.run(CONFIG, SESSION, records, stop), query


@pytest.mark.parametrize(
    ("durations", "last"),
    [({"latestOffset": 4, "triggerExecution": 5}, 7), ({"addBatch": 3, "triggerExecution": 9}, 8)],
)
def test_a_batch_without_rows_counts_and_an_idle_look_does_not(
    monkeypatch: pytest.MonkeyPatch, durations: dict[str, int], last: int
) -> None:
    records = Records()

    run(monkeypatch, records, {**PROGRESS, "batchId": 8, "numInputRows": 0, "durationMs": durations}, "SIGTERM")

    assert records.followed[-1].batch_id == last


def test_sigterm_stops_the_query_and_is_no_success(monkeypatch: pytest.MonkeyPatch) -> None:
    records = Records()

    code, query = run(monkeypatch, records, None, PROGRESS, {**PROGRESS, "batchId": 8, "numInputRows": 0}, "SIGTERM")

    # with 0 the Spark operator would take the stream for finished
    assert (code, query.stopped) == (143, 1)
    gap = PassedGap("c1", 1_699_990_000, 1_699_993_601)
    assert records.followed == [QueryProgress(7, 12, 4, 3, read_until=1_700_000_000, passed_gaps=(gap,))] * 3
    assert records.ended == []


@pytest.mark.parametrize(
    ("line", "told", "is_final"),
    [
        ("ots_tunnel.errors.ReplayDiffers: channel c1: gone", "channel c1: gone", True),
        ("ots_tunnel.errors.QueryRefused: checkpointLocation: found", "checkpointLocation: found", True),
        ("ots_tunnel.errors.ConfigError: option 'tunnel': found", "option 'tunnel': found", False),
        ("ots_tunnel.errors.AuthFailed: OTSAuthFailed: no", "OTSAuthFailed: no", False),
        ("ots_tunnel.errors.Nobody: text", "text", False),
        ("java.io.IOException: no space left", "java.io.IOException: no space left", False),
    ],
)
def test_a_failure_is_one_line_in_the_record(
    monkeypatch: pytest.MonkeyPatch, line: str, told: str, is_final: bool
) -> None:
    records = Records()

    code, query = run(monkeypatch, records, PROGRESS, failure(line))

    assert (code, query.stopped) == (0 if is_final else 1, 1)
    assert records.ended == [(told, is_final)]


UNTOLD = {**PROGRESS, "sources": [{"latestOffset": json.dumps({**REPORT, "passedGaps": {}})}]}


def test_a_gap_of_the_last_batch_is_noted_before_the_end_is_recorded(monkeypatch: pytest.MonkeyPatch) -> None:
    """The batch behind the gap is committed, and ends with the query between two looks."""
    records = Records()
    run(monkeypatch, records, UNTOLD, (PROGRESS, failure("java.io.IOException: full")))

    assert [gap.channel_id for gap in records.noted] == ["c1"]


def test_a_gap_of_the_last_batch_is_recorded_where_the_program_is_asked_to_end(monkeypatch: pytest.MonkeyPatch) -> None:
    records = Records()
    run(monkeypatch, records, UNTOLD, (PROGRESS, "SIGTERM"))

    assert [gap.channel_id for gap in records.followed[-1].passed_gaps] == ["c1"]


def lags(monkeypatch: pytest.MonkeyPatch, *steps: object) -> list[int | None]:
    records = Records()
    run(monkeypatch, records, *steps, "SIGTERM")
    return [found.lag_seconds for found in records.followed]


def idle(lag: float | None, at: str) -> dict[str, Any]:
    sources = [{"latestOffset": json.dumps({**REPORT, "lagSeconds": lag})}]
    return {**PROGRESS, "timestamp": f"2023-11-14T{at}.000Z", "numInputRows": 0, "sources": sources}


def batch(seconds: int, lag: float, at: str) -> dict[str, Any]:
    """A batch that took so long behind 5 s in which the source was asked."""
    durations = {"latestOffset": 5000, "addBatch": 1000 * seconds, "triggerExecution": 5000 + 1000 * seconds}
    return {**idle(lag, at), "numInputRows": 50, "durationMs": durations}


def test_the_lag_grows_while_a_batch_hangs(monkeypatch: pytest.MonkeyPatch) -> None:
    later = {**PROGRESS, "timestamp": "2023-11-14T22:14:20.000Z"}

    assert lags(monkeypatch, PROGRESS, 1.0, 29.0, 900.0, later, 1.0, 29.0) == [4, 4, 4, 933, 4, 4, 4, 4]


def test_a_first_batch_that_hangs_has_a_lag(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where no channel was open yet the source knows no lag; the changes of the batch wait."""
    assert lags(monkeypatch, idle(None, "22:00:00"), 1.0, 900.0) == [None, None, 900, 900]


def test_the_lag_does_not_fall_while_the_same_changes_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    """The source is asked when a batch begins, and Spark tells its answer when the batch ends."""
    found = lags(monkeypatch, batch(1, 0, "22:00:00"), 1.0, batch(3600, 0, "22:00:01"), 1.0, 600.0)

    assert found == [0, 0, 3600, 3600, 4200, 4200]


def test_a_trigger_that_has_just_begun_is_no_batch_under_way(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing waits in an idle table, and triggerIntervalSeconds may be an hour."""
    assert lags(monkeypatch, idle(0, "22:00:00"), 3600.0, idle(0, "23:00:00"), 3600.0) == [0, 0, 0, 0, 0]


@pytest.mark.parametrize(("line", "code"), [("ots_tunnel.errors.ReplayDiffers: gone", 2), ("OSError: full", 1)])
def test_without_a_record_the_exit_code_tells_whether_to_try_again(
    monkeypatch: pytest.MonkeyPatch, line: str, code: int
) -> None:
    assert run(monkeypatch, None, failure(line))[0] == code


def test_files_of_another_query_are_refused_before_it_starts(tmp_path: Path) -> None:
    (tmp_path / "files" / "_spark_metadata").mkdir(parents=True)
    (tmp_path / "files" / "_spark_metadata" / "0").touch()
    sink = {"files": {"url": (tmp_path / "files").as_uri()}}
    config = QueryConfig.model_validate({**QUERY, "sink": sink, "checkpointDirectory": str(tmp_path / "new")})
    records = Records()

    assert driver.run(config, SESSION, records, StopRequest()) == 0

    [(error, is_final)] = records.ended
    assert is_final
    assert error.startswith("sink.files.url: found files of batches up to 0")


def test_a_folder_of_files_is_given_back_by_a_query_that_does_not_begin(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(config: QueryConfig, spark: object, report: Any) -> None:
        assert (tmp_path / "files" / "_ots-query").exists()
        raise failure("ots_tunnel.errors.ConfigError: option 'tunnel': found")

    sink = {"files": {"url": (tmp_path / "files").as_uri()}}
    config = QueryConfig.model_validate({**QUERY, "sink": sink, "checkpointDirectory": str(tmp_path / "new")})
    monkeypatch.setattr(driver, "start_query", refuse)

    assert driver.run(config, SESSION, Records(), StopRequest()) == 1
    assert not (tmp_path / "files" / "_ots-query").exists()


@pytest.mark.parametrize(
    ("error", "is_final"),
    [
        (QueryRefused("option 'table': found 't', which keeps 3 versions"), True),
        (ConfigError("option 'endpoint': found 'http://a.example', no connection to it"), False),
        (TransportError("no answer"), False),
    ],
)
def test_a_delta_table_that_does_not_begin_is_told(
    monkeypatch: pytest.MonkeyPatch, error: TunnelError, is_final: bool
) -> None:
    def refuse(config: QueryConfig, spark: object, report: Any) -> None:
        raise error

    files = {"url": "file:///nowhere", "format": "Delta", "mode": "Mirror"}
    config = QueryConfig.model_validate({**QUERY, "sink": {"files": files}})
    monkeypatch.setattr(driver, "start_query", refuse)
    records = Records()

    assert driver.run(config, SESSION, records, StopRequest()) == (0 if is_final else 1)
    assert records.ended == [(str(error), is_final)]


def test_a_query_that_nobody_asked_to_end_is_tried_again(monkeypatch: pytest.MonkeyPatch) -> None:
    records = Records()

    assert run(monkeypatch, records, PROGRESS, "ended")[0] == 1
    assert records.ended == [("the query was stopped by something else", False)]


def test_a_lost_record_ends_the_query(monkeypatch: pytest.MonkeyPatch) -> None:
    code, query = run(monkeypatch, Records(OwnershipLost("another tunnel")), PROGRESS)

    assert (code, query.stopped) == (1, 1)


def test_a_reason_that_is_not_recorded_is_tried_again(monkeypatch: pytest.MonkeyPatch) -> None:
    code, _ = run(monkeypatch, Records(OwnershipLost("gone")), failure("ots_tunnel.errors.ReplayDiffers: gone"))

    assert code == 1


@pytest.mark.parametrize("text", [None, "source: [", "source: {}"])
def test_a_wrong_document_is_exit_code_2(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str | None) -> None:
    monkeypatch.setattr(driver, "set_up_logs", lambda: None)
    path = tmp_path / "query.yaml"
    if text is not None:
        path.write_text(text)

    assert driver.main(["--config", str(path)]) == 2


def test_a_record_outside_a_pod_is_exit_code_2(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(driver, "set_up_logs", lambda: None)
    monkeypatch.delenv("KUBERNETES_SERVICE_HOST", raising=False)
    path = tmp_path / "query.yaml"
    path.write_text(dump_query_config(CONFIG))

    assert driver.main(["--config", str(path)]) == 2


def test_the_options_of_source_and_sink() -> None:
    document = yaml.safe_load(dump_query_config(CONFIG))
    columns = [{"name": "or`der", "type": "integer"}, {"name": "price", "type": "double"}]
    document["sink"]["files"] |= {"url": "file:///lake/a%20b", "columns": columns}
    config = QueryConfig.model_validate(document)

    assert start.sink_options(config) == {
        # with a scheme: `spark.hadoop.fs.defaultFS` of a program may name another file system
        "path": "file:///lake/a b",
        "checkpointLocation": "file:///var/lib/ots",
        "compression": "none",
    }
    assert start.source_options(config)["columns"] == "`or``der` BIGINT, `price` DOUBLE"
    assert start.source_options(config)["onPossibleGap"] == "stop"
    assert "columns" not in start.source_options(CONFIG)


def test_a_setting_that_breaks_the_promise_ends_the_query_before_anything_is_read(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    records = Records()
    monkeypatch.setitem(SETTINGS, "spark.sql.streaming.checkpointFileManagerClass", "shop.Fast")

    code, query = run(monkeypatch, records, PROGRESS)

    assert (code, query.lastProgress) == (0, None)
    [(text, is_final)] = records.ended
    assert is_final
    assert text.startswith(
        "spark.conf: found spark.sql.streaming.checkpointFileManagerClass, allowed is none or org.apache.spark.sql."
    )
