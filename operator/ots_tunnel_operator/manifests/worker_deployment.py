"""The Deployment of the workers.

Pure, as `worker_document`. Only fields we mean are in it.
"""

from __future__ import annotations

from typing import Any

from ots_tunnel.config import WorkerConfig
from ots_tunnel_operator import names
from ots_tunnel_operator.api.object import TablestoreTunnel
from ots_tunnel_operator.kube.kinds import Manifest
from ots_tunnel_operator.manifests.children import child
from ots_tunnel_operator.manifests.overlay import overlay
from ots_tunnel_operator.manifests.worker_document import config_hash

#: User and group of the worker's process in our images.
USER_ID = 10001
_MEBIBYTE = 1024 * 1024
#: Memory of an idle worker, in MiB: interpreter, libraries, buffers of connections.
_IDLE_MEMORY = 128


def deployment(
    obj: TablestoreTunnel, config: WorkerConfig, image: str, replicas: int, *, pull_policy: str = "IfNotPresent"
) -> Manifest:
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
    manifest = child(obj, "apps/v1", "Deployment", names.deployment_name(obj.name), names.ROLE_WORKER)
    return manifest | {
        "spec": {
            "replicas": replicas,
            # a new pod has its channels after three heartbeats; only then the next old one goes
            # (docs/architecture.md rule 19)
            "minReadySeconds": settle_seconds,
            "progressDeadlineSeconds": 600 + settle_seconds,
            "revisionHistoryLimit": 3,
            "selector": {"matchLabels": names.worker_selector(obj.name)},
            "strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1, "maxUnavailable": 0}},
            "template": _pinned(obj, config, overlay(template, settings.pod_template)),
        },
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
