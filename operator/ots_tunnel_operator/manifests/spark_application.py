"""The SparkApplication that copies existing rows. Pure.

The manifest does not need the Spark operator's webhook: it sets every default itself, and its volumes are in complete
pod templates (docs/architecture.md 6.4). `assess.spark_state` interprets the application's status.
"""

from __future__ import annotations

from typing import Final

from ots_tunnel_operator.api.object import TablestoreTunnel
from ots_tunnel_operator.kube.kinds import Manifest
from ots_tunnel_operator.manifests.children import child
from ots_tunnel_operator.manifests.overlay import overlay
from ots_tunnel_operator.manifests.snapshot_document import SNAPSHOT_FILE
from ots_tunnel_operator.names import (
    ROLE_SNAPSHOT,
    SECRETS_DIRECTORY,
    labels,
    snapshot_config_name,
    snapshot_name,
    spark_account_name,
    spark_executors_name,
)

#: Version of PySpark in our Spark image (uv.lock).
SPARK_VERSION: Final = "4.2.1"
#: Folder of the driver's document in its pod.
SNAPSHOT_DIRECTORY: Final = "/etc/ots"
#: Driver program and interpreter in our Spark image (worker/image/Containerfile).
DRIVER_PROGRAM: Final = "local:///opt/ots/snapshot.py"
PYTHON: Final = "/opt/ots-tunnel/bin/python3"
#: Container names that the Spark operator expects in pod templates.
DRIVER_CONTAINER: Final = "spark-kubernetes-driver"
EXECUTOR_CONTAINER: Final = "spark-kubernetes-executor"
#: What a namespace of the Pod Security level `restricted` demands. The user is that of the image, which is a number.
_POD_SECURITY: Final = {"runAsNonRoot": True, "seccompProfile": {"type": "RuntimeDefault"}}
_CONTAINER_SECURITY: Final = {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}}
#: Attempts after the first one; each new driver copies the splits that are not recorded as done.
RETRIES: Final = 10
#: Seconds between two attempts.
RETRY_SECONDS: Final = 10

#: Spark settings that an object may override with spec.spark.conf.
_DEFAULT_CONF: Final = {
    # The JVMs only start tasks in Python: the optimizing compiler costs more time than it saves.
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
    "spark.executor.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
    "spark.task.maxFailures": "8",
}
#: Spark settings that the copy depends on; they override spec.spark.conf.
_REQUIRED_CONF: Final = {
    # Spark 4.2 creates a NetworkPolicy at submission; the chart of the Spark operator grants no right to do so.
    "spark.kubernetes.driver.pod.excludedFeatureSteps": (
        "org.apache.spark.deploy.k8s.features.NetworkPolicyFeatureStep"
    ),
    # A terminated pod proves that its executor writes no more; Kubernetes deletes it together with the driver's pod.
    "spark.kubernetes.executor.deleteOnTermination": "false",
    "spark.pyspark.python": PYTHON,
    "spark.python.unix.domain.socket.enabled": "true",
    # A speculative second attempt of a task could still write after the first was recorded as done.
    "spark.speculation": "false",
    "spark.ui.enabled": "false",
}


def snapshot_application(obj: TablestoreTunnel, *, image: str, pull_policy: str = "IfNotPresent") -> Manifest:
    """Build the SparkApplication `<name>-snapshot`.

    Its spec depends only on spec.spark, the names of the Secrets and the image: an edit of any other field does not
    restart a running snapshot.

    Args:
        obj: the object.
        image: image used where `spec.spark.image` is empty.
        pull_policy: pull policy of the driver's and the executors' pods.
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
            "serviceAccount": spark_executors_name(obj.name),
            "template": _executor_template(obj),
        },
    }
    manifest = child(obj, "sparkoperator.k8s.io/v1beta2", "SparkApplication", snapshot_name(obj.name), ROLE_SNAPSHOT)
    return manifest | {"spec": spec}


def _driver_template(obj: TablestoreTunnel) -> Manifest:
    template = _pod_template(obj, DRIVER_CONTAINER)
    container = template["spec"]["containers"][0]
    container["volumeMounts"].insert(0, {"name": "config", "mountPath": SNAPSHOT_DIRECTORY, "readOnly": True})
    template["spec"]["volumes"].insert(0, {"name": "config", "configMap": {"name": snapshot_config_name(obj.name)}})
    template["spec"]["terminationGracePeriodSeconds"] = 60
    return _merged(obj, template, obj.spec.spark_settings.driver.pod_template)


def _executor_template(obj: TablestoreTunnel) -> Manifest:
    template = _pod_template(obj, EXECUTOR_CONTAINER)
    template["spec"]["automountServiceAccountToken"] = False
    return _merged(obj, template, obj.spec.spark_settings.executor.pod_template)


def _merged(obj: TablestoreTunnel, template: Manifest, user: Manifest) -> Manifest:
    """Return the template with the user's part over it; by its labels the operator finds the pods."""
    return overlay(overlay(template, user), {"metadata": {"labels": labels(obj.name, ROLE_SNAPSHOT)}})


def _pod_template(obj: TablestoreTunnel, container: str) -> Manifest:
    """Return a pod template with the Secrets as files and the interpreter; Spark fills in the rest."""
    secrets = {"source": obj.spec.source.credentials.secret_ref}
    if obj.spec.sink.tablestore is not None:
        secrets["sink"] = obj.spec.sink.tablestore.credentials.secret_ref
    mounts = [
        {"name": f"{member}-secret", "mountPath": f"{SECRETS_DIRECTORY}/{member}", "readOnly": True}
        for member in secrets
    ]
    volumes = [
        {"name": f"{member}-secret", "secret": {"secretName": reference.name if reference else ""}}
        for member, reference in secrets.items()
    ]
    main = {
        "name": container,
        "securityContext": _CONTAINER_SECURITY,
        "env": [{"name": "PYSPARK_PYTHON", "value": PYTHON}],
        "volumeMounts": mounts,
    }
    return {
        "metadata": {"labels": labels(obj.name, ROLE_SNAPSHOT)},
        "spec": {"securityContext": _POD_SECURITY, "containers": [main], "volumes": volumes},
    }
