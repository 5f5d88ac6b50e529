"""Spec and status as the operator reads and writes them."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest
from pydantic import ValidationError

from ots_tunnel.config import HttpSinkConfig, dump_config
from ots_tunnel_operator.api.object import TablestoreTunnel
from ots_tunnel_operator.api.status import Condition, LagStatus, TunnelObjectStatus
from ots_tunnel_operator.assess.adoption import wanted_stream
from ots_tunnel_operator.manifests.worker_document import worker_config
from tests.support.operator.objects import tunnel_object
from tests.support.operator.query_worlds import ALL_BY_QUERY, BY_QUERY
from tests.support.operator.spec_values import (
    ENDS,
    IMAGES,
    MOMENTS,
    NO_IMAGES,
    NO_MOMENTS,
    NO_WEB_URLS,
    OLD_ENDS,
    WEB_URLS,
)
from tests.support.operator.statuses import complete_status

SPARK = {"engine__baseData": "Spark"}
MIRROR = {"sink": {"files": {"url": "file:///lake/flights", "format": "Delta", "mode": "Mirror"}}}


def parsed(**changes: Any) -> TablestoreTunnel:
    return TablestoreTunnel.from_body(tunnel_object(**changes))


@pytest.mark.parametrize(
    ("changes", "wire_type", "workers", "spark"),
    [
        ({}, "BaseAndStream", True, False),
        (SPARK, "Stream", True, True),
        ({"source__tunnel__type": "Stream"}, "Stream", True, False),
        (SPARK | {"source__tunnel__type": "Stream"}, "Stream", True, False),
        ({"source__tunnel__type": "BaseData"}, "BaseData", True, False),
        (SPARK | {"source__tunnel__type": "BaseData"}, None, False, True),
        (BY_QUERY, "Stream", False, False),
        (BY_QUERY | ALL_BY_QUERY, "BaseAndStream", False, False),
        # a mirror begins with rows that its driver reads from the table
        (BY_QUERY | ALL_BY_QUERY | MIRROR, "Stream", False, False),
    ],
)
def test_type_and_engine_decide_which_workloads_run(
    changes: dict[str, Any], wire_type: str | None, workers: bool, spark: bool
) -> None:
    spec = parsed(**changes).spec

    assert (spec.wire_type, spec.uses_workers, spec.uses_spark) == (wire_type, workers, spark)


def test_absent_blocks_have_their_defaults() -> None:
    spec = parsed().spec

    assert spec.workers is None
    assert spec.worker_settings.heartbeat_timeout_seconds == 60
    assert spec.spark_settings.executor.instances == 2


def test_a_field_of_a_newer_crd_is_no_error() -> None:
    assert parsed(scaleToSeventeen={"mode": "Auto"}).spec == parsed().spec


def test_objects_are_frozen() -> None:
    with pytest.raises(ValidationError, match="frozen"):
        parsed().spec.replicas = 3


def test_status_is_read_back_as_written() -> None:
    status = complete_status()

    assert TunnelObjectStatus.model_validate(status.dump()) == status


def test_unknown_is_left_out() -> None:
    assert TunnelObjectStatus(lag=LagStatus(caught_up=False)).dump() == {"lag": {"caughtUp": False}, "conditions": []}


def test_times_are_written_in_utc_with_whole_seconds() -> None:
    moment = datetime(2026, 1, 1, 8, 0, 0, 999_999, tzinfo=timezone(timedelta(hours=8)))
    condition = Condition(type="Ready", status="True", reason="Consuming", last_transition_time=moment)

    assert condition.model_dump(mode="json", by_alias=True)["lastTransitionTime"] == "2026-01-01T00:00:00Z"


def test_the_object_stays_small() -> None:
    assert len(json.dumps(complete_status().dump())) < 30_000


@pytest.mark.parametrize("moment", MOMENTS)
def test_a_time_of_a_stream_is_read_and_written(moment: str) -> None:
    window = {"startFrom": "Timestamp", "startTime": moment, "endTime": moment}
    stream = parsed(source__tunnel__type="Stream", source__tunnel__stream=window).spec.source.tunnel.stream

    assert stream is not None
    config = wanted_stream(stream)
    assert 0 < config.start_offset_ns <= config.end_offset_ns <= config.start_offset_ns + 1000 < 2**63
    assert stream.model_dump_json()


@pytest.mark.parametrize("moment", ENDS)
def test_an_end_later_than_the_service_can_count_is_no_overflow(moment: str) -> None:
    of = parsed(source__tunnel__type="Stream", source__tunnel__stream={"startFrom": "Latest", "endTime": moment})
    stream = of.spec.source.tunnel.stream

    assert stream is not None
    assert datetime(2262, 4, 11, tzinfo=UTC).timestamp() * 1e9 < wanted_stream(stream).end_offset_ns < 2**63
    assert stream.model_dump_json()
    assert dump_config(worker_config(of, "t"))


@pytest.mark.parametrize("moment", OLD_ENDS)
def test_an_end_that_was_taken_once_is_read(moment: str) -> None:
    of = parsed(source__tunnel__type="Stream", source__tunnel__stream={"startFrom": "Latest", "endTime": moment})
    stream = of.spec.source.tunnel.stream

    assert stream is not None
    # never 0, which would be no end
    assert 0 < wanted_stream(stream).end_offset_ns < 2**62
    assert stream.model_dump_json()
    assert dump_config(worker_config(of, "t"))


def test_a_start_of_lower_case_is_read_and_one_before_1971_is_not() -> None:
    window = {"startFrom": "Timestamp", "startTime": "2026-01-31t12:00:00z"}
    stream = parsed(source__tunnel__stream=window).spec.source.tunnel.stream

    assert stream is not None
    assert stream.start_time == datetime(2026, 1, 31, 12, tzinfo=UTC)
    with pytest.raises(ValidationError, match="startTime"):
        # on the wire it would be the latest position
        parsed(source__tunnel__stream=window | {"startTime": "1970-01-01T00:00:00Z"})


@pytest.mark.parametrize("moment", ENDS)
def test_a_start_later_than_every_change_is_refused(moment: str) -> None:
    with pytest.raises(ValidationError, match="startTime"):
        parsed(source__tunnel__stream={"startFrom": "Timestamp", "startTime": moment})


@pytest.mark.parametrize(
    ("decimals", "start", "end"),
    [
        ("123456", 123_456, 123_456),
        ("123456000", 123_456, 123_456),
        ("123456001", 123_456, 123_457),
        ("9999999", 999_999, 1_000_000),
    ],
)
def test_no_change_is_left_out_by_decimals_that_nobody_counts(decimals: str, start: int, end: int) -> None:
    moment = f"2026-01-31T12:00:00.{decimals}Z"
    window = {"startFrom": "Timestamp", "startTime": moment, "endTime": moment}
    stream = parsed(source__tunnel__type="Stream", source__tunnel__stream=window).spec.source.tunnel.stream

    assert stream is not None
    noon = int(datetime(2026, 1, 31, 12, tzinfo=UTC).timestamp()) * 10**9
    assert wanted_stream(stream).start_offset_ns == noon + start * 1000
    assert wanted_stream(stream).end_offset_ns == noon + end * 1000


@pytest.mark.parametrize("moment", NO_MOMENTS)
def test_other_times_of_a_stream_are_refused(moment: str) -> None:
    with pytest.raises(ValidationError, match="endTime"):
        parsed(source__tunnel__stream={"startFrom": "Latest", "endTime": moment})
    with pytest.raises(ValidationError, match="startTime"):
        parsed(source__tunnel__stream={"startFrom": "Timestamp", "startTime": moment})


@pytest.mark.parametrize("image", IMAGES)
def test_an_image_is_read(image: str) -> None:
    assert parsed(workers={"image": image}).spec.worker_settings.image == image


@pytest.mark.parametrize("image", NO_IMAGES)
def test_an_image_with_a_space_is_refused(image: str) -> None:
    with pytest.raises(ValidationError, match="image"):
        parsed(workers={"image": image})


@pytest.mark.parametrize("url", WEB_URLS)
def test_an_address_of_a_web_service_is_read(url: str) -> None:
    sink = TablestoreTunnel.from_body(tunnel_object(sink={"http": {"url": url}})).spec.sink.http

    assert sink is not None
    assert sink.url == url
    # the worker takes it, too
    assert HttpSinkConfig(url=url).url == url


@pytest.mark.parametrize("url", NO_WEB_URLS)
def test_another_address_of_a_web_service_is_refused(url: str) -> None:
    with pytest.raises(ValidationError, match="allowed is http"):
        TablestoreTunnel.from_body(tunnel_object(sink={"http": {"url": url}}))
