"""The progress record: resumed, guarded against a second driver, written at most once a second."""

from __future__ import annotations

import base64
import json
import random
import tracemalloc
from typing import Any

import pytest

from ots_tunnel.errors import CodecError, ConnectionLost, OwnershipLost, ServerUnavailable, ServiceError
from ots_tunnel.protocol.plainbuffer.codec import encode_primary_key
from ots_tunnel.snapshot.copied import Report
from ots_tunnel.snapshot.document import ProgressConfig
from ots_tunnel.snapshot.record import CUT_OFF_SECONDS, PROGRESS_LABEL, SnapshotProgress, read_progress
from ots_tunnel.snapshot.splits import Split, SplitList, serialise
from ots_tunnel.spark.cluster import ClusterAccess, ConfigMaps
from ots_tunnel.spark.snapshot.progress import CONFIRM_SECONDS, CUT_OFF_MARGIN, ProgressRecord
from tests.support.kube.config_maps import ConfigMapServer

SPLITS = SplitList(("k",), tuple(encode_primary_key((("k", i),)) for i in range(9)))
PATH = "/api/v1/namespaces/shop/configmaps/orders-snapshot"


def done(omitted: dict[int, int]) -> list[Report]:
    """Reports of finished splits, with the cells that they left out."""
    return [Report(split, SPLITS.split(split).start, None, 1, cells) for split, cells in omitted.items()]


@pytest.fixture
def pauses() -> list[float]:
    return []


class Clock:
    now = 1000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def new_record(
    cluster_access: ClusterAccess, config_map_server: ConfigMapServer, pauses: list[float], clock: Clock
) -> Any:
    config_map_server.make(PATH)

    def make(label: str = "tunnel-1", write_deadline: float = 16.7) -> ProgressRecord:
        config = ProgressConfig(namespace="shop", config_map="orders-snapshot", label=label)
        return ProgressRecord(
            ConfigMaps(cluster_access, "shop"),
            config,
            now=lambda: 1_700_000_000.5,
            sleep=pauses.append,
            clock=clock,
            write_deadline=write_deadline,
        )

    return make


def test_a_restarted_driver_resumes(new_record: Any, config_map_server: ConfigMapServer) -> None:
    first = new_record()
    first.load()
    assert first.splits is None
    first.freeze(SPLITS, serialise(SPLITS))
    first.mark(done({0: 0, 3: 0}))
    first.mark(done({9: 0}))

    second = new_record()
    second.load()

    assert second.splits == SPLITS
    assert second.copied.done == {0, 3, 9}
    assert read_progress(config_map_server.maps[PATH]) == SnapshotProgress("tunnel-1", 3, 10, 1_700_000_000.5, 0, 16.7)
    assert config_map_server.tokens == {"Bearer secret-token"}


def test_the_record_names_the_longest_write_deadline_of_its_drivers(
    new_record: Any, config_map_server: ConfigMapServer
) -> None:
    first = new_record(write_deadline=20)
    first.load()
    first.freeze(SPLITS, serialise(SPLITS))
    for split, (deadline, longest) in enumerate([(96.6667, 96.667), (5, 96.667)]):
        driver = new_record(write_deadline=deadline)
        driver.load()
        driver.mark(done({split: 0}))
        assert read_progress(config_map_server.maps[PATH]).write_deadline == longest


def test_cells_that_an_earlier_release_did_not_count_stay_unknown(
    new_record: Any, config_map_server: ConfigMapServer
) -> None:
    first = new_record()
    first.load()
    first.freeze(SPLITS, serialise(SPLITS))
    first.mark(done({0: 3}))
    assert read_progress(config_map_server.maps[PATH]).omitted == 3
    del config_map_server.maps[PATH]["data"]["omittedCells"]

    second = new_record()
    second.load()
    second.mark(done({1: 4}))

    assert second.copied.omitted is None
    assert read_progress(config_map_server.maps[PATH]).omitted is None


class RefusingApi:
    """Answers reads; refuses writes, as an API server whose store has no space left."""

    def __init__(self) -> None:
        self.is_full = False
        self._stored: dict[str, Any] = {"metadata": {"name": "x", "uid": "u", "labels": {PROGRESS_LABEL: "t"}}}
        self._list: dict[str, Any] = {}

    def get(self, name: str) -> dict[str, Any]:
        return dict(json.loads(json.dumps(self._stored if name == "x" else self._list)))

    def make(self, config_map: dict[str, Any]) -> None:
        self._list = config_map

    def replace(self, config_map: dict[str, Any]) -> dict[str, Any]:
        if self.is_full:
            raise ServerUnavailable("InternalError", "database space exceeded", http_status=500)
        self._stored = config_map
        return self.get("x")


def test_writes_that_are_refused_for_long_take_no_memory() -> None:
    api, config = RefusingApi(), ProgressConfig(namespace="shop", config_map="x", label="t")
    record = ProgressRecord(api, config, sleep=lambda seconds: None, write_deadline=16.7)
    record.load()
    bounds = sorted(random.Random(n).randbytes(60) for n in range(999))
    splits = SplitList(("k",), tuple(encode_primary_key((("k", bound),)) for bound in bounds))
    record.freeze(splits, serialise(splits))
    record.mark([Report(n, splits.split(n).start, (("k", bound[:-1]),), 1, 0) for n, bound in enumerate(bounds[1:], 1)])
    assert len(json.dumps(api.get("x"))) > 60_000
    api.is_full = True

    tracemalloc.start()
    try:
        for _ in range(40):
            with pytest.raises(ServerUnavailable):
                record.mark(done({0: 0}))
        kept, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()

    assert kept < 500_000


def test_the_record_keeps_foreign_labels_and_items(new_record: Any, config_map_server: ConfigMapServer) -> None:
    config_map_server.maps[PATH]["metadata"]["labels"]["team"] = "a"
    record = new_record()
    record.load()
    record.freeze(SPLITS, serialise(SPLITS))

    assert config_map_server.maps[PATH]["metadata"]["labels"] == {"team": "a", PROGRESS_LABEL: "tunnel-1"}


@pytest.mark.parametrize("labels", [None, {}, {PROGRESS_LABEL: "tunnel-2"}], ids=["none", "others", "another copy"])
def test_a_config_map_that_is_not_this_copy_s_is_never_written(
    new_record: Any, config_map_server: ConfigMapServer, labels: dict[str, str] | None
) -> None:
    theirs = {"metadata": {"name": "orders-snapshot", "labels": labels}, "data": {"precious": "1"}}
    config_map_server.handle("PUT", PATH, theirs)
    record = new_record()

    with pytest.raises(OwnershipLost, match=r"label ots-tunnel\.dev/tunnel-id: found .*, allowed is 'tunnel-1'"):
        record.load()

    assert config_map_server.maps[PATH]["data"] == {"precious": "1"}


def test_items_of_an_older_copy_are_ignored(new_record: Any, config_map_server: ConfigMapServer) -> None:
    config_map_server.maps[PATH]["metadata"]["labels"][PROGRESS_LABEL] = "tunnel-0"
    old = new_record("tunnel-0")
    old.load()
    old.freeze(SPLITS, serialise(SPLITS))
    old.mark(done(dict.fromkeys(range(10), 0)))

    # the operator prepares the record for the next copy
    config_map_server.maps[PATH]["metadata"]["labels"][PROGRESS_LABEL] = "tunnel-1"
    record = new_record("tunnel-1")
    record.load()
    assert record.splits is None

    shorter = SplitList(("k",), ())
    record.freeze(shorter, serialise(shorter))
    assert read_progress(config_map_server.maps[PATH]) == SnapshotProgress("tunnel-1", 0, 1, 1_700_000_000.5, 0, 16.7)


def test_a_relabelled_record_is_not_complete() -> None:
    stored = {
        "metadata": {"labels": {PROGRESS_LABEL: "new"}},
        "data": {"label": "old", "total": "1", "done": "1"},
        "binaryData": {"splits.json.gz": "eA==", "done.bitmap": "AQ=="},
    }

    assert read_progress(stored) == SnapshotProgress("new", 0, None)
    assert not read_progress(stored).complete


def test_two_drivers_do_not_share_a_record(new_record: Any) -> None:
    first = new_record()
    first.load()
    first.freeze(SPLITS, serialise(SPLITS))
    second = new_record()
    second.load()
    second.mark(done({1: 0}))

    with pytest.raises(OwnershipLost, match="another driver"):
        first.mark(done({2: 0}))


def test_two_drivers_do_not_freeze_together(new_record: Any) -> None:
    first, second = new_record(), new_record()
    first.load()
    second.load()
    first.freeze(SPLITS, serialise(SPLITS))

    with pytest.raises(OwnershipLost, match="another driver"):
        second.freeze(SPLITS, serialise(SPLITS))


def test_after_a_lost_answer_the_record_is_read(new_record: Any, config_map_server: ConfigMapServer) -> None:
    record = new_record()
    record.load()
    record.freeze(SPLITS, serialise(SPLITS))
    config_map_server.lose_answers = 1
    with pytest.raises(ConnectionLost):
        record.mark(done({4: 0}))

    record.mark(done({4: 0, 5: 0}))

    assert read_progress(config_map_server.maps[PATH]).done == 2


def test_a_lost_answer_and_another_driver_end_this_one(new_record: Any, config_map_server: ConfigMapServer) -> None:
    record, other = new_record(), new_record()
    record.load()
    record.freeze(SPLITS, serialise(SPLITS))
    config_map_server.lose_answers = 1
    with pytest.raises(ConnectionLost):
        record.mark(done({4: 0}))
    other.load()
    other.mark(done({7: 0}))

    with pytest.raises(OwnershipLost, match="another driver"):
        record.mark(done({4: 0, 5: 0}))


def test_a_record_that_is_missing_is_never_made(new_record: Any, config_map_server: ConfigMapServer) -> None:
    del config_map_server.maps[PATH]

    with pytest.raises(OwnershipLost, match="does not exist: the operator makes it"):
        new_record().load()


def test_a_record_that_was_deleted_ends_the_driver(new_record: Any, config_map_server: ConfigMapServer) -> None:
    record = new_record()
    record.load()
    record.freeze(SPLITS, serialise(SPLITS))
    del config_map_server.maps[PATH]

    with pytest.raises(OwnershipLost, match="does not exist"):
        record.mark(done({1: 0}))
    assert PATH not in config_map_server.maps


def test_a_change_of_metadata_does_not_end_the_driver(new_record: Any, config_map_server: ConfigMapServer) -> None:
    record = new_record()
    record.load()
    for owners, mark in (([], record.freeze), ([{"uid": "u1"}], lambda *_: record.mark(done({0: 0})))):
        stored = config_map_server.maps[PATH]
        changed = {**stored, "metadata": {**stored["metadata"], "ownerReferences": owners}}
        assert config_map_server.handle("PUT", PATH, changed)[0] == 200
        mark(SPLITS, serialise(SPLITS))

        assert config_map_server.maps[PATH]["metadata"]["ownerReferences"] == owners
    assert read_progress(config_map_server.maps[PATH]).done == 1


def test_changes_of_metadata_without_end_are_an_error(new_record: Any, config_map_server: ConfigMapServer) -> None:
    record = new_record()
    record.load()
    config_map_server.changes_of_metadata = 99

    with pytest.raises(OwnershipLost, match="modified"):
        record.freeze(SPLITS, serialise(SPLITS))


def test_a_write_whose_answer_was_lost_may_be_carried_out_later(
    new_record: Any, config_map_server: ConfigMapServer
) -> None:
    record = new_record()
    record.load()
    record.freeze(SPLITS, serialise(SPLITS))
    config_map_server.hold_writes = 1
    with pytest.raises(ConnectionLost):
        record.mark(done({4: 0}))
    config_map_server.carry_out_at_next_write = True

    record.mark(done({5: 0}))

    assert read_progress(config_map_server.maps[PATH]).done == 2
    assert record.copied.done == {4, 5}


def test_a_record_that_was_not_confirmed_for_long_lets_no_task_start(
    new_record: Any, config_map_server: ConfigMapServer, clock: Clock
) -> None:
    record = new_record()
    record.load()
    record.freeze(SPLITS, serialise(SPLITS))
    clock.now += CUT_OFF_SECONDS - CUT_OFF_MARGIN - 0.1
    record.check()
    config_map_server.refuse_with = 401
    with pytest.raises(ServiceError):
        record.mark(done({}))
    clock.now += 0.1

    with pytest.raises(OwnershipLost, match="not confirmed the progress record for 90 s"):
        record.check()


def test_a_record_is_confirmed_from_time_to_time(
    new_record: Any, config_map_server: ConfigMapServer, clock: Clock
) -> None:
    record = new_record()
    record.load()
    record.freeze(SPLITS, serialise(SPLITS))
    clock.now += CONFIRM_SECONDS
    record.mark(done({}))
    clock.now += CUT_OFF_SECONDS - CUT_OFF_MARGIN - 0.1

    record.check()


def test_another_driver_is_noticed_without_a_new_split(new_record: Any, clock: Clock) -> None:
    first, second = new_record(), new_record()
    first.load()
    first.freeze(SPLITS, serialise(SPLITS))
    second.load()
    second.mark(done({1: 0}))
    first.mark(done({}))  # confirmed a moment ago
    clock.now += CONFIRM_SECONDS

    with pytest.raises(OwnershipLost, match="another driver"):
        first.mark(done({}))


def test_without_a_new_split_nothing_is_written(new_record: Any, config_map_server: ConfigMapServer) -> None:
    record = new_record()
    record.load()
    record.freeze(SPLITS, serialise(SPLITS))
    record.mark(done({1: 0}))
    writes = len(config_map_server.writes)

    record.mark(done({1: 0}))
    record.mark(done({}))

    assert len(config_map_server.writes) == writes


def test_writes_are_a_second_apart(new_record: Any, pauses: list[float]) -> None:
    record = new_record()
    record.load()
    record.freeze(SPLITS, serialise(SPLITS))
    record.mark(done({1: 0}))

    assert pauses[0] == 0
    assert 0.5 < pauses[1] <= 1


@pytest.mark.parametrize(("status", "error"), [(503, ServerUnavailable), (429, ServerUnavailable), (403, ServiceError)])
def test_refusals_of_the_api_server_have_their_own_errors(
    new_record: Any, config_map_server: ConfigMapServer, status: int, error: type[ServiceError]
) -> None:
    config_map_server.refuse_with = status

    with pytest.raises(error, match="not now") as caught:
        new_record().load()
    assert type(caught.value) is error


def list_path(config_map_server: ConfigMapServer) -> str:
    return PATH.replace("orders-snapshot", config_map_server.maps[PATH]["data"]["splits"])


def test_the_list_is_written_once_into_a_config_map_that_nobody_can_change(
    new_record: Any, config_map_server: ConfigMapServer
) -> None:
    record = new_record()
    record.load()
    record.freeze(SPLITS, serialise(SPLITS))
    for split in range(5):
        record.mark(done({split: 0}))

    path = list_path(config_map_server)
    stored = config_map_server.maps[path]
    assert config_map_server.writes.count(path) == 1
    assert stored["immutable"] is True
    owner = {"apiVersion": "v1", "kind": "ConfigMap", "name": "orders-snapshot", "uid": "u-1"}
    assert stored["metadata"]["ownerReferences"] == [owner]
    assert list(config_map_server.maps[PATH]["binaryData"]) == ["done.bitmap"]


def test_the_list_is_read_once(new_record: Any, config_map_server: ConfigMapServer, clock: Clock) -> None:
    first = new_record()
    first.load()
    first.freeze(SPLITS, serialise(SPLITS))
    record = new_record()
    record.load()
    del config_map_server.maps[list_path(config_map_server)]

    for split in range(3):
        clock.now += CONFIRM_SECONDS
        record.mark(done({split: 0}))
    assert record.copied.done == {0, 1, 2}
    with pytest.raises(CodecError, match=r"'orders-snapshot-splits-.*' is gone|list of splits: it is gone"):
        new_record().load()


def test_a_driver_that_was_killed_before_it_named_its_list_leaves_it_to_the_next_one(
    new_record: Any, config_map_server: ConfigMapServer
) -> None:
    first, second = new_record(), new_record()
    first.load()
    second.load()
    config_map_server.hold_writes = 1
    with pytest.raises(ConnectionLost):
        first.freeze(SPLITS, serialise(SPLITS))

    second.freeze(SPLITS, serialise(SPLITS))

    assert second.splits == SPLITS
    assert config_map_server.writes.count(list_path(config_map_server)) == 1


def test_a_config_map_in_the_place_of_the_list_is_not_taken_for_it(
    new_record: Any, config_map_server: ConfigMapServer
) -> None:
    record = new_record()
    record.load()
    record.freeze(SPLITS, serialise(SPLITS))
    config_map_server.maps[list_path(config_map_server)]["binaryData"] = {}
    again = new_record()
    del config_map_server.maps[PATH]
    config_map_server.make(PATH)
    again.load()

    with pytest.raises(OwnershipLost, match="is not the list of splits"):
        again.freeze(SPLITS, serialise(SPLITS))


def test_a_list_inside_the_record_is_that_of_an_earlier_release(
    new_record: Any, config_map_server: ConfigMapServer
) -> None:
    stored = config_map_server.maps[PATH]
    stored["data"] = {"label": "tunnel-1", "total": "10", "done": "1", "omittedCells": "0"}
    payload = base64.b64encode(serialise(SPLITS)).decode()
    stored["binaryData"] = {"splits.json.gz": payload, "done.bitmap": "AQA="}
    record = new_record()
    record.load()

    record.mark(done({1: 0}))

    assert record.copied.done == {0, 1}
    other = new_record()
    other.load()
    assert (other.splits, other.copied.done) == (SPLITS, {0, 1})


def test_a_restarted_driver_resumes_inside_a_split(new_record: Any) -> None:
    whole = SplitList(("k",), ())
    first = new_record()
    first.load()
    first.freeze(whole, serialise(whole))
    first.mark([Report(0, whole.split(0).start, (("k", 500),), 500, 7)])

    second = new_record()
    second.load()

    assert second.pending() == [Split(0, (("k", 500),), whole.split(0).end)]
    assert second.copied.omitted == 7
    # an attempt of the first driver, late
    second.mark([Report(0, whole.split(0).start, (("k", 400),), 400, 5)])
    assert second.copied.cursors == {0: (("k", 500),)}
    second.mark([Report(0, (("k", 500),), None, 1, 0)])
    assert second.is_complete
    assert second.copied.omitted == 7


def test_a_reason_to_give_up_stays_until_another_driver_records_progress(
    new_record: Any, config_map_server: ConfigMapServer
) -> None:
    first = new_record()
    first.load()
    first.freeze(SPLITS, serialise(SPLITS))
    first.give_up("split 3: no")
    assert read_progress(config_map_server.maps[PATH]).error == "split 3: no"

    second = new_record()
    second.load()
    second.mark(done({3: 0}))

    assert read_progress(config_map_server.maps[PATH]).error == ""


def test_large_records_are_written_less_often(
    new_record: Any, config_map_server: ConfigMapServer, pauses: list[float]
) -> None:
    bounds = [b"%03d" % number + random.Random(number).randbytes(900) for number in range(120)]
    splits = SplitList(("k",), tuple(encode_primary_key((("k", bound),)) for bound in bounds))
    record = new_record()
    record.load()
    record.freeze(splits, serialise(splits))
    record.mark(
        [
            Report(number, splits.split(number).start, (("k", bound + b"x"),), 1, 0)
            for number, bound in enumerate(bounds, 1)
        ]
    )
    size = sum(map(len, config_map_server.maps[PATH]["binaryData"].values()))

    record.mark([Report(0, splits.split(0).start, None, 1, 0)])

    assert pauses[-1] > 1
    assert pauses[-1] == pytest.approx(size / 65_536, abs=0.5)
