"""Objects that a real API server accepts and refuses, through kubectl."""

from __future__ import annotations

import json
from typing import Any

import pytest
import yaml

from ots_tunnel.endpoint import ENDPOINT_WORDS, MAX_ENDPOINT
from ots_tunnel_operator.api.object import TablestoreTunnel
from ots_tunnel_operator.api.sink import SINKS, listed
from ots_tunnel_operator.api.webhook import WEB_URL_WORDS
from tests.support.endpoints import ACCEPTED, REFUSED
from tests.support.kube.api_server import ROOT, ApiServer
from tests.support.operator.objects import changed, tunnel_object
from tests.support.operator.query_worlds import BY_QUERY
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

pytestmark = pytest.mark.api

STREAM: dict[str, Any] = {"source__tunnel__type": "Stream"}
SPARK: dict[str, Any] = {"engine__baseData": "Spark"}
LEASED: dict[str, Any] = {"source__tunnel": None, "source__stream": {"leaseTable": "leases"}}
STDOUT: dict[str, Any] = {"sink__tablestore": None, "sink__stdout": {}}
KEYS: dict[str, Any] = {"secretRef": {"name": "store-keys"}}
BUCKET: dict[str, Any] = {"url": "s3://shop/orders", "credentials": KEYS}
SASL: dict[str, Any] = {"mechanism": "PLAIN", "secretRef": {"name": "login"}}
KAFKA: dict[str, Any] = {"bootstrapServers": ["broker-1.shop:9092"], "topic": "orders"}
HOOK: dict[str, Any] = {"url": "https://hooks.shop.example/orders?shop=1"}
FILES: dict[str, Any] = {"sink": {"files": BUCKET}}
PARQUET: dict[str, Any] = BUCKET | {"format": "Parquet"}
PRICE: dict[str, Any] = {"name": "price", "type": "double"}
TYPED: dict[str, Any] = PARQUET | {"columns": [PRICE]}
LAKE: dict[str, Any] = BY_QUERY["sink"]["files"]
LEASED_SOURCE: dict[str, Any] = {
    **{key: value for key, value in tunnel_object()["spec"]["source"].items() if key != "tunnel"},
    "stream": {"leaseTable": "leases"},
}
START, END = "2026-01-01T00:00:00Z", "2026-02-01T00:00:00Z"

#: Every rule between fields: an accepted change, a refused change, and the field and text of the refusal.
RULES: dict[str, tuple[dict[str, Any], dict[str, Any], str, str]] = {
    "credentials of the source": (
        {},
        {"source__credentials": {}},
        "spec.source.credentials",
        "credentials: exactly one member is needed: secretRef",
    ),
    "start time without Timestamp": (
        STREAM | {"source__tunnel__stream": {"startFrom": "Timestamp", "startTime": START}},
        STREAM | {"source__tunnel__stream": {"startFrom": "Earliest", "startTime": START}},
        "spec.source.tunnel.stream.startTime",
        "stream.startTime is needed with stream.startFrom Timestamp and only with it",
    ),
    "Timestamp without start time": (
        STREAM | {"source__tunnel__stream": {"startFrom": "Earliest"}},
        STREAM | {"source__tunnel__stream": {"startFrom": "Timestamp"}},
        "spec.source.tunnel.stream.startTime",
        "stream.startTime is needed with stream.startFrom Timestamp and only with it",
    ),
    "end before start": (
        STREAM | {"source__tunnel__stream": {"startFrom": "Timestamp", "startTime": START, "endTime": END}},
        STREAM | {"source__tunnel__stream": {"startFrom": "Timestamp", "startTime": END, "endTime": START}},
        "spec.source.tunnel.stream.endTime",
        "stream.endTime must be after stream.startTime",
    ),
    "stream with BaseData": (
        {"source__tunnel__type": "BaseData"},
        {"source__tunnel__type": "BaseData", "source__tunnel__stream": {"startFrom": "Latest"}},
        "spec.source.tunnel.stream",
        "tunnel.stream has no meaning with tunnel.type BaseData: leave it out",
    ),
    "BaseAndStream from Earliest": (
        {"source__tunnel__stream": {"startFrom": "Latest", "endTime": END}},
        {"source__tunnel__stream": {"startFrom": "Earliest"}},
        "spec.source.tunnel.stream.startFrom",
        "tunnel.stream.startFrom must be Latest with tunnel.type BaseAndStream: found Earliest",
    ),
    "no sink": ({}, {"sink": {}}, "spec.sink", f"sink: exactly one member is needed: {listed(SINKS)}"),
    "two sinks": (
        STDOUT,
        {"sink__stdout": {}},
        "spec.sink",
        f"sink: exactly one member is needed: {listed(SINKS)}",
    ),
    "a bucket without credentials": (
        {"sink": {"files": BUCKET}},
        {"sink": {"files": {"url": "s3://shop/orders"}}},
        "spec.sink.files.credentials",
        "files.credentials is needed with files.url s3://bucket/prefix and only with it",
    ),
    "a folder with credentials": (
        {"sink": {"files": {"url": "file:///data"}}},
        {"sink": {"files": {"url": "file:///data", "credentials": KEYS}}},
        "spec.sink.files.credentials",
        "files.credentials is needed with files.url s3://bucket/prefix and only with it",
    ),
    "a folder with an endpoint": (
        {"sink": {"files": BUCKET | {"endpoint": "https://oss-cn-hangzhou.aliyuncs.com", "bucketInHost": True}}},
        {"sink": {"files": {"url": "file:///data", "bucketInHost": True}}},
        "spec.sink.files.url",
        "files.endpoint, files.region and files.bucketInHost are only for files.url s3://bucket/prefix: "
        "found url file:///data",
    ),
    "a folder behind a question mark": (
        {"sink": {"files": {"url": "file:///data/a%3Fb/orders"}}},
        {"sink": {"files": {"url": "file:///data/a?b/orders"}}},
        "spec.sink.files.url",
        "files.url: ? and # are not allowed, because what follows would be no part of the path: "
        "found file:///data/a?b/orders",
    ),
    "a prefix behind a fragment": (
        {"sink": {"files": BUCKET}},
        {"sink": {"files": BUCKET | {"url": "s3://shop/orders#1"}}},
        "spec.sink.files.url",
        "files.url: ? and # are not allowed, because what follows would be no part of the path: "
        "found s3://shop/orders#1",
    ),
    "dead letters behind a question mark": (
        {"delivery": {"onPermanentError": "DeadLetter", "deadLetter": {"files": BUCKET}}},
        {"delivery": {"onPermanentError": "DeadLetter", "deadLetter": {"files": BUCKET | {"url": "s3://shop/a?b"}}}},
        "spec.delivery.deadLetter.files.url",
        "files.url: ? and # are not allowed, because what follows would be no part of the path: found s3://shop/a?b",
    ),
    "a mirror in files": (
        {"sink": {"files": BUCKET | {"mode": "ChangeLog"}}},
        {"sink": {"files": BUCKET | {"mode": "Mirror"}}},
        "spec.sink.files.mode",
        "files.mode Mirror, the present rows of a table, is only for files.format Delta: take it, or sink.tablestore: "
        "found format JsonLines",
    ),
    "a table of Delta by workers": (
        BY_QUERY | {"sink": {"files": LAKE | {"format": "Delta", "mode": "Mirror"}}},
        {"sink": {"files": BUCKET | {"format": "Delta"}}},
        "spec.sink.files.format",
        "files.format Delta is only for engine.stream Spark: take Parquet, or let Spark follow the tunnel: found "
        "engine.stream Workers",
    ),
    "columns that are added to files": (
        BY_QUERY | {"sink": {"files": LAKE | {"format": "Delta", "mode": "Mirror", "unknownColumns": "Add"}}},
        {"sink": {"files": TYPED | {"unknownColumns": "Add"}}},
        "spec.sink.files.unknownColumns",
        "files.unknownColumns Add is only for files.format Delta, whose table can get columns: found format Parquet",
    ),
    "columns of lines": (
        {"sink": {"files": TYPED | {"unknownColumns": "Error"}}},
        {"sink": {"files": TYPED | {"format": "JsonLines"}}},
        "spec.sink.files.columns",
        "files.columns is only for files.format Parquet and Delta: found format JsonLines",
    ),
    "unknown columns without any that are known": (
        {"sink": {"files": TYPED | {"unknownColumns": "Map"}}},
        {"sink": {"files": PARQUET | {"unknownColumns": "Map"}}},
        "spec.sink.files.unknownColumns",
        "files.unknownColumns is only for files with files.columns, and for files.mode Mirror: leave it out",
    ),
    "a column that the files have anyway": (
        {"sink": {"files": PARQUET | {"columns": [{"name": "keys", "type": "string"}]}}},
        {"sink": {"files": PARQUET | {"columns": [PRICE, {"name": "key", "type": "string"}]}}},
        "spec.sink.files.columns[1].name",
        "files.columns: action, channel, sequence, key, deleted, others, version, versions, cells are columns that the "
        "files have anyway: let delivery.columns.rename give the column another name: found key",
    ),
    "a login without its protocol": (
        {"sink": {"kafka": KAFKA | {"securityProtocol": "SASL_SSL", "sasl": SASL}}},
        {"sink": {"kafka": KAFKA | {"securityProtocol": "SSL", "sasl": SASL}}},
        "spec.sink.kafka.sasl",
        "kafka.sasl is needed with kafka.securityProtocol SASL_PLAINTEXT or SASL_SSL and only with them: "
        "found securityProtocol SSL",
    ),
    "a protocol without its login": (
        {"sink": {"kafka": KAFKA | {"securityProtocol": "SASL_PLAINTEXT", "sasl": SASL}}},
        {"sink": {"kafka": KAFKA | {"securityProtocol": "SASL_PLAINTEXT"}}},
        "spec.sink.kafka.sasl",
        "kafka.sasl is needed with kafka.securityProtocol SASL_PLAINTEXT or SASL_SSL and only with them",
    ),
    "certificates without TLS": (
        {"sink": {"kafka": KAFKA | {"securityProtocol": "SSL", "caRef": {"name": "authorities"}}}},
        {"sink": {"kafka": KAFKA | {"caRef": {"name": "authorities"}}}},
        "spec.sink.kafka.caRef",
        "kafka.caRef is only for kafka.securityProtocol SSL or SASL_SSL: found securityProtocol PLAINTEXT",
    ),
    "authorities of a bucket without TLS": (
        {"sink": {"files": BUCKET | {"endpoint": "https://minio:9000", "caRef": {"name": "authorities"}}}},
        {"sink": {"files": BUCKET | {"endpoint": "http://minio:9000", "caRef": {"name": "authorities"}}}},
        "spec.sink.files.caRef",
        "files.caRef is only for files.url s3://bucket/prefix and a files.endpoint https://host",
    ),
    "authorities of a folder": (
        {"sink": {"files": BUCKET | {"caRef": {"name": "authorities"}}}},
        {"sink": {"files": {"url": "file:///data", "caRef": {"name": "authorities"}}}},
        "spec.sink.files.caRef",
        "files.caRef is only for files.url s3://bucket/prefix and a files.endpoint https://host",
    ),
    "authorities of a web service without TLS": (
        {"sink": {"http": HOOK | {"caRef": {"name": "authorities"}}}},
        {"sink": {"http": {"url": "http://hooks.shop.example/orders", "caRef": {"name": "authorities"}}}},
        "spec.sink.http.caRef",
        "http.caRef is only for http.url https://host/path",
    ),
    "an address with a password": (
        {"sink": {"http": HOOK | {"hmacSecretRef": {"name": "hook"}}}},
        {"sink": {"http": {"url": "https://user:word@hooks.shop.example/orders"}}},
        "spec.sink.http.url",
        "url: found a user name or password, allowed is http(s)://host[:port]/path without user name, spaces and #",
    ),
    "columns let through and left out": (
        {"delivery": {"columns": {"include": ["a", "b"], "rename": {"a": "c"}}}},
        {"delivery": {"columns": {"include": ["a"], "exclude": ["b"]}}},
        "spec.delivery.columns.exclude",
        "columns.include and columns.exclude rule each other out",
    ),
    "a new name of a column that is left out": (
        {"delivery": {"columns": {"exclude": ["a"], "rename": {"b": "a"}}}},
        {"delivery": {"columns": {"exclude": ["a"], "rename": {"a": "b"}}}},
        "spec.delivery.columns.rename",
        "columns.rename names only columns that columns.include and columns.exclude let pass",
    ),
    "a new name of a column that is not let through": (
        {"delivery": {"columns": {"include": ["a"], "rename": {"a": "b"}}}},
        {"delivery": {"columns": {"include": ["a"], "rename": {"b": "c"}}}},
        "spec.delivery.columns.rename",
        "columns.rename names only columns that columns.include and columns.exclude let pass",
    ),
    "two columns with one new name": (
        {"delivery": {"columns": {"rename": {"a": "b", "b": "a"}}}},
        {"delivery": {"columns": {"rename": {"a": "c", "b": "c"}}}},
        "spec.delivery.columns.rename",
        "columns.rename gives two columns the same name",
    ),
    "a new name that another column has": (
        {"delivery": {"columns": {"include": ["a", "b"], "rename": {"a": "b", "b": "c"}}}},
        {"delivery": {"columns": {"include": ["a", "b"], "rename": {"a": "b"}}}},
        "spec.delivery.columns.rename",
        "columns.rename gives two columns the same name",
    ),
    "a bound of a key": (
        {"delivery": {"filter": {"keyRange": {"begin": [{"string": ""}, {"integer": -(2**63)}, {"base64": "AA=="}]}}}},
        {"delivery": {"filter": {"keyRange": {"begin": [{"string": "a", "integer": 1}]}}}},
        "spec.delivery.filter.keyRange.begin[0]",
        "keyRange: each value needs exactly one member: integer, string or base64",
    ),
    "a bound without a value": (
        {"delivery": {"filter": {"keyRange": {"end": [{"string": "b"}]}}}},
        {"delivery": {"filter": {"keyRange": {"end": [{}]}}}},
        "spec.delivery.filter.keyRange.end[0]",
        "keyRange: each value needs exactly one member: integer, string or base64",
    ),
    "a range without bounds": (
        {"delivery": {"filter": {"actions": ["PUT"]}}},
        {"delivery": {"filter": {"keyRange": {}}}},
        "spec.delivery.filter.keyRange.begin",
        "filter.keyRange.begin or filter.keyRange.end is needed: leave keyRange out for all rows",
    ),
    "dead letters without a place": (
        {"delivery": {"onPermanentError": "DeadLetter", "deadLetter": {"files": BUCKET}}},
        {"delivery": {"onPermanentError": "DeadLetter"}},
        "spec.delivery.deadLetter",
        "delivery.deadLetter is needed with delivery.onPermanentError DeadLetter and only with it: "
        "found onPermanentError DeadLetter",
    ),
    "a place without dead letters": (
        {"delivery": {"onPermanentError": "Skip"}},
        {"delivery": {"onPermanentError": "Skip", "deadLetter": {"files": BUCKET}}},
        "spec.delivery.deadLetter",
        "delivery.deadLetter is needed with delivery.onPermanentError DeadLetter and only with it",
    ),
    "a place for dead letters without credentials": (
        {"delivery": {"onPermanentError": "DeadLetter", "deadLetter": {"files": {"url": "file:///refused"}}}},
        {"delivery": {"onPermanentError": "DeadLetter", "deadLetter": {"files": {"url": "s3://shop-dead"}}}},
        "spec.delivery.deadLetter.files.credentials",
        "files.credentials is needed with files.url s3://bucket/prefix and only with it",
    ),
    "a sink that refuses no single record": (
        {"sink": {"http": HOOK}, "delivery": {"onPermanentError": "Skip"}},
        FILES | {"delivery": {"onPermanentError": "Skip"}},
        "spec.delivery.onPermanentError",
        "delivery.onPermanentError other than Fail is only for the sinks tablestore, kafka or http, and for files with "
        "files.columns, which can refuse a single record: found Skip with sink files",
    ),
    "files without columns": (
        {"sink": {"files": TYPED}, "delivery": {"onPermanentError": "Skip"}},
        {"sink": {"files": PARQUET}, "delivery": {"onPermanentError": "Skip"}},
        "spec.delivery.onPermanentError",
        "and for files with files.columns, which can refuse a single record: found Skip with sink files",
    ),
    "Spark copies whole rows": (
        SPARK | STREAM | {"delivery": {"columns": {"include": ["a"]}}},
        SPARK | {"delivery": {"columns": {"include": ["a"]}}},
        "spec.delivery",
        "delivery.columns, delivery.filter and delivery.onPermanentError are not for engine.baseData Spark",
    ),
    "Spark is not limited": (
        SPARK | {"source__rateLimit": {"rowsPerSecondPerWorker": 0}, "delivery": {"rateLimit": {}}},
        SPARK | {"source__rateLimit": {"rowsPerSecondPerWorker": 5}},
        "spec.source.rateLimit",
        "source.rateLimit and delivery.rateLimit do not limit engine.baseData Spark",
    ),
    "workers to scrape": (
        {"source__tunnel__type": "BaseData", "monitoring": {"podMonitor": True}},
        SPARK | {"source__tunnel__type": "BaseData", "monitoring": {"podMonitor": True}},
        "spec.monitoring.podMonitor",
        "monitoring.podMonitor has no meaning where no engine in use (engine.baseData, engine.stream) is Workers",
    ),
    "longest pause": (
        {"delivery__retry": {"backoffSeconds": 5, "backoffMaxSeconds": 5}},
        {"delivery__retry": {"backoffSeconds": 5, "backoffMaxSeconds": 4}},
        "spec.delivery.retry.backoffMaxSeconds",
        "retry.backoffMaxSeconds must not be less than retry.backoffSeconds",
    ),
    "heartbeat timeout": (
        {"workers": {"heartbeatIntervalSeconds": 5, "heartbeatTimeoutSeconds": 15}},
        {"workers": {"heartbeatIntervalSeconds": 6, "heartbeatTimeoutSeconds": 17}},
        "spec.workers.heartbeatTimeoutSeconds",
        "workers.heartbeatTimeoutSeconds must be at least 3 times workers.heartbeatIntervalSeconds",
    ),
    "fewest and most workers": (
        {"autoscaling": {"mode": "Auto", "minReplicas": 3, "maxReplicas": 3}},
        {"autoscaling": {"mode": "Auto", "minReplicas": 4, "maxReplicas": 3}},
        "spec.autoscaling.minReplicas",
        "autoscaling.minReplicas must not be above autoscaling.maxReplicas",
    ),
    "no worker at all": (
        {"autoscaling": {"mode": "Auto", "minReplicas": 0, "scaleToZero": {"enabled": True}}},
        {"autoscaling": {"mode": "Auto", "minReplicas": 0}},
        "spec.autoscaling.minReplicas",
        "autoscaling.minReplicas 0 needs autoscaling.scaleToZero.enabled true",
    ),
    "scale to zero without a minimum of 0": (
        {"replicas": 0, "autoscaling": {"mode": "Auto", "minReplicas": 1, "scaleToZero": {"enabled": False}}},
        {"autoscaling": {"mode": "Auto", "scaleToZero": {"enabled": True}}},
        "spec.autoscaling.scaleToZero.enabled",
        "autoscaling.scaleToZero.enabled true needs autoscaling.minReplicas 0",
    ),
    "autoscaling without workers": (
        SPARK | {"source__tunnel__type": "BaseData", "autoscaling": {"mode": "Disabled"}},
        SPARK | {"source__tunnel__type": "BaseData", "autoscaling": {"mode": "Advise"}},
        "spec.autoscaling.mode",
        "autoscaling.mode other than Disabled has no meaning where no engine in use (engine.baseData, engine.stream) "
        "is Workers: leave it out: found Advise",
    ),
    "workers without an engine": (
        SPARK | {"workers": {"lanesPerChannel": 1}},
        SPARK | {"source__tunnel__type": "BaseData", "workers": {"lanesPerChannel": 1}},
        "spec.workers",
        "workers has no meaning where no engine in use (engine.baseData, engine.stream) is Workers: leave it out",
    ),
    "spark without an engine": (
        SPARK | {"spark": {"executor": {"instances": 1}}},
        {"spark": {"executor": {"instances": 1}}},
        "spec.spark",
        "spark has no meaning where no engine in use (engine.baseData, engine.stream) is Spark: leave it out",
    ),
    "spark for changes only": (
        SPARK | {"source__tunnel__type": "BaseData", "spark": {"operator": "kubeflow"}},
        SPARK | STREAM | {"spark": {"operator": "kubeflow"}},
        "spec.spark",
        "spark has no meaning where no engine in use (engine.baseData, engine.stream) is Spark: leave it out",
    ),
    "stdout by Spark": (
        SPARK | STREAM | STDOUT,
        SPARK | STDOUT,
        "spec.sink",
        "sink.tablestore is the only sink that engine.baseData Spark writes: found stdout",
    ),
    "copy into itself": (
        {"sink__tablestore__instance": "other", "sink__tablestore__table": "flights"},
        {"sink__tablestore__table": "flights"},
        "spec.sink.tablestore.table",
        "sink.tablestore.table must not be source.table of the same instance",
    ),
    "a source with both": (
        {},
        {"source__stream": {"leaseTable": "leases"}},
        "spec.source",
        "source: exactly one member is needed: tunnel or stream: found both",
    ),
    "a source with none": (
        LEASED,
        {"source__tunnel": None},
        "spec.source",
        "source: exactly one member is needed: tunnel or stream: found none of them",
    ),
    "a table as its own leases": (
        LEASED,
        LEASED | {"source__stream": {"leaseTable": "flights"}},
        "spec.source.stream.leaseTable",
        "source.stream.leaseTable must not be source.table: nothing else may use a table of leases",
    ),
    "leases from a time without the time": (
        LEASED | {"source__stream": {"leaseTable": "leases", "startFrom": "Timestamp", "startTime": START}},
        LEASED | {"source__stream": {"leaseTable": "leases", "startFrom": "Timestamp"}},
        "spec.source.stream.startTime",
        "source.stream.startTime is needed with source.stream.startFrom Timestamp and only with it: "
        "found startFrom Timestamp",
    ),
    "leases from the begin with a time": (
        LEASED | {"source__stream": {"leaseTable": "leases", "startFrom": "Latest"}},
        LEASED | {"source__stream": {"leaseTable": "leases", "startTime": START}},
        "spec.source.stream.startTime",
        "source.stream.startTime is needed with source.stream.startFrom Timestamp and only with it: "
        "found startFrom Earliest",
    ),
    "the end of a stream before its start": (
        LEASED
        | {"source__stream": {"leaseTable": "leases", "startFrom": "Timestamp", "startTime": START, "endTime": END}},
        LEASED
        | {"source__stream": {"leaseTable": "leases", "startFrom": "Timestamp", "startTime": END, "endTime": START}},
        "spec.source.stream.endTime",
        "source.stream.endTime must be after source.stream.startTime",
    ),
    "deletion of leases": (
        LEASED | {"deletionPolicy": "Retain"},
        LEASED | {"deletionPolicy": "Delete"},
        "spec.deletionPolicy",
        "deletionPolicy must be Retain with source.stream: the operator deletes no table of leases, which other "
        "workers may use: found Delete",
    ),
    "Spark without existing rows": (
        LEASED | {"engine__baseData": "Workers"},
        LEASED | SPARK,
        "spec.engine.baseData",
        "engine.baseData must be Workers with source.stream, which has changes alone: use source.tunnel of type "
        "BaseAndStream to copy existing rows: found Spark",
    ),
    "leases as the destination": (
        LEASED,
        LEASED | {"source__stream": {"leaseTable": "flights_copy"}},
        "spec.sink.tablestore.table",
        "sink.tablestore.table must not be source.stream.leaseTable of the same instance: nothing else may use a table "
        "of leases",
    ),
    "spark for a stream": (
        LEASED | {"workers": {"lanesPerChannel": 1}, "monitoring": {"podMonitor": True}},
        LEASED | {"spark": {"operator": "kubeflow"}},
        "spec.spark",
        "spark has no meaning where no engine in use (engine.baseData, engine.stream) is Spark: leave it out",
    ),
    "a query for existing rows": (
        BY_QUERY,
        BY_QUERY | {"source__tunnel__type": "BaseAndStream"},
        "spec.engine.stream",
        "engine.stream Spark is only for source.tunnel of type Stream: follow changes with Workers here, or copy "
        "existing rows by an object of its own: found type BaseAndStream",
    ),
    "a query for existing rows alone": (
        BY_QUERY | {"engine": {"baseData": "Spark", "stream": "Spark"}},
        BY_QUERY | {"source__tunnel__type": "BaseData"},
        "spec.engine.stream",
        "copy existing rows by an object of its own: found type BaseData",
    ),
    "a query without a tunnel": (
        BY_QUERY,
        {key: value for key, value in BY_QUERY.items() if not key.startswith("source")} | {"source": LEASED_SOURCE},
        "spec.engine.stream",
        "copy existing rows by an object of its own: found source.stream",
    ),
    "a query into a table": (
        BY_QUERY,
        {key: value for key, value in BY_QUERY.items() if key != "sink"},
        "spec.sink",
        "sink.files is the only sink that engine.stream Spark writes: found tablestore",
    ),
    "a query into a bucket": (
        BY_QUERY,
        BY_QUERY | {"sink": {"files": PARQUET}},
        "spec.sink.files.url",
        "files.url must be file:///path with engine.stream Spark, a folder on a volume that spark.driver.podTemplate "
        "and spark.executor.podTemplate mount: found s3://shop/orders",
    ),
    "a query with files of a size": (
        BY_QUERY | {"sink": {"files": LAKE | {"columns": [PRICE], "unknownColumns": "Map"}}},
        BY_QUERY | {"sink": {"files": LAKE | {"maxFileSeconds": 61}}},
        "spec.sink.files",
        "files.unknownColumns Error without files.format Delta, files.maxFileBytes and files.maxFileSeconds are not "
        "for engine.stream Spark",
    ),
    "a query that refuses columns": (
        BY_QUERY | {"sink": {"files": LAKE | {"format": "Delta", "columns": [PRICE], "unknownColumns": "Error"}}},
        BY_QUERY | {"sink": {"files": LAKE | {"columns": [PRICE], "unknownColumns": "Error"}}},
        "spec.sink.files",
        "files.unknownColumns Error without files.format Delta, files.maxFileBytes and files.maxFileSeconds are not "
        "for engine.stream Spark",
    ),
    "a query with JSON lines in zstd": (
        BY_QUERY | {"sink": {"files": LAKE | {"compression": "zstd"}}},
        BY_QUERY | {"sink": {"files": LAKE | {"format": "JsonLines", "compression": "zstd"}}},
        "spec.sink.files.compression",
        "files.compression zstd is only for files.format Parquet and Delta with engine.stream Spark: found format "
        "JsonLines",
    ),
    "a query with an end": (
        BY_QUERY | {"source__tunnel__stream": {"startFrom": "Earliest"}},
        BY_QUERY | {"source__tunnel__stream": {"endTime": END}},
        "spec.source.tunnel.stream.endTime",
        "tunnel.stream.endTime is not for engine.stream Spark, whose query has no end: leave it out",
    ),
    "a query with delivery": (
        BY_QUERY,
        BY_QUERY | {"delivery": {"batchMaxRows": 100}},
        "spec.delivery",
        "delivery and source.rateLimit are not for engine.stream Spark, which delivers every change as it is",
    ),
    "a query with a limit": (
        BY_QUERY,
        BY_QUERY | {"source__rateLimit": {"rowsPerSecondPerWorker": 5}},
        "spec.delivery",
        "delivery and source.rateLimit are not for engine.stream Spark, which delivers every change as it is",
    ),
    "a query with replicas": (
        BY_QUERY | {"replicas": 1},
        BY_QUERY | {"replicas": 2},
        "spec.replicas",
        "replicas is the number of workers, and engine.stream Spark has none: leave it out; suspend stops the query",
    ),
    "a query without a place of checkpoints": (
        BY_QUERY,
        BY_QUERY | {"spark": {"operator": "kubeflow"}},
        "spec.spark.checkpoint",
        "spark.checkpoint is needed with engine.stream Spark and only with it",
    ),
    "a place of checkpoints without a query": (
        SPARK | {"spark": {"operator": "kubeflow"}},
        SPARK | {"spark": {"checkpoint": {"claimName": "checkpoints"}}},
        "spec.spark.checkpoint",
        "spark.checkpoint is needed with engine.stream Spark and only with it",
    ),
    "seconds between batches without a query": (
        BY_QUERY | {"spark": BY_QUERY["spark"] | {"triggerIntervalSeconds": 60}},
        SPARK | {"spark": {"triggerIntervalSeconds": 60}},
        "spec.spark.triggerIntervalSeconds",
        "spark.triggerIntervalSeconds is only for engine.stream Spark",
    ),
    "workers beside a query": (
        STREAM | {"workers": {"lanesPerChannel": 1}},
        BY_QUERY | {"workers": {"lanesPerChannel": 1}},
        "spec.workers",
        "workers has no meaning where no engine in use (engine.baseData, engine.stream) is Workers: leave it out",
    ),
    "autoscaling beside a query": (
        STREAM | {"autoscaling": {"mode": "Auto"}},
        BY_QUERY | {"autoscaling": {"mode": "Auto"}},
        "spec.autoscaling.mode",
        "autoscaling.mode other than Disabled has no meaning where no engine in use (engine.baseData, engine.stream) "
        "is Workers: leave it out: found Auto",
    ),
    "deletion of a tunnel of another owner": (
        {"deletionPolicy": "Delete"},
        {"deletionPolicy": "Delete", "source__tunnel__managementPolicy": "UseExisting"},
        "spec.deletionPolicy",
        "deletionPolicy Delete needs tunnel.managementPolicy CreateIfMissing",
    ),
}

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

#: Immutable fields: the change, and the field and text of the refusal.
IMMUTABLE: dict[str, tuple[dict[str, Any], dict[str, Any], str, str]] = {
    "instance": ({}, {"source__instance": "other"}, "spec.source.instance", "source.instance is immutable"),
    "table": ({}, {"source__table": "other"}, "spec.source.table", "source.table is immutable"),
    "tunnel name": ({}, {"source__tunnel__name": "other"}, "spec.source.tunnel.name", "tunnel.name is immutable"),
    "tunnel type": ({}, {"source__tunnel__type": "Stream"}, "spec.source.tunnel.type", "tunnel.type is immutable"),
    "engine": ({}, SPARK, "spec.engine", "engine is immutable"),
    "engine of changes": (STREAM | FILES, BY_QUERY, "spec.engine", "engine is immutable"),
    "columns of a query": (
        BY_QUERY | {"sink": {"files": LAKE | {"columns": [PRICE]}}},
        {"sink": {"files": LAKE | {"columns": [PRICE, {"name": "customer", "type": "string"}]}}},
        "spec.sink.files.columns",
        "sink.files.columns cannot be changed with engine.stream Spark",
    ),
    "place of checkpoints": (
        BY_QUERY,
        {"spark": BY_QUERY["spark"] | {"checkpoint": {"claimName": "others"}}},
        "spec.spark.checkpoint.claimName",
        "spark.checkpoint.claimName is immutable",
    ),
    "instance of the destination": (
        {},
        {"sink__tablestore__instance": "other"},
        "spec.sink.tablestore.instance",
        "sink.tablestore.instance is immutable",
    ),
    "table of the destination": (
        {},
        {"sink__tablestore__table": "other"},
        "spec.sink.tablestore.table",
        "sink.tablestore.table is immutable",
    ),
    "bucket": (
        FILES,
        {"sink__files__url": "s3://other/orders"},
        "spec.sink.files.url",
        "sink.files.url is immutable",
    ),
    "prefix": (FILES, {"sink__files__url": "s3://shop/other"}, "spec.sink.files.url", "sink.files.url is immutable"),
    "format": (FILES, {"sink__files__format": "Parquet"}, "spec.sink.files.format", "sink.files.format is immutable"),
    "mode": (
        BY_QUERY | {"sink": {"files": LAKE | {"format": "Delta", "mode": "Mirror"}}},
        {"sink__files__mode": "ChangeLog"},
        "spec.sink.files.mode",
        "sink.files.mode is immutable",
    ),
    "columns that appear": (
        {"sink": {"files": PARQUET}},
        {"sink__files__columns": [PRICE]},
        "spec.sink.files.columns",
        "sink.files.columns cannot be added or left out later",
    ),
    "columns that go": (
        {"sink": {"files": TYPED}},
        {"sink__files__columns": None},
        "spec.sink.files.columns",
        "sink.files.columns cannot be added or left out later",
    ),
    "the type of a column": (
        {"sink": {"files": TYPED}},
        {"sink__files__columns": [{"name": "n", "type": "integer"}, PRICE | {"type": "string"}]},
        "spec.sink.files.columns[1].type",
        "sink.files.columns[].type is immutable",
    ),
    "topic": (
        {"sink": {"kafka": KAFKA}},
        {"sink__kafka__topic": "other"},
        "spec.sink.kafka.topic",
        "sink.kafka.topic is immutable",
    ),
    "a table that becomes another sink": ({}, STDOUT, "spec.sink", "sink is immutable in kind"),
    "another sink that becomes a table": (
        STDOUT,
        {"sink": tunnel_object()["spec"]["sink"]},
        "spec.sink",
        "sink is immutable in kind",
    ),
    "a tunnel that becomes leases": (
        {},
        LEASED,
        "spec.source",
        "source.tunnel and source.stream cannot replace each other",
    ),
    "leases that become a tunnel": (
        LEASED,
        {"source__stream": None, "source__tunnel": {"name": "flights-copy", "type": "Stream"}},
        "spec.source",
        "source.tunnel and source.stream cannot replace each other",
    ),
    "table of leases": (
        LEASED,
        {"source__stream__leaseTable": "others"},
        "spec.source.stream.leaseTable",
        "source.stream.leaseTable is immutable",
    ),
    "start of leases": (
        LEASED,
        {"source__stream__startFrom": "Latest"},
        "spec.source.stream.startFrom",
        "source.stream.startFrom and source.stream.startTime are immutable",
    ),
    "an end of the stream that appears": (
        LEASED,
        {"source__stream__endTime": END},
        "spec.source.stream.endTime",
        "source.stream.endTime is immutable, because an object that is Completed stays so",
    ),
    "a stream block that appears": (
        {},
        {"source__tunnel__stream": {"endTime": END}},
        "spec.source.tunnel.stream",
        "tunnel.stream is immutable",
    ),
    "a stream block that changes": (
        STREAM | {"source__tunnel__stream": {"startFrom": "Earliest"}},
        {"source__tunnel__stream": {"startFrom": "Latest"}},
        "spec.source.tunnel.stream",
        "tunnel.stream is immutable",
    ),
    "a stream block that goes": (
        STREAM | {"source__tunnel__stream": {"startFrom": "Earliest"}},
        {"source__tunnel__stream": None},
        "spec.source.tunnel.stream",
        "tunnel.stream is immutable",
    ),
}


def refusal(api: ApiServer, document: dict[str, Any]) -> str:
    done = api.kubectl("create", "--dry-run=server", "-f", "-", document=document)
    assert done.returncode != 0, f"accepted: {done.stdout}"
    return done.stderr


def accepted(api: ApiServer, document: dict[str, Any]) -> dict[str, Any]:
    result: dict[str, Any] = json.loads(
        api.must("create", "--dry-run=server", "-o", "json", "-f", "-", document=document)
    )
    return result


@pytest.mark.parametrize("case", RULES)
def test_rule_accepts_and_refuses(api_server: ApiServer, case: str) -> None:
    good, bad, field, message = RULES[case]

    accepted(api_server, tunnel_object(**good))
    error = refusal(api_server, tunnel_object(**bad))

    assert f"{field}: " in error
    assert message in error


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


@pytest.mark.parametrize("case", IMMUTABLE)
def test_change_of_an_immutable_field_is_refused(api_server: ApiServer, case: str) -> None:
    first, change, field, message = IMMUTABLE[case]
    before = tunnel_object("immutable", **first)
    api_server.must("apply", "--server-side", "--force-conflicts", "-f", "-", document=before)
    try:
        # replace, because apply may keep a field that the document omits
        done = api_server.kubectl("replace", "-f", "-", document=changed(before, **change))
    finally:
        api_server.must("delete", "ott", "immutable")

    assert done.returncode != 0
    assert f"{field}: " in done.stderr
    assert message in done.stderr


@pytest.mark.parametrize(
    ("change", "values"),
    [
        ({"source__table": "other"}, "it is flights, found other"),
        ({"sink__tablestore__table": "other"}, "it is flights_copy, found other"),
        (STDOUT, "it is tablestore, found stdout"),
        (FILES, "it is tablestore, found files"),
        (SPARK, "it is baseData Workers, stream Workers; found baseData Spark, stream Workers"),
    ],
)
def test_refused_change_shows_both_values(api_server: ApiServer, change: dict[str, Any], values: str) -> None:
    api_server.must("apply", "--server-side", "-f", "-", document=tunnel_object("shown"))
    try:
        done = api_server.kubectl("replace", "-f", "-", document=tunnel_object("shown", **change))
    finally:
        api_server.must("delete", "ott", "shown")

    assert values in done.stderr


def test_mutable_fields_change(api_server: ApiServer) -> None:
    before = tunnel_object("mutable")
    api_server.must("apply", "--server-side", "-f", "-", document=before)
    try:
        after = changed(
            before,
            source__endpoint="https://shop.cn-hangzhou.ots.aliyuncs.com",
            sink__tablestore__endpoint="https://shop-dr.cn-beijing.ots.aliyuncs.com",
            sink__tablestore__credentials={"secretRef": {"name": "others"}},
            sink__tablestore__onExisting="Merge",
            deletionPolicy="Delete",
            suspend=True,
            workers__lanesPerChannel=1,
        )
        api_server.must("replace", "-f", "-", document=after)
        generation = api_server.must("get", "ott", "mutable", "-o", "jsonpath={.metadata.generation}")
    finally:
        api_server.must("delete", "ott", "mutable")

    assert generation == "2"


def test_defaults_are_those_of_the_models(api_server: ApiServer) -> None:
    document = tunnel_object(workers={})

    served = TablestoreTunnel.from_body(accepted(api_server, document))

    assert served.spec == TablestoreTunnel.from_body(document).spec


def test_scale_and_status_are_subresources(api_server: ApiServer) -> None:
    api_server.must("apply", "--server-side", "-f", "-", document=tunnel_object("scaled"))
    try:
        api_server.must("scale", "ott", "scaled", "--replicas=4")
        status = {"replicas": 3, "selector": "ots-tunnel.dev/name=scaled", "phase": "Streaming"}
        api_server.must(
            "patch", "ott", "scaled", "--subresource=status", "--type=merge", "-p", json.dumps({"status": status})
        )
        scale = json.loads(api_server.must("get", "ott", "scaled", "--subresource=scale", "-o", "json"))
        wide = api_server.must("get", "ott", "scaled", "-o", "wide").splitlines()
    finally:
        api_server.must("delete", "ott", "scaled")

    assert scale["spec"]["replicas"] == 4
    assert scale["status"] == {"replicas": 3, "selector": "ots-tunnel.dev/name=scaled"}
    columns = "NAME READY PHASE WORKERS DESIRED CHANNELS UNOWNED LAG(S) BASE(%) ROWS/S AGE "
    columns += "TABLE STAGE TUNNEL-ID REASON OBSERVED"
    assert " ".join(wide[0].split()) == columns


def test_a_complete_status_survives(api_server: ApiServer) -> None:
    status = complete_status().dump()
    api_server.must("apply", "--server-side", "-f", "-", document=tunnel_object("reported"))
    try:
        patch = json.dumps({"status": status})
        api_server.must("patch", "ott", "reported", "--subresource=status", "--type=merge", "-p", patch)
        kept = json.loads(api_server.must("get", "ott", "reported", "-o", "json"))["status"]
    finally:
        api_server.must("delete", "ott", "reported")

    assert kept == status


def test_every_rule_has_a_case() -> None:
    messages = [message for *_, message in [*RULES.values(), *IMMUTABLE.values()]]
    messages += [f"endpoint: allowed is {ENDPOINT_WORDS}", f"url: allowed is {WEB_URL_WORDS}"]
    definition = yaml.safe_load(next((ROOT / "crds").glob("*.yaml")).read_text())
    schema = definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"]

    untried = [
        rule["message"]
        for rule in _rules(schema["properties"]["spec"])
        if not any(message in rule["message"] or rule["message"] in message for message in messages)
    ]

    assert untried == []


def _rules(node: dict[str, Any]) -> list[dict[str, Any]]:
    found = list(node.get("x-kubernetes-validations", []))
    for child in (*node.get("properties", {}).values(), *filter(None, [node.get("items")])):
        found += _rules(child)
    return found
