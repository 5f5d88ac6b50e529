"""The snapshot's driver program in a real session: complete, with every version, and resumed after a failure."""

from __future__ import annotations

import os
import random
import signal
import threading
import time
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from ots_emulator.server.faults import FaultRule
from ots_tunnel.errors import OwnershipLost
from ots_tunnel.snapshot.document import SnapshotConfig
from ots_tunnel.snapshot.record import PROGRESS_LABEL, read_progress
from ots_tunnel.spark.cluster import ClusterAccess, ConfigMaps
from ots_tunnel.spark.failures import SnapshotIncomplete, SnapshotRefused
from ots_tunnel.spark.snapshot import driver as snapshot
from ots_tunnel.spark.snapshot import progress
from tests.support.kube.config_maps import ConfigMapServer

from .conftest import Instance

# one process: one session
pytestmark = [pytest.mark.spark, pytest.mark.timeout(600), pytest.mark.xdist_group("spark"), pytest.mark.lasts(3)]
PATH = "/api/v1/namespaces/shop/configmaps/flights-snapshot"


def config_of(instance: Instance, **changes: Any) -> SnapshotConfig:
    place = {
        "endpoint": instance.endpoint,
        "instance": "demo",
        "credentials": {"directory": str(instance.secrets)},
    }
    return SnapshotConfig.model_validate(
        {
            "source": {**place, "table": "flights"},
            "sink": {"tablestore": {**place, "table": "flights_copy"}},
            "progress": {"namespace": "shop", "configMap": "flights-snapshot", "label": "tunnel-1"},
            "splits": {"bytesPerSplit": 1_048_576},
            "delivery": {"retry": {"backoffSeconds": 0.01, "backoffMaxSeconds": 0.1}},
            **changes,
        }
    )


@pytest.fixture
def config_maps(cluster_access: ClusterAccess, config_map_server: ConfigMapServer) -> ConfigMaps:
    config_map_server.make(PATH)
    return ConfigMaps(cluster_access, "shop")


def test_the_copy_equals_the_source_with_every_version(
    spark: Any, instance: Instance, config_maps: ConfigMaps, config_map_server: ConfigMapServer
) -> None:
    snapshot.run(config_of(instance), spark, config_maps)

    assert instance.rows("flights_copy") == instance.rows("flights")
    progress = read_progress(config_map_server.maps[PATH])
    assert progress.complete
    assert progress.total is not None
    assert progress.total > 1


def test_a_finished_snapshot_is_not_taken_again(
    spark: Any, instance: Instance, config_maps: ConfigMaps, config_map_server: ConfigMapServer, emulator: Any
) -> None:
    snapshot.run(config_of(instance), spark, config_maps)
    calls, writes = emulator.calls, len(config_map_server.writes)

    snapshot.run(config_of(instance), spark, config_maps)

    assert emulator.calls == calls
    assert len(config_map_server.writes) == writes


def test_the_list_is_frozen_before_anything_is_read(
    spark: Any, instance: Instance, config_maps: ConfigMaps, config_map_server: ConfigMapServer
) -> None:
    config_map_server.refuse_with = 403

    with pytest.raises(Exception, match="not now"):
        snapshot.run(config_of(instance), spark, config_maps)
    assert instance.rows("flights_copy") == []


def test_a_restarted_driver_copies_what_is_left(
    spark: Any,
    instance: Instance,
    config_maps: ConfigMaps,
    config_map_server: ConfigMapServer,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    config = config_of(instance)
    copy_round = snapshot.copy_round

    def fail_halfway(config: SnapshotConfig, spark: Any, record: Any, pending: Any) -> None:
        copy_round(config, spark, record, pending[::2])
        raise OwnershipLost("the driver failed")

    monkeypatch.setattr(snapshot, "copy_round", fail_halfway)
    with pytest.raises(OwnershipLost):
        snapshot.run(config, spark, config_maps)
    monkeypatch.undo()
    halfway = read_progress(config_map_server.maps[PATH])
    assert halfway.total is not None
    assert 0 < halfway.done < halfway.total
    left: list[int] = []

    def watch(config: SnapshotConfig, spark: Any, record: Any, pending: Any) -> None:
        left.extend(split.index for split in pending)
        copy_round(config, spark, record, pending)

    monkeypatch.setattr(snapshot, "copy_round", watch)
    snapshot.run(config, spark, config_maps)

    assert left == list(range(1, halfway.total, 2))
    assert instance.rows("flights_copy") == instance.rows("flights")


def test_another_label_starts_again(
    spark: Any, instance: Instance, config_maps: ConfigMaps, config_map_server: ConfigMapServer
) -> None:
    snapshot.run(config_of(instance), spark, config_maps)
    place = {"namespace": "shop", "configMap": "flights-snapshot", "label": "tunnel-2"}
    # the operator prepares the record for the next copy
    config_map_server.maps[PATH]["metadata"]["labels"][PROGRESS_LABEL] = "tunnel-2"

    snapshot.run(config_of(instance, progress=place), spark, config_maps)

    progress = read_progress(config_map_server.maps[PATH])
    assert (progress.label, progress.complete) == ("tunnel-2", True)


def test_a_missing_table_fails_once_with_one_line(
    spark: Any, instance: Instance, config_maps: ConfigMaps, config_map_server: ConfigMapServer
) -> None:
    document = config_of(instance, splits={}).model_dump(by_alias=True)
    document["sink"]["tablestore"]["table"] = "nowhere"

    with pytest.raises(SnapshotRefused, match=r"^split 0: OTSObjectNotExist: [^\n]*$"):
        snapshot.run(SnapshotConfig.model_validate(document), spark, config_maps)
    progress = read_progress(config_map_server.maps[PATH])
    assert (progress.done, progress.complete) == (0, False)
    assert progress.error.startswith("split 0: OTSObjectNotExist")


def test_a_refused_row_fails_once_and_names_its_key(
    spark: Any, instance: Instance, config_maps: ConfigMaps, config_map_server: ConfigMapServer, emulator: Any
) -> None:
    rule = FaultRule("BatchWriteRow", count=50, row_code="OTSParameterInvalid")
    emulator.faults.add(rule)

    with pytest.raises(SnapshotRefused, match=r"^split 0: the destination refuses .*c00.*: OTSParameterInvalid[^\n]*$"):
        snapshot.run(config_of(instance, splits={}), spark, config_maps)

    assert rule.count == 49, "the row was written more than once"
    assert "OTSParameterInvalid" in read_progress(config_map_server.maps[PATH]).error
    emulator.faults.clear()
    snapshot.run(config_of(instance), spark, config_maps)
    assert instance.rows("flights_copy") == instance.rows("flights")
    assert read_progress(config_map_server.maps[PATH]).error == ""


@pytest.mark.lasts(15)
def test_a_split_that_is_slower_than_the_deadline_of_its_task_is_finished(
    spark: Any, instance: Instance, config_maps: ConfigMaps, config_map_server: ConfigMapServer, emulator: Any
) -> None:
    # a call of 0.9 s has to end in time beside other tests, too
    limits = {"splits": {"deadlineSeconds": 10}, "writeDeadlineSeconds": 4}
    delivery = {"batchMaxRows": 100}
    emulator.faults.add(FaultRule("BatchWriteRow", latency=0.9))
    began = time.monotonic()

    snapshot.run(config_of(instance, delivery=delivery, **limits), spark, config_maps)

    assert read_progress(config_map_server.maps[PATH]).total == 1
    assert time.monotonic() - began > 10
    assert instance.rows("flights_copy") == instance.rows("flights")


@pytest.mark.lasts(30)
@pytest.mark.parametrize("seed", [1, pytest.param(2, marks=pytest.mark.long), pytest.param(3, marks=pytest.mark.long)])
def test_tasks_that_are_killed_at_random_points_leave_an_equal_table(
    spark: Any,
    instance: Instance,
    config_maps: ConfigMaps,
    config_map_server: ConfigMapServer,
    emulator: Any,
    seed: int,
) -> None:
    limits = {"splits": {"deadlineSeconds": 10}, "writeDeadlineSeconds": 5}
    config = config_of(instance, delivery={"batchMaxRows": 20}, **limits)
    emulator.faults.add(FaultRule("BatchWriteRow", latency=0.1))
    entropy, kills = random.Random(seed), 0
    for _ in range(20):
        driver = threading.Thread(target=partial(_run_and_tell, failed := [], config, spark, config_maps))
        driver.start()
        while driver.is_alive():
            driver.join(entropy.uniform(1, 4))
            if driver.is_alive() and kills < 6:
                kills += kill_tasks()
        if not failed:
            break

    assert kills
    assert instance.rows("flights_copy") == instance.rows("flights")
    assert read_progress(config_map_server.maps[PATH]).complete


def _run_and_tell(failed: list[Exception], config: SnapshotConfig, spark: Any, config_maps: ConfigMaps) -> None:
    """Run a driver as the Spark operator does: one that failed is started again."""
    try:
        snapshot.run(config, spark, config_maps)
    except SnapshotIncomplete as error:
        failed.append(error)


def kill_tasks() -> int:
    """Kill the Python processes of Spark's tasks, which descend from this process; return their number."""
    parents, daemons = {}, set()
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            stat = (folder / "stat").read_text()
            command = (folder / "cmdline").read_text()
        except OSError:
            continue  # it has ended meanwhile
        parents[int(folder.name)] = int(stat.rpartition(")")[2].split()[1])
        if "pyspark.daemon" in command:
            daemons.add(int(folder.name))
    workers = [pid for pid in daemons if parents[pid] in daemons and _descends(pid, parents)]
    for pid in workers:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    return len(workers)


def _descends(pid: int, parents: dict[int, int]) -> bool:
    while pid in parents and pid != os.getpid():
        pid = parents[pid]
    return pid == os.getpid()


def test_a_driver_that_is_cut_off_starts_no_more_tasks(
    spark: Any,
    instance: Instance,
    config_maps: ConfigMaps,
    config_map_server: ConfigMapServer,
    emulator: Any,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    freeze_splits = snapshot.freeze_splits

    def cut_off_afterwards(config: SnapshotConfig, record: Any) -> None:
        freeze_splits(config, record)
        config_map_server.refuse_with = 401

    monkeypatch.setattr(snapshot, "freeze_splits", cut_off_afterwards)
    monkeypatch.setattr(progress, "CUT_OFF_SECONDS", progress.CUT_OFF_MARGIN + 0.1)
    # two of four splits are copied at a time: the job is still running at the first look
    emulator.faults.add(FaultRule("BatchWriteRow", latency=3))

    with pytest.raises(OwnershipLost, match="has not confirmed the progress record"):
        snapshot.run(config_of(instance), spark, config_maps)

    assert instance.rows("flights_copy") != instance.rows("flights")
