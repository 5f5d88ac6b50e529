"""The record of a query in its ConfigMap."""

from __future__ import annotations

import pytest

from ots_tunnel.errors import OwnershipLost, ServiceError
from ots_tunnel.query.document import QueryRecordConfig
from ots_tunnel.query.record import (
    ALIVE_SECONDS,
    MAX_PASSED_GAPS,
    PassedGap,
    QueryProgress,
    query_items,
    read_query_record,
)
from ots_tunnel.spark.cluster import ClusterAccess, ConfigMaps
from ots_tunnel.spark.query.recorder import READ_PAUSE, WRITE_PAUSE, Recorder
from tests.support.kube.config_maps import ConfigMapServer

PATH = "/api/v1/namespaces/shop/configmaps/orders-stream"
CONFIG = QueryRecordConfig(namespace="shop", config_map="orders-stream", label="tunnel-1")


class Clock:
    seconds = 0.0

    def __call__(self) -> float:
        return self.seconds


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def recorder(cluster_access: ClusterAccess, clock: Clock) -> Recorder:
    return Recorder(ConfigMaps(cluster_access, "shop"), CONFIG, now=lambda: 1_800_000_000.0, clock=clock)


def recorded(server: ConfigMapServer) -> QueryProgress:
    return read_query_record(server.maps[PATH]).progress


def test_figures_are_written_once_and_not_too_often(
    config_map_server: ConfigMapServer, recorder: Recorder, clock: Clock
) -> None:
    config_map_server.make(PATH)
    recorder.follow(QueryProgress(1, 5, 0, 2))
    recorder.follow(QueryProgress(2, 5, 0, 2))
    assert recorded(config_map_server) == QueryProgress(1, 5, 0, 2)

    clock.seconds = WRITE_PAUSE
    recorder.follow(QueryProgress(3, 5, 0, 2))
    clock.seconds = 2 * WRITE_PAUSE
    recorder.follow(QueryProgress(3, 5, 0, 2))

    assert recorded(config_map_server) == QueryProgress(3, 5, 0, 2)
    assert len(config_map_server.writes) == 3  # one of them made the map


def test_until_when_an_idle_table_was_read_is_written_seldom(
    config_map_server: ConfigMapServer, recorder: Recorder, clock: Clock
) -> None:
    config_map_server.make(PATH)
    begin = 1_700_000_000
    for after in range(0, 2 * READ_PAUSE + 1, 15):
        clock.seconds = after
        recorder.follow(QueryProgress(1, 0, 0, 2, read_until=begin + after))
    recorder.follow(QueryProgress(1, 0, 0, 2))

    assert recorded(config_map_server).read_until == begin + 2 * READ_PAUSE
    assert len(config_map_server.writes) == 4  # one of them made the map


def test_a_driver_shows_that_it_lives_where_nothing_changes(
    config_map_server: ConfigMapServer, recorder: Recorder, clock: Clock
) -> None:
    """The driver looks once a second, also between two triggers that are an hour apart."""
    config_map_server.make(PATH)
    for after in range(3601):
        clock.seconds = after
        recorder.follow(QueryProgress(1, 0, 0, 2))

    assert len(config_map_server.writes) == 2 + 3600 // ALIVE_SECONDS  # one of them made the map


def test_until_when_everything_was_read_outlives_the_driver(
    config_map_server: ConfigMapServer, cluster_access: ClusterAccess, recorder: Recorder
) -> None:
    """What was read stays read; the next driver does not know until when before it has read itself."""
    config_map_server.make(PATH)
    recorder.follow(QueryProgress(1, 0, 0, 2, read_until=1_700_000_000))
    Recorder(ConfigMaps(cluster_access, "shop"), CONFIG).end("no endpoint", is_final=False)
    assert recorded(config_map_server).read_until == 1_700_000_000

    following = Recorder(ConfigMaps(cluster_access, "shop"), CONFIG, clock=Clock())
    following.follow(QueryProgress(1, 0, None, 0))

    assert recorded(config_map_server) == QueryProgress(1, 0, None, 0, read_until=1_700_000_000)


def test_a_damaged_record_is_written_again(config_map_server: ConfigMapServer, recorder: Recorder) -> None:
    config_map_server.make(PATH)
    config_map_server.maps[PATH]["data"] = query_items(QueryProgress(1), CONFIG.label, 0.0) | {"readUntil": "noon"}

    recorder.follow(QueryProgress(2, 5, 0, 2))

    assert recorded(config_map_server) == QueryProgress(2, 5, 0, 2)


def test_a_gap_that_was_passed_is_written_at_once_and_stays(
    config_map_server: ConfigMapServer, recorder: Recorder, clock: Clock, cluster_access: ClusterAccess
) -> None:
    config_map_server.make(PATH)
    first, second = PassedGap("c1", 1_700_000_000, 1_700_003_600), PassedGap("c2", 1_700_000_000, 1_700_003_600)
    recorder.follow(QueryProgress(1))
    recorder.follow(QueryProgress(1, passed_gaps=(first,)))
    assert recorded(config_map_server).passed_gaps == (first,)
    recorder.follow(QueryProgress(1, passed_gaps=(first,)))
    assert len(config_map_server.writes) == 3  # one of them made the map

    later = Recorder(ConfigMaps(cluster_access, "shop"), CONFIG, clock=clock)
    later.follow(QueryProgress(2))
    assert recorded(config_map_server).passed_gaps == (first,)
    later.follow(QueryProgress(2, passed_gaps=(second,)))
    later.end("changes are missing", is_final=True)
    assert recorded(config_map_server) == QueryProgress(
        2, passed_gaps=(first, second), error="changes are missing", is_final=True
    )


def test_the_record_of_an_end_has_a_gap_whose_own_write_has_failed(
    config_map_server: ConfigMapServer, recorder: Recorder
) -> None:
    config_map_server.make(PATH)
    recorder.follow(QueryProgress(1))
    gap = PassedGap("c1", 1_700_000_000, 1_700_003_600)
    config_map_server.refuse_with = 503
    recorder.follow(QueryProgress(2, passed_gaps=(gap,)))
    config_map_server.refuse_with = None
    recorder.end("no space left", is_final=False)

    assert recorded(config_map_server).passed_gaps == (gap,)


def test_a_gap_for_which_the_record_has_no_room_is_no_news_for_ever(
    config_map_server: ConfigMapServer, recorder: Recorder, clock: Clock, cluster_access: ClusterAccess
) -> None:
    config_map_server.make(PATH)
    many = tuple(PassedGap(f"c{number}", 1_700_000_000, 1_700_003_600) for number in range(MAX_PASSED_GAPS))
    recorder.follow(QueryProgress(1, passed_gaps=many))
    later = Recorder(ConfigMaps(cluster_access, "shop"), CONFIG, clock=clock)
    for after in range(0, 600, 15):
        clock.seconds = after
        later.follow(QueryProgress(2, passed_gaps=(PassedGap("old", 1, 2),)))

    assert len(config_map_server.writes) <= 4  # one of them made the map
    assert set(recorded(config_map_server).passed_gaps) == set(many)


def test_a_change_of_the_metadata_is_no_conflict(config_map_server: ConfigMapServer, recorder: Recorder) -> None:
    config_map_server.make(PATH)
    config_map_server.changes_of_metadata = 2

    recorder.follow(QueryProgress(1, 5, 0, 2))

    assert recorded(config_map_server) == QueryProgress(1, 5, 0, 2)


def test_an_error_stands_beside_the_last_figures(config_map_server: ConfigMapServer, recorder: Recorder) -> None:
    config_map_server.make(PATH)
    recorder.follow(QueryProgress(1, 5, 0, 2))

    recorder.end("the log is gone", is_final=True)

    assert recorded(config_map_server) == QueryProgress(1, 5, 0, 2, "the log is gone", is_final=True)


@pytest.mark.parametrize("label", [None, "tunnel-0"])
def test_the_record_of_another_tunnel_stays(
    config_map_server: ConfigMapServer, recorder: Recorder, label: str | None
) -> None:
    if label is not None:
        config_map_server.make(PATH, label)

    with pytest.raises(OwnershipLost, match="ConfigMap 'orders-stream' in namespace 'shop'"):
        recorder.follow(QueryProgress(1, 5, 0, 2))

    assert "data" not in config_map_server.maps.get(PATH, {})


def test_an_api_server_that_does_not_answer_is_tried_again(
    config_map_server: ConfigMapServer, recorder: Recorder, clock: Clock
) -> None:
    config_map_server.make(PATH)
    config_map_server.refuse_with = 503
    recorder.follow(QueryProgress(1, 5, 0, 2))

    config_map_server.refuse_with = None
    clock.seconds = WRITE_PAUSE
    recorder.follow(QueryProgress(1, 5, 0, 2))

    assert recorded(config_map_server) == QueryProgress(1, 5, 0, 2)


def test_a_missing_right_is_an_error(config_map_server: ConfigMapServer, recorder: Recorder) -> None:
    config_map_server.make(PATH)
    config_map_server.refuse_with = 403

    with pytest.raises(ServiceError):
        recorder.follow(QueryProgress(1, 5, 0, 2))
