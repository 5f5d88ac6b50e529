"""The two ConfigMaps of a snapshot: the document of its driver and the record of its progress. Pure."""

from __future__ import annotations

from typing import Final

from pydantic import ValidationError

from ots_tunnel.config import (
    CredentialsConfig,
    DeliveryConfig,
    RetryConfig,
    SinkConfig,
    TablestoreSinkConfig,
)
from ots_tunnel.config.messages.describing import describe
from ots_tunnel.endpoint import table_identity
from ots_tunnel.errors import ConfigError
from ots_tunnel.fence import write_deadline
from ots_tunnel.snapshot.document import ProgressConfig, SnapshotConfig, SnapshotSource, dump_snapshot_config
from ots_tunnel.snapshot.record import PROGRESS_LABEL
from ots_tunnel_operator.api.object import TablestoreTunnel
from ots_tunnel_operator.api.sink import TablestoreSink
from ots_tunnel_operator.kube.kinds import Manifest
from ots_tunnel_operator.manifests.children import child
from ots_tunnel_operator.names import (
    ANNOTATION_DESTINATION,
    ROLE_SNAPSHOT,
    SECRETS_DIRECTORY,
    snapshot_config_name,
    snapshot_name,
)

#: File of the driver's document in its ConfigMap.
SNAPSHOT_FILE: Final = "snapshot.yaml"


def snapshot_config(obj: TablestoreTunnel, *, label: str) -> SnapshotConfig:
    """Build the document of the snapshot's driver.

    Args:
        obj: the object; its sink must be a table.
        label: id of the tunnel, or uid of the object where no tunnel is used.

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
    """Build ConfigMap `<name>-snapshot-config` with the driver's document; `label` as for `snapshot_config`."""
    return child(obj, "v1", "ConfigMap", snapshot_config_name(obj.name), ROLE_SNAPSHOT) | {
        "data": {SNAPSHOT_FILE: dump_snapshot_config(snapshot_config(obj, label=label))}
    }


def snapshot_progress_map(obj: TablestoreTunnel, *, label: str) -> Manifest:
    """Build ConfigMap `<name>-snapshot`, the record of progress; it is applied before the application.

    The manifest holds only metadata: the driver writes the items, and server-side apply leaves them unchanged. With
    deletionPolicy Retain it has no owner reference, so that an object applied again finds its snapshot. The driver
    and the operator ignore a record with another label. Its finished splits are in one table, which it names.
    """
    manifest = child(obj, "v1", "ConfigMap", snapshot_name(obj.name), ROLE_SNAPSHOT)
    manifest["metadata"]["labels"][PROGRESS_LABEL] = label
    if (sink := obj.spec.sink.tablestore) is not None:
        manifest["metadata"]["annotations"] = {ANNOTATION_DESTINATION: destination_text(sink)}
    if obj.spec.deletion_policy == "Retain":
        del manifest["metadata"]["ownerReferences"]
    return manifest


def destination_text(sink: TablestoreSink) -> str:
    """A table as the record names it; the public, VPC and internal hosts of its instance give one text."""
    return "/".join(table_identity(sink.endpoint, sink.instance, sink.table))


def _credentials(member: str) -> CredentialsConfig:
    return CredentialsConfig.model_validate({"directory": f"{SECRETS_DIRECTORY}/{member}"})
