"""The sink of an object as the section of the worker's document. Pure."""

from __future__ import annotations

from typing import Any

from ots_tunnel_operator.api.files import FilesSink, FileStore
from ots_tunnel_operator.api.object import Sink, TablestoreSink
from ots_tunnel_operator.manifests.worker_volumes import secret_folder


def sink_section(sink: Sink) -> dict[str, Any]:
    """Return the member of the document's `sink` that a worker opens."""
    if sink.tablestore is not None:
        return {"tablestore": _table(sink.tablestore)}
    if sink.files is not None:
        return {"files": _files(sink.files)}
    return {"stdout": {}}


def store_section(store: FileStore, folder: str) -> dict[str, Any]:
    """Return a place for files; `folder` is that of its Secret below `names.SECRETS_DIRECTORY`."""
    section: dict[str, Any] = {"url": store.url}
    if store.is_bucket:
        section |= {
            "endpoint": store.endpoint,
            "region": store.region,
            "bucket_in_host": store.bucket_in_host,
            "credentials": {"directory": secret_folder(folder)},
        }
    return section


def _table(table: TablestoreSink) -> dict[str, Any]:
    return {
        "endpoint": table.endpoint,
        "instance": table.instance,
        "credentials": {"directory": secret_folder("sink")},
        "table": table.table,
    }


def _files(files: FilesSink) -> dict[str, Any]:
    return store_section(files, "sink") | {
        "format": files.format,
        "compression": files.compression,
        "max_file_bytes": files.max_file_bytes,
        "max_file_seconds": files.max_file_seconds,
    }
