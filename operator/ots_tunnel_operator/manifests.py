"""What the operator applies for workers: the document in a ConfigMap and the Deployment that runs it.

Pure: an object goes in, a dict for server-side apply comes out. Only fields we mean are in it, and equal input gives
equal output, so that applying it again changes nothing.
"""

from __future__ import annotations

import hashlib
from typing import Any

from pydantic import ValidationError

from ots_tunnel.config import WorkerConfig, describe, dump_config
from ots_tunnel.errors import ConfigError
from ots_tunnel_operator import API_VERSION, KIND, names
from ots_tunnel_operator.api import TablestoreTunnel
from ots_tunnel_operator.overlay import overlay

#: User and group of the worker's process in our images.
USER_ID = 10001
_MEBIBYTE = 1024 * 1024
#: Memory of an idle worker, in MiB: interpreter, libraries, buffers of connections.
_IDLE_MEMORY = 128


def worker_config(obj: TablestoreTunnel, tunnel_id: str) -> WorkerConfig:
    """The document of this object's workers.

    Raises:
        ConfigError: the object asks for something no worker can do; names the field.
    """
    source, sink, settings, delivery = obj.spec.source, obj.spec.sink, obj.spec.worker_settings, obj.spec.delivery
    stream = source.tunnel.stream
    document: dict[str, Any] = {
        "source": {
            "endpoint": source.endpoint,
            "instance": source.instance,
            "credentials": {"directory": f"{names.SECRETS_DIRECTORY}/source"},
            "table": source.table,
            "tunnel_name": source.tunnel.name,
            "tunnel_id": tunnel_id,
            "end_time": stream.end_time if stream else None,
        },
        "sink": {"stdout": {}},
        "client": {
            "tag_prefix": names.client_tag_prefix(obj.uid),
            "heartbeat_interval_seconds": settings.heartbeat_interval_seconds,
            "heartbeat_timeout_seconds": settings.heartbeat_timeout_seconds,
            "checkpoint_interval_seconds": settings.checkpoint_interval_seconds,
            "max_parallel_channels": settings.max_parallel_channels,
            "lanes_per_channel": settings.lanes_per_channel,
            "memory_budget_bytes": settings.memory_budget_bytes,
            # the rest of the grace period is for the interpreter to end and the kubelet to notice
            "drain_seconds": settings.termination_grace_period_seconds * 0.75,
        },
        "delivery": {
            "batch_max_rows": delivery.batch_max_rows,
            "batch_max_bytes": delivery.batch_max_bytes,
            "retry": delivery.retry.model_dump(),
            "on_permanent_error": delivery.on_permanent_error,
        },
        "http": {"host": "0.0.0.0", "port": names.WORKER_PORT},
    }
    if sink.tablestore is not None:
        document["sink"] = {
            "tablestore": {
                "endpoint": sink.tablestore.endpoint,
                "instance": sink.tablestore.instance,
                "credentials": {"directory": f"{names.SECRETS_DIRECTORY}/sink"},
                "table": sink.tablestore.table,
            }
        }
    try:
        return WorkerConfig.model_validate(document)
    except ValidationError as error:
        raise ConfigError(f"{obj.namespace}/{obj.name}: {describe(error, WorkerConfig)}") from error


def config_map(obj: TablestoreTunnel, config: WorkerConfig) -> dict[str, Any]:
    """ConfigMap `<name>-config` with the worker's document."""
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": child_metadata(obj, names.config_name(obj.name), names.ROLE_WORKER),
        "data": {names.WORKER_FILE: dump_config(config)},
    }


def deployment(
    obj: TablestoreTunnel, config: WorkerConfig, image: str, replicas: int, *, pull_policy: str = "IfNotPresent"
) -> dict[str, Any]:
    """Deployment `<name>` of the workers.

    Args:
        obj: the object.
        config: its workers' document; a change of it rolls the pods, a change of a Secret's content does not.
        image: image of workers whose object names none.
        replicas: pods wanted now, which is not `spec.replicas` while suspended or completed.
        pull_policy: when the image is pulled.
    """
    settings = obj.spec.worker_settings
    template = _pod_template(obj, _container(obj, config, image) | {"imagePullPolicy": pull_policy})
    settle_seconds = 3 * settings.heartbeat_interval_seconds
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": child_metadata(obj, names.deployment_name(obj.name), names.ROLE_WORKER),
        "spec": {
            "replicas": replicas,
            # a new pod has its channels after three heartbeats; only then the next old one goes (design rule 19)
            "minReadySeconds": settle_seconds,
            "progressDeadlineSeconds": 600 + settle_seconds,
            "revisionHistoryLimit": 3,
            "selector": {"matchLabels": names.worker_selector(obj.name)},
            "strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1, "maxUnavailable": 0}},
            "template": _pinned(obj, config, overlay(template, settings.pod_template)),
        },
    }


def child_metadata(obj: TablestoreTunnel, name: str, role: str, *, owned: bool = True) -> dict[str, Any]:
    """Metadata of a child: goes with its object unless it is not `owned`."""
    metadata: dict[str, Any] = {"name": name, "namespace": obj.namespace, "labels": names.labels(obj.name, role)}
    return metadata | ({"ownerReferences": [owner_reference(obj)]} if owned else {})


def owner_reference(obj: TablestoreTunnel) -> dict[str, Any]:
    """The reference by which a child is garbage-collected with the object."""
    return {
        "apiVersion": API_VERSION,
        "kind": KIND,
        "name": obj.name,
        "uid": obj.uid,
        "controller": True,
        "blockOwnerDeletion": True,
    }


def secret_volumes(obj: TablestoreTunnel) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Volumes and mounts of the object's Secrets: files without subPath, so that rotation reaches them."""
    secrets = {"source": obj.spec.source.credentials.secret_ref}
    if obj.spec.sink.tablestore is not None:
        secrets["sink"] = obj.spec.sink.tablestore.credentials.secret_ref
    volumes = [
        {"name": f"secret-{end}", "secret": {"secretName": reference.name, "defaultMode": 0o440}}
        for end, reference in secrets.items()
        if reference is not None
    ]
    mounts = [
        {"name": f"secret-{end}", "mountPath": f"{names.SECRETS_DIRECTORY}/{end}", "readOnly": True}
        for end, reference in secrets.items()
        if reference is not None
    ]
    return volumes, mounts


def config_hash(config: WorkerConfig) -> str:
    """What the pod template is annotated with, so that a changed document rolls the pods."""
    return hashlib.sha256(dump_config(config).encode()).hexdigest()[:16]


def _pinned(obj: TablestoreTunnel, config: WorkerConfig, template: dict[str, Any]) -> dict[str, Any]:
    """The template with the labels and the hash that no overlay may change."""
    return overlay(
        template,
        {
            "metadata": {
                "labels": names.labels(obj.name, names.ROLE_WORKER),
                "annotations": {names.ANNOTATION_CONFIG_HASH: config_hash(config)},
            }
        },
    )


def _pod_template(obj: TablestoreTunnel, container: dict[str, Any]) -> dict[str, Any]:
    volumes, mounts = secret_volumes(obj)
    mounts = [{"name": "config", "mountPath": names.CONFIG_DIRECTORY, "readOnly": True}, *mounts]
    document = {"name": "config", "configMap": {"name": names.config_name(obj.name)}}
    return {
        "spec": {
            "automountServiceAccountToken": False,
            "enableServiceLinks": False,
            "terminationGracePeriodSeconds": obj.spec.worker_settings.termination_grace_period_seconds,
            "securityContext": {
                "runAsNonRoot": True,
                "runAsUser": USER_ID,
                "runAsGroup": USER_ID,
                "fsGroup": USER_ID,
                "seccompProfile": {"type": "RuntimeDefault"},
            },
            "containers": [container | {"volumeMounts": mounts}],
            "volumes": [document, *volumes],
        }
    }


def _container(obj: TablestoreTunnel, config: WorkerConfig, image: str) -> dict[str, Any]:
    return {
        "name": names.WORKER_CONTAINER,
        "image": obj.spec.worker_settings.image or image,
        # arguments: the image's entry point is an init that passes signals on from the first moment
        "args": ["ots-tunnel", "run", "--config", f"{names.CONFIG_DIRECTORY}/{names.WORKER_FILE}"],
        "ports": [{"name": "http", "containerPort": config.http.port, "protocol": "TCP"}],
        "readinessProbe": _probe("/readyz", period=3, failures=3),
        # slow to kill: a killed worker gives up its channels for a whole timeout
        "livenessProbe": _probe("/healthz", period=10, failures=6),
        "resources": _resources(config),
        "terminationMessagePolicy": "FallbackToLogsOnError",
        "securityContext": {
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"]},
        },
    }


def _probe(path: str, *, period: int, failures: int) -> dict[str, Any]:
    return {
        "httpGet": {"path": path, "port": "http"},
        "periodSeconds": period,
        "timeoutSeconds": 3,
        "failureThreshold": failures,
    }


def _resources(config: WorkerConfig) -> dict[str, Any]:
    """Memory follows the budget: half of it is asked for, all of it and half again is allowed."""
    budget = config.client.memory_budget_bytes // _MEBIBYTE
    return {
        "requests": {"cpu": "100m", "memory": f"{_IDLE_MEMORY + budget // 2}Mi"},
        "limits": {"memory": f"{2 * _IDLE_MEMORY + budget + budget // 2}Mi"},
    }
