"""The sink of an object as the section of the worker's document. Pure."""

from __future__ import annotations

from typing import Any

from ots_tunnel_operator.api.files import FilesSink, FileStore
from ots_tunnel_operator.api.kafka import KafkaSink
from ots_tunnel_operator.api.secrets import AUTHORITIES
from ots_tunnel_operator.api.sink import Sink, TablestoreSink
from ots_tunnel_operator.api.webhook import HttpSink
from ots_tunnel_operator.manifests.worker_volumes import secret_folder


def sink_section(sink: Sink) -> dict[str, Any]:
    """Return the member of the document's `sink` that a worker opens."""
    if sink.tablestore is not None:
        return {"tablestore": _table(sink.tablestore)}
    if sink.files is not None:
        return {"files": _files(sink.files)}
    if sink.kafka is not None:
        return {"kafka": _kafka(sink.kafka)}
    if sink.http is not None:
        return {"http": _http(sink.http)}
    if sink.python is not None:
        return {"python": {"factory": sink.python.factory}}
    return {"stdout": {}}


def store_section(store: FileStore, folder: str) -> dict[str, Any]:
    """Return a place for files; `folder` is that of its Secret below `names.SECRETS_DIRECTORY`."""
    section: dict[str, Any] = {"url": store.url}
    if store.is_bucket:
        section |= {
            "endpoint": store.endpoint,
            "region": store.region,
            "bucketInHost": store.bucket_in_host,
            "credentials": {"directory": secret_folder(folder)},
        }
    if store.ca_ref is not None:
        section["caFile"] = f"{secret_folder(f'{folder}-ca')}/{store.ca_ref.key}"
    return section


def _table(table: TablestoreSink) -> dict[str, Any]:
    return {
        "endpoint": table.endpoint,
        "instance": table.instance,
        "credentials": {"directory": secret_folder("sink")},
        "table": table.table,
    }


def _files(files: FilesSink) -> dict[str, Any]:
    section = store_section(files, "sink") | {
        "format": files.format,
        "compression": files.compression,
        "maxFileBytes": files.max_file_bytes,
        "maxFileSeconds": files.max_file_seconds,
    }
    if files.columns is not None:
        section["columns"] = [{"name": column.name, "type": column.type} for column in files.columns]
        section["unknownColumns"] = files.unknown_columns
    return section


def _kafka(kafka: KafkaSink) -> dict[str, Any]:
    section: dict[str, Any] = {
        "bootstrapServers": kafka.bootstrap_servers,
        "topic": kafka.topic,
        "securityProtocol": kafka.security_protocol,
        "compression": kafka.compression,
        "timeoutSeconds": kafka.timeout_seconds,
    }
    if kafka.sasl is not None:
        section["sasl"] = {"mechanism": kafka.sasl.mechanism, "directory": secret_folder("sink")}
    if kafka.ca_ref is not None:
        section["caFile"] = f"{secret_folder(AUTHORITIES)}/{kafka.ca_ref.key}"
    return section


def _http(http: HttpSink) -> dict[str, Any]:
    section: dict[str, Any] = {"url": http.url, "timeoutSeconds": http.timeout_seconds}
    if http.hmac_secret_ref is not None:
        section["hmacSecretFile"] = f"{secret_folder('sink-hmac')}/{http.hmac_secret_ref.key}"
    if http.ca_ref is not None:
        section["caFile"] = f"{secret_folder(AUTHORITIES)}/{http.ca_ref.key}"
    return section
