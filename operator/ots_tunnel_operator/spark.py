"""Everything the operator applies for a snapshot by Spark, as plain dictionaries. Pure.

    service_account, role, role_binding   the driver's rights: `<name>-spark`
    snapshot_config_map                   the driver's document: `<name>-snapshot-config`
    snapshot_progress_map                 the empty record of progress: `<name>-snapshot`
    snapshot_application                  the SparkApplication `<name>-snapshot`

Nothing needs the Spark operator's webhook: every default is set, and volumes are in whole pod templates
(spark-design 8.1). Reading what became of it: `spark_state`, whose names can be imported from here too.
"""

from __future__ import annotations

import hashlib
import json
from typing import Any, Final

from ots_tunnel.config import (
    CredentialsConfig,
    DeliveryConfig,
    RetryConfig,
    SinkConfig,
    TablestoreSinkConfig,
)
from ots_tunnel.errors import ConfigError
from ots_tunnel.fence import write_deadline
from ots_tunnel.snapshot import (
    PROGRESS_LABEL,
    ProgressConfig,
    SnapshotConfig,
    SnapshotSource,
    dump_snapshot_config,
)
from ots_tunnel_operator import API_VERSION, KIND
from ots_tunnel_operator.api import TablestoreTunnel
from ots_tunnel_operator.names import (
    ANNOTATION_RENDERED_HASH,
    ROLE_SNAPSHOT,
    SECRETS_DIRECTORY,
    labels,
    snapshot_config_name,
    snapshot_name,
    spark_account_name,
)
from ots_tunnel_operator.spark_state import (
    Application,
    AppState,
    SnapshotDecision,
    SnapshotPhase,
    application_state,
    parse_progress,
    snapshot_decision,
)

__all__ = [
    "AppState",
    "Application",
    "SnapshotDecision",
    "SnapshotPhase",
    "application_state",
    "parse_progress",
    "role",
    "role_binding",
    "service_account",
    "snapshot_application",
    "snapshot_config",
    "snapshot_config_map",
    "snapshot_decision",
    "snapshot_progress_map",
]

Manifest = dict[str, Any]

SPARK_VERSION: Final = "4.2.1"
#: File of the driver's document in its ConfigMap, and where the driver's pod has it.
SNAPSHOT_FILE: Final = "snapshot.yaml"
SNAPSHOT_DIRECTORY: Final = "/etc/ots"
#: Driver program and interpreter in our Spark image (worker/image/Containerfile).
DRIVER_PROGRAM: Final = "local:///opt/ots/snapshot.py"
PYTHON: Final = "/opt/ots-tunnel/bin/python3"
#: The Spark operator looks for containers of exactly these names.
DRIVER_CONTAINER: Final = "spark-kubernetes-driver"
EXECUTOR_CONTAINER: Final = "spark-kubernetes-executor"
#: Attempts after the first one; a driver goes on with the splits its predecessor left.
RETRIES: Final = 10
RETRY_SECONDS: Final = 10

#: Settings an object may override with spark.conf.
_DEFAULT_CONF: Final = {
    # The JVMs carry bytes between two Python processes: compiling them hard costs more than it brings.
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
    "spark.executor.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
    # Bounds what lies between the two Python processes of a task, whatever the size of a row.
    "spark.sql.execution.arrow.maxBytesPerBatch": "8388608",
    "spark.task.maxFailures": "8",
}
#: Settings the copy depends on; they win over spark.conf.
_REQUIRED_CONF: Final = {
    # Spark 4.2 creates a NetworkPolicy at submission, which the chart of the Spark operator grants nobody.
    "spark.kubernetes.driver.pod.excludedFeatureSteps": (
        "org.apache.spark.deploy.k8s.features.NetworkPolicyFeatureStep"
    ),
    # A terminated pod that stays proves that it writes no more; it goes with the driver's pod.
    "spark.kubernetes.executor.deleteOnTermination": "false",
    "spark.pyspark.python": PYTHON,
    "spark.python.unix.domain.socket.enabled": "true",
    # A second copy of a task would write after the first was recorded as done.
    "spark.speculation": "false",
    "spark.ui.enabled": "false",
}
_DRIVER_RESOURCES: Final = ["pods", "services", "configmaps", "persistentvolumeclaims"]
_DRIVER_VERBS: Final = ["get", "list", "watch", "create", "update", "patch", "delete", "deletecollection"]


def service_account(obj: TablestoreTunnel) -> Manifest:
    """ServiceAccount `<name>-spark` of the driver's pod."""
    return _child(obj, "v1", "ServiceAccount", spark_account_name(obj.name))


def role(obj: TablestoreTunnel) -> Manifest:
    """Role `<name>-spark`: what a driver needs to run executors and to record progress (spark-design 10.4)."""
    rules = [{"apiGroups": [""], "resources": _DRIVER_RESOURCES, "verbs": _DRIVER_VERBS}]
    return _child(obj, "rbac.authorization.k8s.io/v1", "Role", spark_account_name(obj.name)) | {"rules": rules}


def role_binding(obj: TablestoreTunnel) -> Manifest:
    """RoleBinding `<name>-spark`."""
    name = spark_account_name(obj.name)
    return _child(obj, "rbac.authorization.k8s.io/v1", "RoleBinding", name) | {
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": name},
        "subjects": [{"kind": "ServiceAccount", "name": name, "namespace": obj.namespace}],
    }


def snapshot_config(obj: TablestoreTunnel, *, label: str) -> SnapshotConfig:
    """The driver's document.

    Args:
        obj: the object; its sink is a table.
        label: the tunnel's id, or the object's uid where there is no tunnel.

    Raises:
        ConfigError: the sink cannot be written by a snapshot.
    """
    spec = obj.spec
    sink = spec.sink.tablestore
    if sink is None:
        raise ConfigError("spec.sink: a snapshot by Spark needs spec.sink.tablestore")
    workers, delivery = spec.worker_settings, spec.delivery
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
            retry=RetryConfig(
                backoff_seconds=delivery.retry.backoff_seconds, backoff_max_seconds=delivery.retry.backoff_max_seconds
            ),
        ),
        write_deadline_seconds=write_deadline(workers.heartbeat_timeout_seconds, workers.heartbeat_interval_seconds),
    )


def snapshot_config_map(obj: TablestoreTunnel, *, label: str) -> Manifest:
    """ConfigMap `<name>-snapshot-config` with the driver's document; `label` as for `snapshot_config`."""
    return _child(obj, "v1", "ConfigMap", snapshot_config_name(obj.name)) | {
        "data": {SNAPSHOT_FILE: dump_snapshot_config(snapshot_config(obj, label=label))}
    }


def snapshot_progress_map(obj: TablestoreTunnel, *, label: str) -> Manifest:
    """The record of progress `<name>-snapshot` as the operator applies it, before the application.

    Only metadata: its items are the driver's, and server-side apply leaves them alone. Under Retain it has no
    owner, so that a re-applied object knows its snapshot. Another label than the stored one makes everything in
    the record count as nothing.
    """
    manifest = _child(obj, "v1", "ConfigMap", snapshot_name(obj.name))
    manifest["metadata"]["labels"][PROGRESS_LABEL] = label
    if obj.spec.deletion_policy == "Retain":
        del manifest["metadata"]["ownerReferences"]
    return manifest


def snapshot_application(obj: TablestoreTunnel, *, image: str, pull_policy: str = "IfNotPresent") -> Manifest:
    """The SparkApplication `<name>-snapshot`.

    Its spec depends on spec.spark, the names of the Secrets and the image only: an edit of the object elsewhere
    does not restart a running snapshot. The annotation with the hash of the spec tells whether to patch.

    Args:
        obj: the object.
        image: image used where `spec.spark.image` is empty.
        pull_policy: pull policy of both pods.
    """
    settings = obj.spec.spark_settings
    spec: Manifest = {
        "type": "Python",
        "pythonVersion": "3",
        "mode": "cluster",
        "sparkVersion": SPARK_VERSION,
        "image": settings.image or image,
        "imagePullPolicy": pull_policy,
        "mainApplicationFile": DRIVER_PROGRAM,
        "arguments": ["--config", f"{SNAPSHOT_DIRECTORY}/{SNAPSHOT_FILE}"],
        "restartPolicy": {
            "type": "OnFailure",
            "onFailureRetries": RETRIES,
            "onFailureRetryInterval": RETRY_SECONDS,
            "onSubmissionFailureRetries": RETRIES,
            "onSubmissionFailureRetryInterval": RETRY_SECONDS,
        },
        "suspend": False,
        "sparkConf": dict(sorted({**_DEFAULT_CONF, **settings.conf, **_REQUIRED_CONF}.items())),
        "driver": {
            "cores": settings.driver.cores,
            "memory": settings.driver.memory,
            "serviceAccount": spark_account_name(obj.name),
            "template": _driver_template(obj),
        },
        "executor": {
            "instances": settings.executor.instances,
            "cores": settings.executor.cores,
            "memory": settings.executor.memory,
            "template": _executor_template(obj),
        },
    }
    manifest = _child(obj, "sparkoperator.k8s.io/v1beta2", "SparkApplication", snapshot_name(obj.name))
    digest = hashlib.sha256(json.dumps(spec, sort_keys=True).encode()).hexdigest()[:16]
    manifest["metadata"]["annotations"] = {ANNOTATION_RENDERED_HASH: digest}
    return manifest | {"spec": spec}


def _child(obj: TablestoreTunnel, api_version: str, kind: str, name: str) -> Manifest:
    owner = {
        "apiVersion": API_VERSION,
        "kind": KIND,
        "name": obj.name,
        "uid": obj.uid,
        "controller": True,
        "blockOwnerDeletion": True,
    }
    return {
        "apiVersion": api_version,
        "kind": kind,
        "metadata": {
            "name": name,
            "namespace": obj.namespace,
            "labels": labels(obj.name, ROLE_SNAPSHOT),
            "ownerReferences": [owner],
        },
    }


def _credentials(member: str) -> CredentialsConfig:
    return CredentialsConfig.model_validate({"directory": f"{SECRETS_DIRECTORY}/{member}"})


def _driver_template(obj: TablestoreTunnel) -> Manifest:
    template = _pod_template(obj, DRIVER_CONTAINER)
    container = template["spec"]["containers"][0]
    container["volumeMounts"].insert(0, {"name": "config", "mountPath": SNAPSHOT_DIRECTORY, "readOnly": True})
    template["spec"]["volumes"].insert(0, {"name": "config", "configMap": {"name": snapshot_config_name(obj.name)}})
    template["spec"]["terminationGracePeriodSeconds"] = 60
    return template


def _executor_template(obj: TablestoreTunnel) -> Manifest:
    return _pod_template(obj, EXECUTOR_CONTAINER)


def _pod_template(obj: TablestoreTunnel, container: str) -> Manifest:
    """Secrets as files, the interpreter, and nothing else that Spark does not fill in itself."""
    secrets = {"source": obj.spec.source.credentials.secret_ref}
    if obj.spec.sink.tablestore is not None:
        secrets["sink"] = obj.spec.sink.tablestore.credentials.secret_ref
    return {
        "metadata": {"labels": labels(obj.name, ROLE_SNAPSHOT)},
        "spec": {
            "containers": [
                {
                    "name": container,
                    "env": [{"name": "PYSPARK_PYTHON", "value": PYTHON}],
                    "volumeMounts": [
                        {"name": f"{member}-secret", "mountPath": f"{SECRETS_DIRECTORY}/{member}", "readOnly": True}
                        for member in secrets
                    ],
                }
            ],
            "volumes": [
                {"name": f"{member}-secret", "secret": {"secretName": reference.name if reference else ""}}
                for member, reference in secrets.items()
            ],
        },
    }
