"""The Deployment of the workers. Pure.

It contains only fields that the operator decides: server-side apply leaves all others to their owners.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Any

from ots_tunnel.config import StreamDocument
from ots_tunnel_operator import names
from ots_tunnel_operator.api.object import TablestoreTunnel
from ots_tunnel_operator.kube.kinds import Manifest
from ots_tunnel_operator.manifests.children import child
from ots_tunnel_operator.manifests.files_place import files_place
from ots_tunnel_operator.manifests.overlay import overlay
from ots_tunnel_operator.manifests.worker_account import has_own_account
from ots_tunnel_operator.manifests.worker_document import Document, config_hash
from ots_tunnel_operator.manifests.worker_spread import spread_constraints
from ots_tunnel_operator.manifests.worker_volumes import volumes_and_mounts

#: User and group id of the worker's process (worker/image/Containerfile).
USER_ID = 10001
#: User and groups of a worker's pod where the cluster does not assign them.
_USER = {"runAsUser": USER_ID, "runAsGroup": USER_ID, "fsGroup": USER_ID}
_MEBIBYTE = 1024 * 1024
#: Fields of the spec that change without another pod template.
_NOT_OF_TEMPLATE = ("replicas", "autoscaling", "suspend", "deletion_policy", "monitoring", "spark")
#: Memory of an idle worker in MiB: interpreter, libraries and buffers of connections.
_IDLE_MEMORY = 128


def deployment(
    obj: TablestoreTunnel,
    config: Document,
    image: str,
    replicas: int,
    *,
    pull_policy: str = "IfNotPresent",
    cluster_assigns_user: bool = False,
) -> Manifest:
    """Build Deployment `<name>` of the workers.

    Args:
        obj: the object.
        config: document of its workers; a changed document restarts the pods, a changed Secret does not.
        image: image used where `spec.workers.image` is empty.
        replicas: number of pods; it differs from `spec.replicas` while the object is suspended or completed.
        pull_policy: pull policy of the pods.
        cluster_assigns_user: leave user and group of the pods to the cluster.
    """
    settings = obj.spec.worker_settings
    container = _container(obj, config, image) | {"imagePullPolicy": pull_policy}
    template = _pod_template(obj, container, {} if cluster_assigns_user else _USER)
    settle_seconds = 3 * settings.heartbeat_interval_seconds
    template = _pinned(obj, config, overlay(template, settings.pod_template))
    manifest = child(obj, "apps/v1", "Deployment", names.deployment_name(obj.name), names.ROLE_WORKER)
    made = {
        names.ANNOTATION_TEMPLATE_HASH: _hash(template),
        names.ANNOTATION_MADE_FROM: f"{obj.metadata.generation}.{_hash(_makes_template(obj))}",
    }
    if place := files_place(obj):
        made[names.ANNOTATION_FILES_PLACE] = place
    return manifest | {
        "metadata": manifest["metadata"] | {"annotations": made},
        "spec": {
            "replicas": replicas,
            # A new pod receives its channels within three heartbeats; only then the next old pod is stopped
            # (docs/architecture.md rule 19).
            "minReadySeconds": settle_seconds,
            # 600 s is the default of Kubernetes; each pod takes the settling time in addition
            "progressDeadlineSeconds": 600 + settle_seconds,
            "revisionHistoryLimit": 3,
            "selector": {"matchLabels": names.worker_selector(obj.name)},
            "strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1, "maxUnavailable": 0}},
            "template": template,
        },
    }


def _makes_template(obj: TablestoreTunnel) -> dict[str, Any]:
    """The part of the spec that makes the pod template, without what has its default: a release may add fields."""
    return obj.spec.model_dump(mode="json", by_alias=True, exclude_defaults=True, exclude=set(_NOT_OF_TEMPLATE))


def _hash(document: dict[str, Any]) -> str:
    text = json.dumps(document, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def _pinned(obj: TablestoreTunnel, config: Document, template: dict[str, Any]) -> dict[str, Any]:
    """Return the template with the labels and the hash, which a user's pod template must not change."""
    return overlay(
        template,
        {
            "metadata": {
                "labels": names.labels(obj.name, names.ROLE_WORKER),
                "annotations": {names.ANNOTATION_CONFIG_HASH: config_hash(config)},
            }
        },
    )


def _pod_template(obj: TablestoreTunnel, container: dict[str, Any], user: Mapping[str, int]) -> dict[str, Any]:
    volumes, mounts = volumes_and_mounts(obj)
    return {
        "spec": {
            **({"serviceAccountName": names.workers_name(obj.name)} if has_own_account(obj) else {}),
            "automountServiceAccountToken": False,
            "enableServiceLinks": False,
            "terminationGracePeriodSeconds": obj.spec.worker_settings.termination_grace_period_seconds,
            "securityContext": {"runAsNonRoot": True, **user, "seccompProfile": {"type": "RuntimeDefault"}},
            "topologySpreadConstraints": spread_constraints(obj.name),
            "containers": [container | {"volumeMounts": mounts}],
            "volumes": volumes,
        }
    }


def _container(obj: TablestoreTunnel, config: Document, image: str) -> dict[str, Any]:
    command = ("stream", "run") if isinstance(config, StreamDocument) else ("run",)
    return {
        "name": names.WORKER_CONTAINER,
        "image": obj.spec.worker_settings.image or image,
        # args and not command: the image's entry point is tini, which forwards signals from the start
        "args": ["ots-tunnel", *command, "--config", f"{names.CONFIG_DIRECTORY}/{names.WORKER_FILE}"],
        "ports": [{"name": "http", "containerPort": config.http.port, "protocol": "TCP"}],
        "readinessProbe": _probe("/readyz", period=3, failures=3),
        # 60 s until a restart: the channels of a killed worker stay unread for a whole heartbeat timeout
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


def _resources(config: Document) -> dict[str, Any]:
    """Derive memory from the budget: the request adds half of it to an idle worker, the limit 1.5 times to two."""
    budget = config.client.memory_budget_bytes // _MEBIBYTE
    return {
        "requests": {"cpu": "100m", "memory": f"{_IDLE_MEMORY + budget // 2}Mi"},
        "limits": {"memory": f"{2 * _IDLE_MEMORY + budget + budget // 2}Mi"},
    }
