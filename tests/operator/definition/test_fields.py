"""Single fields and names: values that a real API server accepts and refuses."""

from __future__ import annotations

from typing import Any

import pytest

from ots_tunnel.endpoint import ENDPOINT_WORDS, MAX_ENDPOINT
from ots_tunnel_operator.api.webhook import WEB_URL_WORDS
from tests.operator.definition.admission import accepted, refusal
from tests.support.endpoints import ACCEPTED, REFUSED
from tests.support.kube.api_server import ApiServer
from tests.support.operator.objects import tunnel_object
from tests.support.operator.query_worlds import BY_QUERY
from tests.support.operator.spec_blocks import BUCKET, KAFKA, PARQUET, PRICE, SPARK, STREAM
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

pytestmark = pytest.mark.api


#: Single fields: a value outside the allowed range, and the text of the refusal.
FIELDS: dict[str, tuple[dict[str, Any], str]] = {
    "table name": ({"source__table": "9flights"}, "spec.source.table"),
    "no table": ({"source__table": None}, "spec.source.table: Required value"),
    "type": ({"source__tunnel__type": "Base"}, "spec.source.tunnel.type: Unsupported value"),
    "heartbeat interval": ({"workers__heartbeatIntervalSeconds": 4}, "should be greater than or equal to 5"),
    "rows per write": ({"delivery__batchMaxRows": 201}, "should be less than or equal to 200"),
    "negative replicas": ({"replicas": -1}, "spec.replicas"),
    "a policy that is not there": ({"delivery__onPermanentError": "Ignore"}, 'values: "Fail", "Skip", "DeadLetter"'),
    "another engine": ({"engine__stream": "Flink"}, 'supported values: "Workers", "Spark"'),
    "a mode of autoscaling": ({"autoscaling": {"mode": "On"}}, 'supported values: "Disabled", "Advise", "Auto"'),
    "target utilization": ({"autoscaling": {"targetUtilizationPercent": 100}}, "should be less than or equal to 95"),
    "a step of nothing": ({"autoscaling": {"scaleUp": {"maxStepPercent": 0}}}, "should be greater than or equal to 10"),
    "a step of more than all": (
        {"autoscaling": {"scaleDown": {"maxStepPercent": 101}}},
        "should be less than or equal to 100",
    ),
    "looks that are hours apart": (
        {"autoscaling": {"minReplicas": 0, "scaleToZero": {"enabled": True, "peekIntervalSeconds": 3601}}},
        "should be less than or equal to 3600",
    ),
    "a sink for measurements": ({"sink__count": {}}, 'unknown field "spec.sink.count"'),
    "a broker without a port": (
        {"sink": {"kafka": KAFKA | {"bootstrapServers": ["broker"]}}},
        "spec.sink.kafka.bootstrapServers[0]: Invalid value",
    ),
    "no broker": ({"sink": {"kafka": KAFKA | {"bootstrapServers": []}}}, "spec.sink.kafka.bootstrapServers"),
    "topic": ({"sink": {"kafka": KAFKA | {"topic": "or/ders"}}}, "spec.sink.kafka.topic: Invalid value"),
    "a name that is no factory": ({"sink": {"python": {"factory": "shop.orders"}}}, "spec.sink.python.factory"),
    "a column twice": ({"delivery": {"columns": {"include": ["a", "a"]}}}, "Duplicate value"),
    "no kind of change": ({"delivery": {"filter": {"actions": []}}}, "spec.delivery.filter.actions"),
    "a bound that is not base64": (
        {"delivery": {"filter": {"keyRange": {"begin": [{"base64": "A"}]}}}},
        "spec.delivery.filter.keyRange.begin[0].base64",
    ),
    "rows per second": (
        {"source__rateLimit": {"rowsPerSecondPerWorker": -1}},
        "spec.source.rateLimit.rowsPerSecondPerWorker",
    ),
    "a typing mistake": ({"source__tabel": "flights"}, 'unknown field "spec.source.tabel"'),
    "a url of another scheme": (
        {"sink": {"files": {"url": "oss://shop/orders"}}},
        "spec.sink.files.url: Invalid value",
    ),
    "a url with a password": ({"sink": {"files": {"url": "s3://a:b@shop/"}}}, "spec.sink.files.url: Invalid value"),
    "size of a file": ({"sink": {"files": BUCKET | {"maxFileBytes": 1}}}, "should be greater than or equal to 65536"),
    "a compression that no reader knows": (
        {"sink": {"files": BUCKET | {"compression": "lz4"}}},
        'supported values: "none", "gzip", "zstd"',
    ),
    "no column": ({"sink": {"files": PARQUET | {"columns": []}}}, "spec.sink.files.columns"),
    "a column of files twice": ({"sink": {"files": PARQUET | {"columns": [PRICE, PRICE]}}}, "Duplicate value"),
    "a type that no attribute has": (
        {"sink": {"files": PARQUET | {"columns": [{"name": "price", "type": "float"}]}}},
        'supported values: "integer", "double", "boolean", "string", "binary"',
    ),
    "time without a zone": (
        STREAM | {"source__tunnel__stream": {"endTime": "2026-01-01T00:00:00"}},
        "spec.source.tunnel.stream.endTime",
    ),
}


@pytest.mark.parametrize("case", FIELDS)
def test_field_outside_its_range_is_refused(api_server: ApiServer, case: str) -> None:
    bad, message = FIELDS[case]

    assert message in refusal(api_server, tunnel_object(**bad))


def test_endpoints_are_refused_with_what_was_found_and_what_is_allowed(api_server: ApiServer) -> None:
    for endpoint in REFUSED:
        for field in ("source", "sink__tablestore"):
            error = refusal(api_server, tunnel_object(**{f"{field}__endpoint": endpoint}))
            assert f"spec.{field.replace('__', '.')}.endpoint: " in error, endpoint
            if len(endpoint) <= MAX_ENDPOINT:
                assert ENDPOINT_WORDS in error, endpoint
                found = "a user name or password" if "@" in endpoint else f"'{endpoint}'"
                # the API server shows no line feed
                assert f"endpoint: found {found}, allowed" in error or "\n" in endpoint, error


def window(moment: str) -> dict[str, Any]:
    return tunnel_object(**STREAM, source__tunnel__stream={"startFrom": "Timestamp", "startTime": moment})


def test_a_time_of_a_stream_is_accepted_or_refused_as_the_model_does(api_server: ApiServer) -> None:
    for moment in MOMENTS:
        accepted(api_server, window(moment))
        accepted(api_server, tunnel_object(source__tunnel__stream={"endTime": moment}))
    for moment in ENDS:
        accepted(api_server, tunnel_object(source__tunnel__stream={"endTime": moment}))
        assert "spec.source.tunnel.stream.startTime: " in refusal(api_server, window(moment)), moment
    for moment in (*OLD_ENDS, *NO_MOMENTS):
        assert "spec.source.tunnel.stream.startTime: " in refusal(api_server, window(moment)), moment
        late = tunnel_object(source__tunnel__stream={"endTime": moment})
        assert "spec.source.tunnel.stream.endTime: " in refusal(api_server, late), moment


def test_an_address_of_a_web_service_is_accepted_or_refused_as_the_model_does(api_server: ApiServer) -> None:
    for url in WEB_URLS:
        accepted(api_server, tunnel_object(sink={"http": {"url": url}}))
    for url in NO_WEB_URLS:
        assert f"allowed is {WEB_URL_WORDS}" in refusal(api_server, tunnel_object(sink={"http": {"url": url}})), url


def test_an_image_is_accepted_or_refused_as_the_model_does(api_server: ApiServer) -> None:
    for image in IMAGES:
        accepted(api_server, tunnel_object(workers={"image": image}))
    for image in NO_IMAGES:
        assert "spec.workers.image: " in refusal(api_server, tunnel_object(workers={"image": image})), image


@pytest.mark.parametrize("endpoint", ACCEPTED)
def test_endpoints_are_accepted(api_server: ApiServer, endpoint: str) -> None:
    accepted(api_server, tunnel_object(source__endpoint=endpoint, sink__tablestore__endpoint=endpoint))


@pytest.mark.parametrize(
    ("name", "changes", "message"),
    [
        ("a" * 53, {}, "metadata.name must not be longer than 52 characters"),
        ("9flights", SPARK, "the Spark operator refuses other names"),
        ("flights.copy", SPARK, "the Spark operator refuses other names"),
        ("9flights", BY_QUERY, "the Spark operator refuses other names"),
    ],
)
def test_name_is_refused(api_server: ApiServer, name: str, changes: dict[str, Any], message: str) -> None:
    assert message in refusal(api_server, tunnel_object(name, **changes))


@pytest.mark.parametrize(("name", "changes"), [("a" * 52, SPARK), ("9flights", {}), ("9flights", SPARK | STREAM)])
def test_name_is_accepted(api_server: ApiServer, name: str, changes: dict[str, Any]) -> None:
    accepted(api_server, tunnel_object(name, **changes))
