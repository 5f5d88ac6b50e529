"""The document of `ots-tunnel stream run`: its defaults, and the messages about mistakes."""

from __future__ import annotations

import copy
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
import yaml

from ots_tunnel.config import StreamDocument, load_stream_document
from ots_tunnel.errors import ConfigError
from ots_tunnel.sinks.choice import open_sink
from ots_tunnel.sinks.count import CountSink
from ots_tunnel.stream.sinking.settings import new_worker_id, start_of

DOCUMENT: dict[str, Any] = {
    "source": {
        "endpoint": "http://127.0.0.1:1",
        "instance": "demo",
        "table": "orders",
        "leaseTable": "orders_leases",
        "credentials": {"directory": "/keys"},
    },
    "sink": {"count": {}},
}


def loaded(folder: Path, **changes: Any) -> StreamDocument:
    """The document with values at paths, with `__` for dots."""
    document = copy.deepcopy(DOCUMENT)
    for path, value in changes.items():
        place = document
        *above, last = path.split("__")
        for name in above:
            place = place.setdefault(name, {})
        place[last] = value
    file = folder / "stream.yaml"
    file.write_text(yaml.safe_dump(document))
    return load_stream_document(file)


def test_the_defaults_are_those_of_the_java_library(tmp_path: Path) -> None:
    client = loaded(tmp_path).client

    assert (client.lease_duration_seconds, client.renew_interval_seconds, client.take_interval_seconds) == (20, 6, 6)
    assert (client.parent_poll_interval_seconds, client.sync_interval_seconds) == (5, 10)
    assert client.write_deadline == pytest.approx(14 / 3)


def test_sinks_are_those_of_the_other_document(tmp_path: Path) -> None:
    assert isinstance(open_sink(loaded(tmp_path)), CountSink)


@pytest.mark.parametrize(
    ("path", "value", "said"),
    [
        ("source__leaseTable", "orders", "source.leaseTable: found 'orders', the source itself"),
        ("source__tunnelId", "x", "source.tunnelId: "),
        ("source", {"tunnelId": "x"}, "so it is the document of `ots-tunnel run`"),
        ("source__startTime", 5, "source.startTime: found 5, allowed is a time with a time zone"),
        ("source__startTime", "2026-01-01T00:00:00", "allowed is a time with a time zone"),
        ("source__startFrom", "Middle", "source.startFrom: found 'Middle', allowed is one of Earliest, Latest"),
        ("client__renewIntervalSeconds", 7, "client.renewIntervalSeconds: found 7, allowed is at most a third"),
        ("client__leaseDurationSeconds", 0, "client.leaseDurationSeconds: found 0"),
        ("client__workerId", "a b", "client.workerId: found 'a b', allowed is a name without spaces"),
        ("delivery__onPermanentError", "Skip", "delivery.onPermanentError: found Skip with sink.count"),
    ],
)
def test_a_mistake_is_named(tmp_path: Path, path: str, value: object, said: str) -> None:
    with pytest.raises(ConfigError) as caught:
        loaded(tmp_path, **{path: value})

    assert said in str(caught.value)


def test_a_table_is_not_copied_into_itself(tmp_path: Path) -> None:
    sink = {"tablestore": {**DOCUMENT["source"], "table": "orders"}}
    del sink["tablestore"]["leaseTable"]

    with pytest.raises(ConfigError, match=r"sink\.tablestore\.table: found 'orders', the source itself"):
        loaded(tmp_path, sink=sink)


def test_where_reading_begins(tmp_path: Path) -> None:
    assert start_of(loaded(tmp_path).source) is None
    time = datetime(2026, 1, 1, tzinfo=UTC)
    assert start_of(loaded(tmp_path, source__startTime=time.isoformat()).source) == int(time.timestamp()) * 1_000_000
    latest = start_of(loaded(tmp_path, source__startFrom="Latest").source)
    assert latest is not None
    assert abs(latest / 1e6 - datetime.now(UTC).timestamp()) < 60


def test_worker_ids_differ() -> None:
    assert new_worker_id() != new_worker_id()


def test_a_prefix_comes_first_in_an_id_that_a_worker_makes(tmp_path: Path) -> None:
    client = loaded(tmp_path, client__workerIdPrefix="01234567").client

    assert new_worker_id(client.worker_id_prefix).startswith("01234567-")
    assert not new_worker_id().startswith("-")
