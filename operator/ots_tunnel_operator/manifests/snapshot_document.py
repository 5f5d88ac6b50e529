"""What the driver of a snapshot reads and records: its document, and the map that holds its progress. Pure."""

from __future__ import annotations

from typing import Final

from pydantic import ValidationError

from ots_tunnel.config import (
    CredentialsConfig,
    DeliveryConfig,
    RetryConfig,
    SinkConfig,
    TablestoreSinkConfig,
    describe,
)
from ots_tunnel.errors import ConfigError
from ots_tunnel.fence import write_deadline
from ots_tunnel.snapshot.document import ProgressConfig, SnapshotConfig, SnapshotSource, dump_snapshot_config
from ots_tunnel.snapshot.record import PROGRESS_LABEL
from ots_tunnel_operator.api.object import TablestoreTunnel
from ots_tunnel_operator.kube.kinds import Manifest
from ots_tunnel_operator.manifests.children import child
from ots_tunnel_operator.names import ROLE_SNAPSHOT, SECRETS_DIRECTORY, snapshot_config_name, snapshot_name

#: File of the driver's document in its ConfigMap.
SNAPSHOT_FILE: Final = "snapshot.yaml"


def snapshot_config(obj: TablestoreTunnel, *, label: str) -> SnapshotConfig:
    """The driver's document.

    Args:
        obj: the object; its sink is a table.
        label: the tunnel's id, or the object's uid where there is no tunnel.

    Raises:
        ConfigError: the object gives no document that a snapshot accepts.
    """
    spec = obj.spec
    sink = spec.sink.tablestore
    if sink is None:
        raise ConfigError("spec.sink: a snapshot by Spark needs spec.sink.tablestore")
    workers, delivery, retry = spec.worker_settings, spec.delivery, spec.delivery.retry
    deadline = write_deadline(workers.heartbeat_timeout_seconds, workers.heartbeat_interval_seconds)
    try:
        return SnapshotConfig(
            source=SnapshotSource(
                endpoint=spec.source.endpoint,
                instance=spec.source.instance,
                table=spec.source.table,
                credentials=_credentials("source"),
            ),
            sink=SinkConfig(
                tablestore=TablestoreSinkConfig(
                    endpoint=sink.endpoint, instance=sink.instance, table=sink.table, credentials=_credentials("sink")
                )
            ),
            progress=ProgressConfig(namespace=obj.namespace, config_map=snapshot_name(obj.name), label=label),
            delivery=DeliveryConfig(
                batch_max_rows=delivery.batch_max_rows,
                batch_max_bytes=delivery.batch_max_bytes,
                retry=RetryConfig(backoff_seconds=retry.backoff_seconds, backoff_max_seconds=retry.backoff_max_seconds),
            ),
            write_deadline_seconds=deadline,
        )
    except ValidationError as error:
        raise ConfigError(f"{obj.namespace}/{obj.name}: {describe(error, SnapshotConfig)}") from error


def snapshot_config_map(obj: TablestoreTunnel, *, label: str) -> Manifest:
    """ConfigMap `<name>-snapshot-config` with the driver's document; `label` as for `snapshot_config`."""
    return child(obj, "v1", "ConfigMap", snapshot_config_name(obj.name), ROLE_SNAPSHOT) | {
        "data": {SNAPSHOT_FILE: dump_snapshot_config(snapshot_config(obj, label=label))}
    }


def snapshot_progress_map(obj: TablestoreTunnel, *, label: str) -> Manifest:
    """The record of progress `<name>-snapshot` as the operator applies it, before the application.

    Only metadata: its items are the driver's, and server-side apply leaves them alone. Under Retain it has no
    owner, so that a re-applied object knows its snapshot. Another label than the stored one makes everything in
    the record count as nothing.
    """
    manifest = child(obj, "v1", "ConfigMap", snapshot_name(obj.name), ROLE_SNAPSHOT)
    manifest["metadata"]["labels"][PROGRESS_LABEL] = label
    if obj.spec.deletion_policy == "Retain":
        del manifest["metadata"]["ownerReferences"]
    return manifest


def _credentials(member: str) -> CredentialsConfig:
    return CredentialsConfig.model_validate({"directory": f"{SECRETS_DIRECTORY}/{member}"})
