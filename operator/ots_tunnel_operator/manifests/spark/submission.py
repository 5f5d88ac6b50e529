"""What every SparkApplication has, whatever it does: image, interpreter, restricted pods, accounts. Pure.

The manifest does not need the Spark operator's webhook: it sets every default itself, and its volumes are in complete
pod templates (docs/architecture.md 6.4). `assess.spark.application_state` interprets the application's status.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from ots_tunnel_operator.api.object import TablestoreTunnel
from ots_tunnel_operator.api.secrets import secret_name
from ots_tunnel_operator.api.source import Credentials
from ots_tunnel_operator.kube.kinds import Manifest
from ots_tunnel_operator.manifests.children import child
from ots_tunnel_operator.manifests.overlay import overlay
from ots_tunnel_operator.names import SECRETS_DIRECTORY, labels, spark_account_name, spark_executors_name

#: Version of PySpark in our Spark image (uv.lock).
SPARK_VERSION: Final = "4.2.1"
#: Folder of the driver's document in its pod.
DOCUMENT_DIRECTORY: Final = "/etc/ots"
#: Interpreter in our Spark image (worker/image/Containerfile).
PYTHON: Final = "/opt/ots-tunnel/bin/python3"
#: Container names that the Spark operator expects in pod templates.
DRIVER_CONTAINER: Final = "spark-kubernetes-driver"
EXECUTOR_CONTAINER: Final = "spark-kubernetes-executor"
#: Seconds between two attempts.
RETRY_SECONDS: Final = 10
#: What a namespace of the Pod Security level `restricted` demands. The user is that of the image, which is a number.
_POD_SECURITY: Final = {"runAsNonRoot": True, "seccompProfile": {"type": "RuntimeDefault"}}
_CONTAINER_SECURITY: Final = {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}}
#: Spark settings that every application depends on; they override spec.spark.conf.
REQUIRED_CONF: Final[Mapping[str, str]] = {
    # Spark 4.2 creates a NetworkPolicy at submission; the chart of the Spark operator grants no right to do so.
    "spark.kubernetes.driver.pod.excludedFeatureSteps": (
        "org.apache.spark.deploy.k8s.features.NetworkPolicyFeatureStep"
    ),
    "spark.pyspark.python": PYTHON,
    "spark.python.unix.domain.socket.enabled": "true",
    "spark.ui.enabled": "false",
}


@dataclass(frozen=True, slots=True)
class Volume:
    """A volume of a pod and its place in the main container."""

    name: str
    path: str
    source: Mapping[str, Any]
    read_only: bool = True


def secret_volume(member: str, credentials: Credentials) -> Volume:
    """The Secret of a side, `source` or `sink`, as files."""
    secret = {"secret": {"secretName": secret_name(credentials)}}
    return Volume(f"{member}-secret", f"{SECRETS_DIRECTORY}/{member}", secret)


@dataclass(frozen=True, slots=True)
class Program:
    """What an application runs."""

    name: str
    """Name of the application."""
    role: str
    """Role label of application and pods."""
    file: str
    """Main application file."""
    document: str
    """File of the document in `DOCUMENT_DIRECTORY`."""
    retries: int
    """Attempts after the first one."""
    conf: Mapping[str, str]
    version: str = SPARK_VERSION
    """Version of Spark in our image for it."""


def submission(
    obj: TablestoreTunnel, program: Program, driver: Manifest, executor: Manifest, *, image: str, pull_policy: str
) -> Manifest:
    """Build a SparkApplication.

    Args:
        obj: the object.
        program: what it runs.
        driver: template of the driver's pod.
        executor: template of the executors' pods.
        image: image used where `spec.spark.image` is empty.
        pull_policy: of all its pods.
    """
    settings = obj.spec.spark_settings
    spec: Manifest = {
        "type": "Python",
        "pythonVersion": "3",
        "mode": "cluster",
        "sparkVersion": program.version,
        "image": settings.image or image,
        "imagePullPolicy": pull_policy,
        "mainApplicationFile": program.file,
        "arguments": ["--config", f"{DOCUMENT_DIRECTORY}/{program.document}"],
        "restartPolicy": {
            "type": "OnFailure",
            "onFailureRetries": program.retries,
            "onFailureRetryInterval": RETRY_SECONDS,
            "onSubmissionFailureRetries": program.retries,
            "onSubmissionFailureRetryInterval": RETRY_SECONDS,
        },
        "suspend": False,
        "sparkConf": dict(sorted(program.conf.items())),
        "driver": {
            "cores": settings.driver.cores,
            "memory": settings.driver.memory,
            "serviceAccount": spark_account_name(obj.name),
            "template": driver,
        },
        "executor": {
            "instances": settings.executor.instances,
            "cores": settings.executor.cores,
            "memory": settings.executor.memory,
            "serviceAccount": spark_executors_name(obj.name),
            "template": executor,
        },
    }
    return child(obj, "sparkoperator.k8s.io/v1beta2", "SparkApplication", program.name, program.role) | {"spec": spec}


def driver_template(obj: TablestoreTunnel, role: str, *volumes: Volume, **security: Any) -> Manifest:
    """Build the template of the driver's pod, without the user's part; `security` is added to that of the pod."""
    template = _pod_template(obj, DRIVER_CONTAINER, role, volumes, security)
    template["spec"]["terminationGracePeriodSeconds"] = 60
    return template


def executor_template(obj: TablestoreTunnel, role: str, *volumes: Volume, **security: Any) -> Manifest:
    """Build the template of the executors' pods, without the user's part; executors have no token."""
    template = _pod_template(obj, EXECUTOR_CONTAINER, role, volumes, security)
    template["spec"]["automountServiceAccountToken"] = False
    return template


def merged(obj: TablestoreTunnel, role: str, template: Manifest, user: Manifest) -> Manifest:
    """Return the template with the user's part over it; by its labels the operator finds the pods."""
    return overlay(overlay(template, user), {"metadata": {"labels": labels(obj.name, role)}})


def _pod_template(
    obj: TablestoreTunnel, container: str, role: str, volumes: tuple[Volume, ...], security: Mapping[str, Any]
) -> Manifest:
    """Return a pod template with the volumes and the interpreter; Spark fills in the rest."""
    main = {
        "name": container,
        "securityContext": _CONTAINER_SECURITY,
        "env": [{"name": "PYSPARK_PYTHON", "value": PYTHON}],
        "volumeMounts": [
            {"name": one.name, "mountPath": one.path} | ({"readOnly": True} if one.read_only else {}) for one in volumes
        ],
    }
    return {
        "metadata": {"labels": labels(obj.name, role)},
        "spec": {
            "securityContext": {**_POD_SECURITY, **security},
            "containers": [main],
            "volumes": [{"name": one.name, **one.source} for one in volumes],
        },
    }
