"""The two ConfigMaps of a query: the document of its driver and the record of its progress. Pure."""

from __future__ import annotations

import hashlib
from typing import Final

from pydantic import ValidationError

from ots_tunnel.config.messages.describing import describe
from ots_tunnel.errors import ConfigError
from ots_tunnel.query.bucket import PROFILE_FILE, profile_text
from ots_tunnel.query.document import QueryConfig, dump_query_config
from ots_tunnel.snapshot.record import PROGRESS_LABEL
from ots_tunnel_operator.api.object import TablestoreTunnel
from ots_tunnel_operator.kube.kinds import Manifest
from ots_tunnel_operator.manifests.children import child
from ots_tunnel_operator.manifests.sink_section import store_section
from ots_tunnel_operator.manifests.spark.submission import DOCUMENT_DIRECTORY
from ots_tunnel_operator.names import (
    ROLE_STREAM,
    SECRETS_DIRECTORY,
    client_tag_prefix,
    query_config_name,
    query_name,
)

#: File of the driver's document in its ConfigMap.
QUERY_FILE: Final = "query.yaml"
#: Where the claim with the checkpoints is mounted in the driver's pod.
CHECKPOINT_DIRECTORY: Final = "/var/lib/ots"
#: Seconds between the starts of two batches where the object names none.
TRIGGER_SECONDS: Final = 5


def query_config(obj: TablestoreTunnel, *, tunnel_id: str) -> QueryConfig:
    """Build the document of the query's driver.

    Args:
        obj: the object; its sink must be files in a folder.
        tunnel_id: of the tunnel. The folder of checkpoints has its name, so that no tunnel meets that of another one.

    Raises:
        ConfigError: the object gives no document that a query accepts.
    """
    source, files, settings = obj.spec.source, obj.spec.sink.files, obj.spec.spark_settings
    if files is None:
        raise ConfigError("spec.sink: a query of Spark needs spec.sink.files")
    columns = None if files.columns is None else [{"name": one.name, "type": one.type} for one in files.columns]
    document = {
        "source": {
            "endpoint": source.endpoint,
            "instance": source.instance,
            "table": source.table,
            "tunnel": source.a_tunnel.name,
            "credentials": {"directory": f"{SECRETS_DIRECTORY}/source"},
        },
        "sink": {
            "files": {
                **store_section(files, "sink"),
                "profileFile": f"{DOCUMENT_DIRECTORY}/{PROFILE_FILE}" if files.is_bucket else None,
                "format": files.format,
                "mode": files.mode,
                "columns": columns,
                # of files Spark knows no other treatment than a map
                "unknownColumns": files.unknown_columns if files.is_table else None,
                "compression": files.compression,
            }
        },
        "checkpointDirectory": f"{CHECKPOINT_DIRECTORY}/{tunnel_id}",
        "progress": {"namespace": obj.namespace, "configMap": query_name(obj.name), "label": tunnel_id},
        "triggerIntervalSeconds": settings.trigger_interval_seconds or TRIGGER_SECONDS,
        "onPossibleGap": "Continue" if source.goes_on_behind_gaps else "Stop",
        "clientTag": client_tag_prefix(obj.uid) or None,
    }
    try:
        return QueryConfig.model_validate(document)
    except ValidationError as error:
        raise ConfigError(f"{obj.namespace}/{obj.name}: {describe(error, QueryConfig)}") from error


def query_config_map(obj: TablestoreTunnel, config: QueryConfig) -> Manifest:
    """Build ConfigMap `<name>-stream-config` with the driver's document and, for a bucket, the profile of its keys."""
    data = {QUERY_FILE: dump_query_config(config)}
    if (keys := config.sink.files.credentials) is not None:
        data[PROFILE_FILE] = profile_text(keys.directory)
    return child(obj, "v1", "ConfigMap", query_config_name(obj.name), ROLE_STREAM) | {"data": data}


def query_record_map(obj: TablestoreTunnel, *, tunnel_id: str) -> Manifest:
    """Build ConfigMap `<name>-stream`, the record of the query's progress.

    The manifest holds only metadata: the driver writes the items, and server-side apply leaves them unchanged.
    """
    manifest = child(obj, "v1", "ConfigMap", query_name(obj.name), ROLE_STREAM)
    manifest["metadata"]["labels"][PROGRESS_LABEL] = tunnel_id
    return manifest


def query_hash(config: QueryConfig) -> str:
    """Hash of the driver's document."""
    return hashlib.sha256(dump_query_config(config).encode()).hexdigest()[:16]
