"""A source without a tunnel, as the model reads it; the API server's rules are tested in tests/operator/definition."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest
from pydantic import ValidationError

from ots_tunnel.config import StreamDocument, WorkerConfig
from ots_tunnel_operator.api.identity import TunnelIdentity, identity_of
from ots_tunnel_operator.api.object import TablestoreTunnel
from ots_tunnel_operator.manifests.worker_document import config_hash, worker_document
from tests.support.operator.objects import tunnel_object
from tests.support.operator.stream_worlds import BY_LEASES, LEASES


def parsed(**changes: Any) -> TablestoreTunnel:
    document = tunnel_object(**changes)
    document["metadata"]["uid"] = "0123456789abcdef"
    return TablestoreTunnel.from_body(document)


@pytest.mark.parametrize(
    ("changes", "found"),
    [({"source__stream": {"leaseTable": LEASES}}, "both"), ({"source__tunnel": None}, "none of them")],
)
def test_a_source_has_a_tunnel_or_a_stream(changes: dict[str, Any], found: str) -> None:
    with pytest.raises(ValidationError, match=f"found {found}, allowed is exactly one of tunnel and stream"):
        parsed(**changes)


def test_a_stream_has_changes_alone() -> None:
    spec = parsed(**BY_LEASES, engine__baseData="Spark").spec

    assert (spec.wire_type, spec.uses_spark, spec.uses_workers) == ("Stream", False, True)


def test_messages_name_the_table_of_leases() -> None:
    source = parsed(**BY_LEASES).spec.source

    assert source.field == "spec.source.stream.leaseTable 'flights_leases'"
    assert source.words == "table of leases 'flights_leases'"
    assert source.gap_field == "spec.source.stream.onPossibleGap"
    with pytest.raises(LookupError, match="the object reads a stream"):
        _ = source.a_tunnel


def test_objects_with_one_table_of_leases_are_rivals_and_no_tunnel_is() -> None:
    body = tunnel_object(**BY_LEASES)

    ours = TunnelIdentity("ots-emulator:8080", "demo", "flights", "leases:flights_leases")
    assert identity_of(body["spec"]) == TablestoreTunnel.from_body(body).spec.identity == ours
    assert parsed(source__tunnel__name=LEASES).spec.identity != ours


@pytest.mark.parametrize(("policy", "goes_on"), [("Stop", False), ("Continue", True)])
def test_a_gap_is_accepted_where_the_stream_is(policy: str, goes_on: bool) -> None:
    stream = {"leaseTable": LEASES, "onPossibleGap": policy}

    assert parsed(**BY_LEASES | {"source__stream": stream}).spec.source.goes_on_behind_gaps is goes_on


def test_the_document_of_a_streams_worker_has_its_leases() -> None:
    workers = {"heartbeatIntervalSeconds": 6, "heartbeatTimeoutSeconds": 20, "lanesPerChannel": 2}
    stream = {"leaseTable": LEASES, "startFrom": "Timestamp", "startTime": "2026-01-01T00:00:00Z"}
    limit = {"rowsPerSecondPerWorker": 7}
    document = worker_document(
        parsed(source__tunnel=None, source__stream=stream, workers=workers, source__rateLimit=limit), "any"
    )

    assert isinstance(document, StreamDocument)
    source, client = document.source, document.client
    assert (source.lease_table, source.start_from, str(source.start_time)) == (
        LEASES,
        "Earliest",
        "2026-01-01 00:00:00+00:00",
    )
    assert (client.lease_duration_seconds, client.renew_interval_seconds, client.take_interval_seconds) == (20, 6, 6)
    assert (client.worker_id, client.worker_id_prefix) == ("", "01234567")
    assert (client.lanes_per_channel, client.rate_limit_rows_per_second, client.drain_seconds) == (2, 7, 45)


@pytest.mark.parametrize("start", ["Earliest", "Latest"])
def test_a_start_without_a_time_is_the_workers(start: str) -> None:
    stream = {"leaseTable": LEASES, "startFrom": start}
    document = worker_document(parsed(**BY_LEASES | {"source__stream": stream}), "any")

    assert isinstance(document, StreamDocument)
    assert document.source.start_from == start


def test_latest_is_the_creation_of_the_object_whenever_a_worker_finds_no_leases() -> None:
    of = parsed(**BY_LEASES | {"source__stream": {"leaseTable": LEASES, "startFrom": "Latest"}})
    metadata = of.metadata.model_copy(update={"creation_timestamp": datetime(2026, 11, 1, 8, 15, 30, tzinfo=UTC)})
    document = worker_document(of.model_copy(update={"metadata": metadata}), "any")

    assert isinstance(document, StreamDocument)
    assert (document.source.start_from, str(document.source.start_time)) == ("Earliest", "2026-11-01 08:15:30+00:00")


def test_an_object_that_ends_before_its_creation_has_a_start_before_its_end() -> None:
    """Applied again after its end time, it is completed, and not refused for a start behind the end."""
    stream = {"leaseTable": LEASES, "startFrom": "Latest", "endTime": "2026-11-01T08:15:00Z"}
    of = parsed(**BY_LEASES | {"source__stream": stream})
    metadata = of.metadata.model_copy(update={"creation_timestamp": datetime(2026, 11, 1, 8, 15, 30, tzinfo=UTC)})

    document = worker_document(of.model_copy(update={"metadata": metadata}), "any")

    assert isinstance(document, StreamDocument)
    assert (document.source.start_from, document.source.start_time) == ("Latest", None)


def test_workers_roll_when_the_document_of_a_stream_changes() -> None:
    before = worker_document(parsed(**BY_LEASES), "any")
    after = worker_document(
        parsed(**BY_LEASES | {"source__stream": {"leaseTable": LEASES, "startFrom": "Latest"}}), "any"
    )

    assert config_hash(before) == config_hash(worker_document(parsed(**BY_LEASES), "another"))
    assert config_hash(before) != config_hash(after)


def test_a_tunnel_keeps_its_document() -> None:
    assert isinstance(worker_document(parsed(), "t"), WorkerConfig)
