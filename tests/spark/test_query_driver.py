"""The driver program of a query in real sessions: its record, its files, SIGTERM, and an error for good."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from ots_tunnel.client.sync_tunnel import SyncTunnelClient
from ots_tunnel.model import TunnelType
from ots_tunnel.query.document import QueryConfig, dump_query_config
from ots_tunnel.query.record import QueryProgress, read_query_record
from ots_tunnel.query.settings import BY_FILE_SYSTEM, LOG_FILES
from ots_tunnel.spark.cluster import ClusterAccess, ConfigMaps
from ots_tunnel.spark.query.driver import run
from ots_tunnel.spark.query.recorder import Recorder
from ots_tunnel.spark.query.stop_request import StopRequest
from tests.support.kube.config_maps import ConfigMapServer
from tests.support.programs.processes import inherited_environment
from tests.support.waiting import wait_until

from .conftest import ROWS, Instance
from .test_stream import LOCAL, create, numbers, tunnels, write

__all__ = ["tunnels"]

# one process: one session
pytestmark = [pytest.mark.spark, pytest.mark.timeout(1200), pytest.mark.xdist_group("spark"), pytest.mark.lasts(60)]

#: Exit code of a program that may be tried again.
AGAIN = 1
RECORD = "/api/v1/namespaces/shop/configmaps/orders-stream"


def document(instance: Instance, folder: Path, tunnel: str = "stream", **files: object) -> dict[str, Any]:
    return {
        "source": {
            "endpoint": instance.endpoint,
            "instance": "demo",
            "table": "flights",
            "tunnel": tunnel,
            "credentials": {"directory": str(instance.secrets)},
        },
        "sink": {"files": {"url": (folder / "changes").as_uri(), **files}},
        "checkpointDirectory": str(folder / "checkpoint"),
        "triggerIntervalSeconds": 1,
        "heartbeatIntervalSeconds": 5,
        "heartbeatTimeoutSeconds": 15,
        "progress": {"namespace": "shop", "configMap": "orders-stream", "label": "tunnel-1"},
    }


def is_begun(files: Path) -> bool:
    """Whether a batch is committed."""
    return (files / "_spark_metadata" / "0").exists()


class Program:
    """The driver program in a process of its own; started again where it may be tried again."""

    def __init__(self, document: Path) -> None:
        self._document, self._log = document, document.with_suffix(".log")
        self._process = self._started()

    def has_written(self, spark: Any, everything: list[int]) -> bool:
        code = self._process.poll()
        assert code in (None, AGAIN), self.output()
        if code == AGAIN:
            self._process = self._started()
        files = self._document.parent / "changes"
        return is_begun(files) and numbers(spark, files) == everything

    def end(self) -> int:
        self._process.send_signal(signal.SIGTERM)
        return self._process.wait(120)

    def kill(self) -> None:
        self._process.kill()
        self._process.wait(30)

    def output(self) -> str:
        return self._log.read_text(errors="replace")[-3000:]

    def _started(self) -> subprocess.Popen[bytes]:
        with self._log.open("ab") as log:
            return subprocess.Popen(
                [sys.executable, "-m", "ots_tunnel.spark.query.driver", "--config", str(self._document)],
                env=inherited_environment(PYSPARK_SUBMIT_ARGS=LOCAL, PYSPARK_PYTHON=sys.executable),
                stdout=log,
                stderr=subprocess.STDOUT,
            )


@contextmanager
def running(spark: Any, access: ClusterAccess, wanted: dict[str, Any]) -> Iterator[Any]:
    """A driver in a thread of its own; it is asked to end at last.

    One that may be tried again is: Spark gives up a Python process that a busy machine starts in more than 10 s.
    """
    config, stop = QueryConfig.model_validate(wanted), StopRequest()
    assert config.progress is not None
    recorder = Recorder(ConfigMaps(access, "shop"), config.progress)

    def attempts() -> int:
        code = AGAIN
        while code == AGAIN and not stop.is_made:
            code = run(config, spark, recorder, stop)
        return code

    with ThreadPoolExecutor(1) as pool:
        ends = pool.submit(attempts)
        try:
            yield ends
        finally:
            stop.is_made = True


def test_changes_become_lines_and_the_record_tells_of_them(
    spark: Any,
    instance: Instance,
    tunnels: SyncTunnelClient,
    tmp_path: Path,
    config_map_server: ConfigMapServer,
    cluster_access: ClusterAccess,
) -> None:
    create(tunnels, TunnelType.Stream)
    create(tunnels, TunnelType.Stream, "other")
    config_map_server.make(RECORD)

    def progress() -> QueryProgress:
        return read_query_record(config_map_server.maps[RECORD]).progress

    def lines() -> list[Any]:
        if not is_begun(tmp_path / "changes"):
            return []
        return [json.loads(row.value) for row in spark.read.text(str(tmp_path / "changes")).collect()]

    spark.conf.unset(LOG_FILES)
    with running(spark, cluster_access, document(instance, tmp_path, compression="gzip")) as ends:
        write(instance, *range(9000, 9100))
        wait_until(lambda: ends.done() or (len(lines()) == 100 and progress().lag_seconds is not None), 300)
    assert ends.result() == 143
    assert progress().batch_id is not None
    assert spark.conf.get(LOG_FILES) in BY_FILE_SYSTEM
    assert sorted(line["key"]["flight"] for line in lines()) == list(range(9000, 9100))
    assert {line["cells"][0]["value"]["integer"] for line in lines()} == set(range(9000, 9100))

    # the folder of another tunnel: no attempt repairs it
    with running(spark, cluster_access, document(instance, tmp_path, "other")) as ends:
        assert ends.result(300) == 0
    assert progress().is_final
    assert progress().error.startswith("checkpointLocation: found the offsets of tunnel")

    # a lost folder of checkpoints: Spark would leave out the batches that are numbered as the files' are
    (tmp_path / "checkpoint").rename(tmp_path / "lost")
    with running(spark, cluster_access, document(instance, tmp_path)) as ends:
        assert ends.result(300) == 0
    assert progress().error.startswith("sink.files.url: found files of batches up to")


def test_a_program_that_sigterm_ends_goes_on_when_it_is_started_again(
    spark: Any, instance: Instance, tunnels: SyncTunnelClient, tmp_path: Path
) -> None:
    create(tunnels, TunnelType.Stream)
    columns = [{"name": "delay", "type": "integer"}]
    wanted = document(instance, tmp_path, format="Parquet", columns=columns, compression="zstd")
    del wanted["progress"]
    path = tmp_path / "query.yaml"
    path.write_text(dump_query_config(QueryConfig.model_validate(wanted)))

    for start in (9000, 9100):
        write(instance, *range(start, start + 100))
        program = Program(path)
        try:
            wait_until(partial(program.has_written, spark, list(range(9000, start + 100))), 300, explain=program.output)
            assert program.end() == 143, program.output()
        finally:
            program.kill()

    delays = spark.read.parquet(str(tmp_path / "changes")).select("delay").collect()
    assert sorted(row.delay for row in delays) == list(range(9000, 9200))


def test_existing_rows_come_before_the_changes_also_over_a_restart(
    spark: Any, instance: Instance, tunnels: SyncTunnelClient, tmp_path: Path
) -> None:
    create(tunnels, TunnelType.BaseAndStream)
    wanted = document(instance, tmp_path, format="Parquet")
    del wanted["progress"]
    path = tmp_path / "query.yaml"
    path.write_text(dump_query_config(QueryConfig.model_validate(wanted)))
    everything = list(range(ROWS))

    for written in ((), range(9000, 9100)):
        write(instance, *written)
        everything += written
        program = Program(path)
        try:
            wait_until(partial(program.has_written, spark, everything), 300, explain=program.output)
            assert program.end() == 143, program.output()
        finally:
            program.kill()

    rows = spark.read.parquet(str(tmp_path / "changes")).select("key.flight", "sequence").collect()
    assert sorted(row.flight for row in rows if row.sequence is None) == list(range(ROWS))
    assert sorted(row.flight for row in rows if row.sequence is not None) == list(range(9000, 9100))
