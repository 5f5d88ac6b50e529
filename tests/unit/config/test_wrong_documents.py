"""A worker's document with a mistake: the message it gets."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from pydantic import BaseModel

from ots_tunnel.config import WorkerConfig, load_config
from ots_tunnel.config.messages.schema_node import SchemaNode
from ots_tunnel.endpoint import ENDPOINT_WORDS
from ots_tunnel.errors import ConfigError

DOCUMENT: dict[str, Any] = {
    "source": {
        "endpoint": "http://127.0.0.1:1",
        "instance": "demo",
        "table": "orders",
        "tunnelName": "orders-copy",
        "tunnelId": "tid",
        "credentials": {"directory": "/keys"},
    },
    "sink": {"count": {}},
}
TABLE_SINK = {"endpoint": "http://h", "instance": "demo", "table": "copy", "credentials": {"directory": "/keys"}}
KAFKA = {"bootstrapServers": ["b1:9092"], "topic": "changes"}
ENDPOINT = f"allowed is {ENDPOINT_WORDS}"
A_TIME = "allowed is a time with a time zone, such as 2026-06-19T17:00:00+08:00"
#: Phrases of the validation library, which no message may contain.
FOREIGN = ("Input should", "Field required", "Extra inputs", "String should", "valid ", "Value error", "[0-9", "type=")


def message(tmp_path: Path, path: str, value: object) -> str:
    """The message about the document with `value` at `path`."""
    document: Any = copy.deepcopy(DOCUMENT)
    place = document
    *above, last = path.split(".")
    if above[:1] == ["sink"]:
        document["sink"] = {}
    for name in above:
        place = place.setdefault(name, {})
    place[last] = value
    file = tmp_path / "worker.yaml"
    file.write_text(yaml.safe_dump(document))
    with pytest.raises(ConfigError) as caught:
        load_config(file)
    text = str(caught.value)
    assert not [words for words in FOREIGN if words in text], text
    assert text.startswith(f"{file}: ")
    return text.removeprefix(f"{file}: ")


@pytest.mark.parametrize(
    ("path", "value", "said"),
    [
        # names
        ("sinks", {}, "sinks: unknown, allowed is source, sink, client, delivery, http"),
        ("client.heartbeatSeconds", 5, "client.heartbeatSeconds: unknown, allowed is checkpointIntervalSeconds, "),
        ("delivery.batch_max_rows", 5, "delivery.batch_max_rows: unknown, allowed is batchMaxRows, "),
        ("sink.stdout", {"indent": 2}, "sink.stdout.indent: unknown, allowed is nothing"),
        ("delivery.retry", {"tries": 3}, "delivery.retry.tries: unknown, allowed is backoffSeconds, backoffMaxSeconds"),
        # kinds of values
        ("delivery", None, "delivery: found nothing, allowed is a mapping with batchMaxRows, "),
        ("delivery.batchMaxRows", "100", "delivery.batchMaxRows: found '100', allowed is a whole number from 1 to 200"),
        ("delivery.batchMaxRows", True, "delivery.batchMaxRows: found true, allowed is a whole number from 1 to 200"),
        ("delivery.batchMaxRows", 1.5, "delivery.batchMaxRows: found 1.5, allowed is a whole number from 1 to 200"),
        ("client.drainSeconds", float("inf"), "client.drainSeconds: found inf, allowed is a number from 1 on"),
        ("client.drainSeconds", float("nan"), "client.drainSeconds: found nan, allowed is a number from 1 on"),
        ("source.tunnelName", 7, "source.tunnelName: found 7, allowed is a name without spaces"),
        ("http.host", "", "http.host: found '', allowed is a text that is not empty"),
        ("http.port", 65536, "http.port: found 65536, allowed is a whole number from 0 to 65535"),
        # source
        ("source.endpoint", "shop", f"source.endpoint: found 'shop', {ENDPOINT}"),
        ("source.endpoint", "https://h/path", f"source.endpoint: found 'https://h/path', {ENDPOINT}"),
        ("source.endpoint", "http://h:99999", f"source.endpoint: found 'http://h:99999', {ENDPOINT}"),
        ("source.instance", "", "source.instance: found '', allowed is letters, digits and hyphens"),
        ("source.table", "my table", "source.table: found 'my table', allowed is up to 255 letters, digits and under"),
        ("source.tunnelId", "", "source.tunnelId: found '', allowed is the id that `ots-tunnel tunnel"),
        (
            "source.credentials.directory",
            "",
            "source.credentials.directory: found '', allowed is a path that is not",
        ),
        ("source.endTime", "2026-01-01T00:00:00", f"source.endTime: found '2026-01-01T00:00:00', {A_TIME}"),
        ("source.endTime", "tomorrow", f"source.endTime: found 'tomorrow', {A_TIME}"),
        ("source.endTime", 1_700_000_000, f"source.endTime: found 1700000000, {A_TIME}"),
        # client
        (
            "client.heartbeatIntervalSeconds",
            4,
            "client.heartbeatIntervalSeconds: found 4, allowed is a whole number from 5 on (the service's minimum: ",
        ),
        (
            "client.heartbeatTimeoutSeconds",
            10,
            "client.heartbeatTimeoutSeconds: found 10, allowed is more than heartbeatIntervalSeconds, 10 (the service ",
        ),
        (
            "client.memoryBudgetBytes",
            1,
            "client.memoryBudgetBytes: found 1, allowed is a whole number from 16777216",
        ),
        ("client.maxParallelChannels", -1, "client.maxParallelChannels: found -1, allowed is a whole number from 0 on"),
        # sinks
        (
            "sink",
            {},
            "sink: found none, allowed is exactly one of tablestore, files, http, kafka, python, ",
        ),
        (
            "sink",
            {"stdout": None},
            "sink: found none (stdout without a value counts as none: write {}), allowed is",
        ),
        ("sink", {"stdout": {}, "count": {}}, "sink: found stdout, count, allowed is exactly one of tablestore, files"),
        ("sink.tablestore", {}, "sink.tablestore.endpoint: missing, allowed is http(s)://host[:port] with a port"),
        (
            "sink.tablestore",
            TABLE_SINK | {"endpoint": "http://127.0.0.1:1/", "table": "orders"},
            "sink.tablestore.table: found 'orders', the source itself: copying a table into itself never ends",
        ),
        ("sink.files.url", "/data", "sink.files.url: found '/data', allowed is file:///path or s3://bucket/prefix"),
        (
            "sink.files.url",
            "file:///data/a?b/orders",
            "sink.files.url: found 'file:///data/a?***', allowed is file:///path or s3://bucket/prefix, without "
            "spaces, ? and #",
        ),
        ("sink.files.url", "s3://bucket/a#b", "sink.files.url: found 's3://bucket/a#b', allowed is file:///path or "),
        ("sink.files.url", "s3://bucket?a", "sink.files.url: found 's3://bucket?***', allowed is file:///path or "),
        (
            "sink.files.url",
            "s3://bucket/a//b",
            "sink.files.url: found 's3://bucket/a//b', allowed is a prefix without //",
        ),
        ("sink.files.url", "s3://bucket/..", "sink.files.url: found 's3://bucket/..', allowed is a prefix without //"),
        ("sink.files.url", "s3://[bucket/", "sink.files.url: found an address, allowed is file:///path or "),
        (
            "sink.http.url",
            "https://hooks.shop.example/#/orders",
            "sink.http.url: found 'https://hooks.shop.example/#/orders', allowed is http(s)://host[:port]/path without",
        ),
        (
            "sink.http.url",
            "https://user:pa/ssw0rd@h/x",
            "sink.http.url: found a text with @, allowed is http(s)://host",
        ),
        (
            "sink.http.url",
            "https://user:p@ssw0rd@h/x",
            "sink.http.url: found a text with @, allowed is http(s)://host",
        ),
        (
            "sink.http.url",
            "https://user:pa ssw0rd@h/x",
            "sink.http.url: found a text with @, allowed is http(s)://host",
        ),
        (
            "sink.http.url",
            "https://user:pa?ssw0rd@h/x",
            "sink.http.url: found a text with @, allowed is http(s)://host",
        ),
        ("sink.http.url", "https:user:ssw0rd@h", "sink.http.url: found a text with @, allowed is http(s)://host"),
        ("sink.http.url", "h?token=ssw0rd&next=https://x", "sink.http.url: found 'h?***', allowed is http(s)://host"),
        ("sink.http.url", "h/x?token=ssw0rd", "sink.http.url: found 'h/x?***', allowed is http(s)://host"),
        (
            "sink.http.url",
            "https:/h/x?token=ssw0rd",
            "sink.http.url: found 'https:/h/x?***', allowed is http(s)://host",
        ),
        ("sink.http.url", "https://user:ssw0rd", "sink.http.url: found an address, allowed is http(s)://host"),
        ("sink.http.url", "https://user ssw0rd", "sink.http.url: found an address, allowed is http(s)://host"),
        (
            "sink.http.url",
            "https://h/x?token=a'ssw0rd#f",
            "sink.http.url: found 'https://h/x?***', allowed is http(s)://host",
        ),
        (
            "sink.http.url",
            "https://h/x?token=a ssw0rd",
            "sink.http.url: found 'https://h/x?***', allowed is http(s)://host",
        ),
        (
            "sink.files",
            {"url": "file:///data", "columns": [{"name": "price", "type": "double"}]},
            "sink.files.columns: found with format JsonLines, allowed is Parquet with it",
        ),
        (
            "sink.files",
            {"url": "file:///data", "format": "Parquet", "unknownColumns": "Error"},
            "sink.files.unknownColumns: found Error without columns, allowed is with them",
        ),
        (
            "sink.files",
            {"url": "file:///data", "format": "Parquet", "columns": []},
            "sink.files.columns: found a list of 0, allowed is a list of 1 to 128: each a mapping with name, type",
        ),
        (
            "sink.files",
            {"url": "file:///data", "format": "Parquet", "columns": [{"name": "price", "type": "float"}]},
            "sink.files.columns.0.type: found 'float', allowed is one of integer, double, boolean, string, binary",
        ),
        (
            "sink.files",
            {"url": "file:///data", "format": "Parquet", "columns": [{"name": "key", "type": "string"}]},
            "sink.files.columns.0.name: found 'key', allowed is another name than action, channel, sequence, key, "
            "deleted, others, version, versions, cells: delivery.columns.rename gives a column a new one",
        ),
        (
            "sink.files",
            {
                "url": "file:///data",
                "format": "Parquet",
                "columns": [{"name": "n", "type": "integer"}, {"name": "n", "type": "double"}],
            },
            "sink.files.columns: found 'n' twice, allowed is every name once",
        ),
        (
            "sink.files",
            {"url": "file:///data", "region": "x"},
            "sink.files.region: found with url 'file:///data', allowed is a url s3://bucket/prefix with it",
        ),
        (
            "sink.files",
            {"url": "file:///data", "spoolDirectory": "/tmp"},
            "sink.files.spoolDirectory: found with url 'file:///data', allowed is a url s3://bucket/prefix with it",
        ),
        (
            "sink.files",
            {"url": "s3://b", "endpoint": "http://minio", "credentials": {"directory": "/keys"}, "caFile": "/ca.crt"},
            "sink.files.caFile: found with endpoint http://minio, allowed is https:// with it",
        ),
        (
            "sink.http",
            {"url": "http://hook/?key=hush", "caFile": "/ca.crt"},
            "sink.http.caFile: found with url http://hook/, allowed is https:// with it",
        ),
        ("sink.files.url", "s3://bucket", "sink.files.credentials: missing, url 's3://bucket' needs {directory: ...}"),
        (
            "sink.files",
            {"url": "file:///data", "format": "CSV", "compression": "lz4"},
            "sink.files.format: found 'CSV', allowed is one of JsonLines, Parquet; "
            "sink.files.compression: found 'lz4', allowed is one of none, gzip, zstd",
        ),
        (
            "sink.files",
            {"url": "file:///data", "maxFileSeconds": 0},
            "sink.files.maxFileSeconds: found 0, allowed is a number from 1 to 3600",
        ),
        (
            "sink.http.url",
            "ftp://h",
            "sink.http.url: found 'ftp://h', allowed is http(s)://host[:port]/path without",
        ),
        (
            "sink.http",
            {"url": "http://h", "timeoutSeconds": 0},
            "sink.http.timeoutSeconds: found 0, allowed is a number above 0 up to 300",
        ),
        (
            "sink.kafka",
            KAFKA | {"bootstrapServers": ["b1"]},
            "sink.kafka.bootstrapServers.0: found 'b1', allowed is ",
        ),
        (
            "sink.kafka",
            KAFKA | {"bootstrapServers": ["b1:0"]},
            "sink.kafka.bootstrapServers.0: found 'b1:0', allowed is host:port",
        ),
        (
            "sink.kafka",
            KAFKA | {"topic": "a b"},
            "sink.kafka.topic: found 'a b', allowed is 1 to 249 letters, digits, dots, underscores and hyphens",
        ),
        (
            "sink.kafka",
            KAFKA | {"securityProtocol": "SASL_SSL"},
            "sink.kafka.sasl: missing, securityProtocol SASL_SSL needs {mechanism, directory}",
        ),
        (
            "sink.python.factory",
            "shop",
            "sink.python.factory: found 'shop', allowed is package.module:name of",
        ),
        # delivery
        (
            "delivery.batchMaxRows",
            201,
            "delivery.batchMaxRows: found 201, allowed is a whole number from 1 to 200 (the service takes at most 200 "
            "rows in one BatchWriteRow)",
        ),
        (
            "delivery.batchMaxBytes",
            5_000_000,
            "delivery.batchMaxBytes: found 5000000, allowed is a whole number from 1024 to 4194304 (the service takes",
        ),
        (
            "delivery.retry",
            {"backoffSeconds": 90},
            "delivery.retry.backoffMaxSeconds: found 60, allowed is 90 and more, as backoffSeconds says",
        ),
        (
            "delivery.rateLimit.rowsPerSecond",
            -1,
            "delivery.rateLimit.rowsPerSecond: found -1, allowed is a whole number from 0 on",
        ),
        (
            "delivery.columns",
            {"include": ["a"], "exclude": ["b"]},
            "delivery.columns.exclude: found with include, allowed is one of them",
        ),
        (
            "delivery.columns",
            {"include": ["a"], "rename": {"b": "c"}},
            "delivery.columns.rename: b: left out by include",
        ),
        (
            "delivery.columns",
            {"include": ["a", "b"], "rename": {"a": "b"}},
            "delivery.columns.rename: 2 columns are called 'b' after it",
        ),
        (
            "delivery.columns.rename",
            {"a": 5},
            "delivery.columns.rename.a: found 5, allowed is a text that is not empty",
        ),
        (
            "delivery.filter.actions",
            ["put"],
            "delivery.filter.actions.0: found 'put', allowed is one of PUT, UPDATE, DELETE",
        ),
        (
            "delivery.filter.actions",
            [],
            "delivery.filter.actions: found a list of 0, allowed is a list of 1 or more: each one of PUT, UPDATE",
        ),
        (
            "delivery.filter.keyPrefix",
            {"pk": 5},
            "delivery.filter.keyPrefix.pk: found 5, allowed is a text",
        ),
        (
            "delivery.filter.keyPrefix",
            "abc",
            "delivery.filter.keyPrefix: found 'abc', allowed is a mapping, each key column of type STRING to",
        ),
        ("delivery.filter.keyRange", {}, "delivery.filter.keyRange.begin: empty as end is, allowed is at least one"),
        (
            "delivery.filter.keyRange.begin",
            [1.5],
            "delivery.filter.keyRange.begin.0: found 1.5, allowed is a whole number of 64 bits, a text, or {base64",
        ),
        (
            "delivery.filter.keyRange.begin",
            [2**63],
            "delivery.filter.keyRange.begin.0: found 9223372036854775808, allowed is a whole number of 64 bits",
        ),
        (
            "delivery.filter.keyRange.begin",
            [{"base64": "?"}],
            "delivery.filter.keyRange.begin.0.base64: found '?', allowed is a text in base64",
        ),
        (
            "delivery.filter.keyRange",
            {"begin": [2], "end": [2]},
            "delivery.filter.keyRange.end: nothing is between begin and it, allowed is above begin",
        ),
        (
            "delivery.filter.keyRange",
            {"begin": ["b"], "end": ["a"]},
            "delivery.filter.keyRange.end: found 'a', allowed is above 'b' of begin",
        ),
        (
            "delivery.filter.keyRange",
            {"begin": ["b"], "end": [1]},
            "delivery.filter.keyRange.end: found INTEGER beside STRING of begin, a key column has one type",
        ),
        (
            "delivery.onPermanentError",
            "skip",
            "delivery.onPermanentError: found 'skip', allowed is one of Fail, Skip, DeadLetter",
        ),
        (
            "delivery.onPermanentError",
            "Skip",
            "delivery.onPermanentError: found Skip with sink.count, which refuses no single record: allowed is Fail, ",
        ),
        ("delivery.onPermanentError", "DeadLetter", "delivery.deadLetter: missing, onPermanentError DeadLetter needs "),
        (
            "delivery.deadLetter",
            {"files": {"url": "file:///dead?orders"}},
            "delivery.deadLetter.files.url: found 'file:///dead?***', allowed is file:///path or s3://bucket/prefix",
        ),
        (
            "delivery.deadLetter",
            {"files": {"url": "file:///dead"}},
            "delivery.deadLetter: found with onPermanentError Fail, allowed is DeadLetter with it",
        ),
    ],
)
def test_a_mistake_is_named_with_its_path_and_what_is_allowed(
    tmp_path: Path, path: str, value: object, said: str
) -> None:
    assert message(tmp_path, path, value).startswith(said)


def places(model: type[BaseModel], path: str = "") -> Iterator[tuple[str, SchemaNode]]:
    """Every setting of a document."""
    for name in SchemaNode(model).names:
        node = SchemaNode(model).inside(name)
        assert node is not None
        yield f"{path}{name}", node.plain
        if isinstance(node.plain.annotation, type) and issubclass(node.plain.annotation, BaseModel):
            yield from places(node.plain.annotation, f"{path}{name}.")


EVERY_PLACE = dict(places(WorkerConfig))


def test_every_setting_is_covered() -> None:
    assert len(EVERY_PLACE) > 60
    assert {"delivery.deadLetter.files.credentials.directory", "sink.kafka.sasl.mechanism"} <= set(EVERY_PLACE)


@pytest.mark.parametrize("path", EVERY_PLACE)
def test_any_setting_of_another_kind_is_named_in_our_wording(tmp_path: Path, path: str) -> None:
    said = message(tmp_path, path, [{"hush": ["hush"]}])

    if EVERY_PLACE[path].allowed.startswith("a list of "):
        path = f"{path}.0"
    assert f"{path}: found a " in said or f"{path}.hush: unknown" in said
    assert ", allowed is " in said
    assert "hush'" not in said


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("source.credentials", "hush"),
        ("source.credentials.accessKeySecret", "hush"),
        ("source.endpoint", "https://user:hush@shop.example"),
        ("sink.http.url", "https://user:hush@shop.example/in"),
        ("sink.http.url", "ftp://shop.example/in?token=hush&more"),
        ("source.endpoint", "https://shop.example?token=hush"),
        ("sink.http", {"url": "https://shop.example", "hmacSecretFile": "whsec_hush"}),
        ("sink.kafka", KAFKA | {"sasl": "hush"}),
        ("sink.kafka", KAFKA | {"password": "hush"}),
        ("sink.files.credentials", ["hush"]),
    ],
)
def test_a_secret_in_the_wrong_place_is_not_repeated(tmp_path: Path, path: str, value: object) -> None:
    assert "hush" not in message(tmp_path, path, value)


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"source: {a: b\nsecret: hush", "line 2, column 7: not YAML: "),
        (b"sink: {count: {}}\nsink: {stdout: {}}\n", "line 2, column 1: not YAML: sink is given twice"),
        (b"\xff\xfe\x00", "found bytes that are not text, allowed is YAML in UTF-8"),
        (b"", "document: found nothing, allowed is a mapping with source, sink, client, delivery, http"),
        (b"hush", "document: found a text, allowed is a mapping with source, sink, client, delivery, http"),
        (b"source: {endTime: 2026-13-01}", "not YAML: month must be in 1..12"),
        (b"5: five", "5: unknown, allowed is source, sink, client, delivery, http"),
    ],
)
def test_a_file_without_a_document_is_refused(tmp_path: Path, content: bytes, said: str) -> None:
    file = tmp_path / "worker.yaml"
    file.write_bytes(content)

    with pytest.raises(ConfigError) as caught:
        load_config(file)

    assert said in str(caught.value)
    assert "hush" not in str(caught.value)


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"absent\.yaml: No such file or directory"):
        load_config(tmp_path / "absent.yaml")


def test_every_mistake_is_named_at_once(tmp_path: Path) -> None:
    said = message(tmp_path, "client", {"drainSeconds": 0, "lanesPerChannel": 0})

    assert "client.drainSeconds: " in said
    assert "client.lanesPerChannel: " in said
