"""The document of the workers and its ConfigMap. Pure.

Equal objects give equal manifests, so that applying one again changes nothing.
"""

from __future__ import annotations

import hashlib
from typing import Any

from pydantic import ValidationError

from ots_tunnel.config import StreamDocument, WorkerConfig, dump_config
from ots_tunnel.config.messages.describing import describe
from ots_tunnel.errors import ConfigError
from ots_tunnel_operator import names
from ots_tunnel_operator.api.object import TablestoreTunnel
from ots_tunnel_operator.api.shards import LeasedStream
from ots_tunnel_operator.kube.kinds import Manifest
from ots_tunnel_operator.manifests.children import child
from ots_tunnel_operator.manifests.delivery_section import delivery_section
from ots_tunnel_operator.manifests.files_place import files_place
from ots_tunnel_operator.manifests.sink_section import sink_section
from ots_tunnel_operator.manifests.worker_volumes import secret_folder
from ots_tunnel_operator.times import timestamp

#: The document of `ots-tunnel run`, or that of `ots-tunnel stream run`.
Document = WorkerConfig | StreamDocument


def worker_document(obj: TablestoreTunnel, tunnel_id: str, read_until: float | None = None) -> Document:
    """Build the document of an object's workers; errors and arguments as of `worker_config`."""
    stream = obj.spec.source.stream
    return worker_config(obj, tunnel_id, read_until) if stream is None else stream_config(obj, stream)


def worker_config(obj: TablestoreTunnel, tunnel_id: str, read_until: float | None = None) -> WorkerConfig:
    """Build the document of workers that consume a tunnel.

    Args:
        read_until: the read mark of this tunnel, Unix seconds; None without one.

    Raises:
        ConfigError: the worker's configuration does not accept a value; the message names the field.
    """
    tunnel, settings = obj.spec.source.a_tunnel, obj.spec.worker_settings
    document = _shared(obj)
    document["source"] |= {
        "tunnel_name": tunnel.name,
        "tunnel_id": tunnel_id,
        "end_time": tunnel.stream.end_time if tunnel.stream else None,
        "on_possible_gap": tunnel.on_possible_gap,
        "read_until": None if read_until is None else timestamp(read_until),
    }
    document["client"] |= {
        "tag_prefix": names.client_tag_prefix(obj.uid),
        "heartbeat_interval_seconds": settings.heartbeat_interval_seconds,
        "heartbeat_timeout_seconds": settings.heartbeat_timeout_seconds,
    }
    try:
        return WorkerConfig.model_validate(document)
    except ValidationError as error:
        raise ConfigError(f"{obj.namespace}/{obj.name}: {describe(error, WorkerConfig)}") from error


def stream_config(obj: TablestoreTunnel, stream: LeasedStream) -> StreamDocument:
    """Build the document of workers that share the shards of a stream; a lease lasts as long as a heartbeat's timeout.

    Raises:
        ConfigError: see `worker_config`.
    """
    settings, document = obj.spec.worker_settings, _shared(obj)
    document["source"] |= {
        "lease_table": stream.lease_table,
        **_beginning(obj, stream),
        "end_time": stream.end_time,
        "on_possible_gap": stream.on_possible_gap,
    }
    document["client"] |= {
        "worker_id_prefix": names.client_tag_prefix(obj.uid),
        "lease_duration_seconds": settings.heartbeat_timeout_seconds,
        "renew_interval_seconds": settings.heartbeat_interval_seconds,
        "take_interval_seconds": settings.heartbeat_interval_seconds,
    }
    try:
        return StreamDocument.model_validate(document)
    except ValidationError as error:
        raise ConfigError(f"{obj.namespace}/{obj.name}: {describe(error, StreamDocument)}") from error


def _beginning(obj: TablestoreTunnel, stream: LeasedStream) -> dict[str, Any]:
    """Where a stream without leases is read from.

    Latest is the time at which the object was created, and not that at which a worker starts: where the leases are
    lost, the next worker must leave nothing out. Without that time, or with an end before it, nothing is left out.
    """
    if stream.start_from != "Latest":
        return {"start_from": "Earliest", "start_time": stream.start_time}
    created = obj.metadata.creation_timestamp
    if created is None or (stream.end_time is not None and stream.end_time <= created):
        return {"start_from": "Latest"}
    return {"start_from": "Earliest", "start_time": created}


def _shared(obj: TablestoreTunnel) -> dict[str, Any]:
    """What both documents have."""
    source, settings = obj.spec.source, obj.spec.worker_settings
    return {
        "source": {
            "endpoint": source.endpoint,
            "instance": source.instance,
            "credentials": {"directory": secret_folder("source")},
            "table": source.table,
        },
        "sink": sink_section(obj.spec.sink),
        "client": {
            "checkpoint_interval_seconds": settings.checkpoint_interval_seconds,
            "max_parallel_channels": settings.max_parallel_channels,
            "lanes_per_channel": settings.lanes_per_channel,
            "memory_budget_bytes": settings.memory_budget_bytes,
            "rate_limit_rows_per_second": source.rate_limit.rows_per_second_per_worker if source.rate_limit else 0,
            # a quarter of the grace period remains for the interpreter's exit and the kubelet's bookkeeping
            "drain_seconds": settings.termination_grace_period_seconds * 0.75,
        },
        "delivery": delivery_section(obj.spec.delivery),
        "http": {"host": "0.0.0.0", "port": names.WORKER_PORT},
    }


def config_map(obj: TablestoreTunnel, config: Document) -> Manifest:
    """Build ConfigMap `<name>-config` with the worker's document."""
    manifest = child(obj, "v1", "ConfigMap", names.config_name(obj.name), names.ROLE_WORKER)
    place = files_place(obj)
    # here as well as on the Deployment, which a person may delete
    made = {"annotations": {names.ANNOTATION_FILES_PLACE: place}} if place else {}
    return manifest | {"metadata": manifest["metadata"] | made, "data": {names.WORKER_FILE: dump_config(config)}}


def config_hash(config: Document) -> str:
    """Hash of the document for an annotation of the pod template: a changed document restarts the pods.

    The read mark is no part of it: it moves while workers run, and only the next worker needs it.
    """
    settings: Document = config
    if isinstance(config, WorkerConfig):
        settings = config.model_copy(update={"source": config.source.model_copy(update={"read_until": None})})
    return hashlib.sha256(dump_config(settings).encode()).hexdigest()[:16]
