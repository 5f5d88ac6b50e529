"""Rules between fields: objects that a real API server accepts and refuses."""

from __future__ import annotations

from typing import Any

import pytest
import yaml

from ots_tunnel.endpoint import ENDPOINT_WORDS
from ots_tunnel_operator.api.sink import SINKS, listed
from ots_tunnel_operator.api.webhook import WEB_URL_WORDS
from tests.operator.definition.admission import accepted, refusal
from tests.operator.definition.immutable_fields import IMMUTABLE
from tests.support.kube.api_server import ROOT, ApiServer
from tests.support.operator.objects import tunnel_object
from tests.support.operator.query_worlds import ALL_BY_QUERY, BY_QUERY
from tests.support.operator.spec_blocks import (
    BUCKET,
    END,
    FILES,
    HOOK,
    KAFKA,
    KEYS,
    LAKE,
    LEASED,
    LEASED_SOURCE,
    PARQUET,
    PRICE,
    SASL,
    SPARK,
    START,
    STDOUT,
    STREAM,
    TYPED,
)

pytestmark = pytest.mark.api

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
        "files.mode Mirror, the present rows of a table, is only for files.format Delta and Iceberg: take one of them, "
        "or sink.tablestore: found format JsonLines",
    ),
    "a table of Delta by workers": (
        BY_QUERY | {"sink": {"files": LAKE | {"format": "Delta", "mode": "Mirror"}}},
        {"sink": {"files": BUCKET | {"format": "Delta"}}},
        "spec.sink.files.format",
        "files.format Delta and Iceberg are only for engine.stream Spark: take Parquet, or let Spark follow the "
        "tunnel: found format Delta with engine.stream Workers",
    ),
    "a table of Iceberg by workers": (
        BY_QUERY | {"sink": {"files": LAKE | {"format": "Iceberg", "mode": "Mirror"}}},
        {"sink": {"files": LAKE | {"format": "Iceberg"}}},
        "spec.sink.files.format",
        "files.format Delta and Iceberg are only for engine.stream Spark: take Parquet, or let Spark follow the "
        "tunnel: found format Iceberg with engine.stream Workers",
    ),
    "columns that are added to files": (
        BY_QUERY | {"sink": {"files": LAKE | {"format": "Delta", "mode": "Mirror", "unknownColumns": "Add"}}},
        {"sink": {"files": TYPED | {"unknownColumns": "Add"}}},
        "spec.sink.files.unknownColumns",
        "files.unknownColumns Add is only for files.format Delta and Iceberg, whose tables can get columns: found "
        "format Parquet",
    ),
    "columns that are added to a table of Iceberg": (
        BY_QUERY | {"sink": {"files": LAKE | {"format": "Iceberg", "mode": "Mirror", "unknownColumns": "Add"}}},
        BY_QUERY | {"sink": {"files": LAKE | {"format": "Iceberg", "unknownColumns": "Add"}}},
        "spec.sink.files.unknownColumns",
        "files.unknownColumns is only for files with files.columns, and for files.mode Mirror: leave it out",
    ),
    "columns of lines": (
        {"sink": {"files": TYPED | {"unknownColumns": "Error"}}},
        {"sink": {"files": TYPED | {"format": "JsonLines"}}},
        "spec.sink.files.columns",
        "files.columns is only for files.format Parquet, Delta and Iceberg: found format JsonLines",
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
        "files have anyway: let delivery.columns.rename give the column another name, or, "
        "with engine.stream Spark, leave it out: found key",
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
        BY_QUERY | ALL_BY_QUERY,
        BY_QUERY | {"source__tunnel__type": "BaseAndStream"},
        "spec.engine.baseData",
        "engine.baseData must be Spark with engine.stream Spark and tunnel.type BaseAndStream: one query brings "
        "existing rows and changes: found Workers",
    ),
    "workers beside a query for existing rows": (
        BY_QUERY | ALL_BY_QUERY,
        BY_QUERY | ALL_BY_QUERY | {"workers": {"lanesPerChannel": 1}},
        "spec.workers",
        "workers has no meaning where no engine in use (engine.baseData, engine.stream) is Workers: leave it out",
    ),
    "a query for existing rows alone": (
        BY_QUERY | {"engine": {"baseData": "Spark", "stream": "Spark"}},
        BY_QUERY | {"source__tunnel__type": "BaseData"},
        "spec.engine.stream",
        "engine.stream Spark is only for source.tunnel of type Stream or BaseAndStream: leave it out: found type "
        "BaseData",
    ),
    "a query without a tunnel": (
        BY_QUERY,
        {key: value for key, value in BY_QUERY.items() if not key.startswith("source")} | {"source": LEASED_SOURCE},
        "spec.engine.stream",
        "of type Stream or BaseAndStream: leave it out: found source.stream",
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
        "files.url must be file:///path with engine.stream Spark and another files.format than Delta, a folder on a "
        "volume that spark.driver.podTemplate and spark.executor.podTemplate mount; for a bucket take files.format "
        "Delta: found s3://shop/orders",
    ),
    "a table of Iceberg in a bucket": (
        BY_QUERY | {"sink": {"files": LAKE | {"format": "Iceberg"}}},
        BY_QUERY | {"sink": {"files": BUCKET | {"format": "Iceberg", "mode": "Mirror"}}},
        "spec.sink.files.url",
        "files.url must be file:///path with engine.stream Spark and another files.format than Delta, a folder on a "
        "volume that spark.driver.podTemplate and spark.executor.podTemplate mount; for a bucket take files.format "
        "Delta: found s3://shop/orders",
    ),
    "a query that trusts another authority": (
        BY_QUERY | {"sink": {"files": BUCKET | {"format": "Delta"}}},
        BY_QUERY | {"sink": {"files": BUCKET | {"format": "Delta", "caRef": {"name": "store-ca"}}}},
        "spec.sink.files.caRef",
        "files.caRef is not for engine.stream Spark, whose Java trusts the authorities of spark.image: leave it out",
    ),
    "a query with files of a size": (
        BY_QUERY | {"sink": {"files": LAKE | {"columns": [PRICE], "unknownColumns": "Map"}}},
        BY_QUERY | {"sink": {"files": LAKE | {"maxFileSeconds": 61}}},
        "spec.sink.files",
        "files.unknownColumns Error without files.format Delta or Iceberg, files.maxFileBytes and "
        "files.maxFileSeconds are not for engine.stream Spark",
    ),
    "a query that refuses columns": (
        BY_QUERY | {"sink": {"files": LAKE | {"format": "Delta", "columns": [PRICE], "unknownColumns": "Error"}}},
        BY_QUERY | {"sink": {"files": LAKE | {"columns": [PRICE], "unknownColumns": "Error"}}},
        "spec.sink.files",
        "files.unknownColumns Error without files.format Delta or Iceberg, files.maxFileBytes and "
        "files.maxFileSeconds are not for engine.stream Spark",
    ),
    "a query that refuses columns of a table of Iceberg": (
        BY_QUERY | {"sink": {"files": LAKE | {"format": "Iceberg", "columns": [PRICE], "unknownColumns": "Error"}}},
        BY_QUERY | {"sink": {"files": LAKE | {"format": "Iceberg", "maxFileSeconds": 61}}},
        "spec.sink.files",
        "files.unknownColumns Error without files.format Delta or Iceberg, files.maxFileBytes and "
        "files.maxFileSeconds are not for engine.stream Spark",
    ),
    "a query with JSON lines in zstd": (
        BY_QUERY | {"sink": {"files": LAKE | {"format": "Iceberg", "compression": "zstd"}}},
        BY_QUERY | {"sink": {"files": LAKE | {"format": "JsonLines", "compression": "zstd"}}},
        "spec.sink.files.compression",
        "files.compression zstd is only for files.format Parquet, Delta and Iceberg with engine.stream Spark: found "
        "format JsonLines",
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


@pytest.mark.parametrize("case", RULES)
def test_rule_accepts_and_refuses(api_server: ApiServer, case: str) -> None:
    good, bad, field, message = RULES[case]

    accepted(api_server, tunnel_object(**good))
    error = refusal(api_server, tunnel_object(**bad))

    assert f"{field}: " in error
    assert message in error


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
