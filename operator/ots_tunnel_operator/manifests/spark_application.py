"""The application that copies existing rows, for the Spark operator. Pure.

Nothing needs the Spark operator's webhook: every default is set, and volumes are in whole pod templates
(docs/architecture.md 6.4). Reading what became of it: `spark_state`.
"""

from __future__ import annotations

import hashlib
import json
from typing import Final

from ots_tunnel_operator.api.object import TablestoreTunnel
from ots_tunnel_operator.kube.kinds import Manifest
from ots_tunnel_operator.manifests.children import child
from ots_tunnel_operator.manifests.snapshot_document import SNAPSHOT_FILE
from ots_tunnel_operator.names import (
    ANNOTATION_RENDERED_HASH,
    ROLE_SNAPSHOT,
    SECRETS_DIRECTORY,
    labels,
    snapshot_config_name,
    snapshot_name,
    spark_account_name,
)

SPARK_VERSION: Final = "4.2.1"
#: Where the driver's pod has its document.
SNAPSHOT_DIRECTORY: Final = "/etc/ots"
#: Driver program and interpreter in our Spark image (worker/image/Containerfile).
DRIVER_PROGRAM: Final = "local:///opt/ots/snapshot.py"
PYTHON: Final = "/opt/ots-tunnel/bin/python3"
#: The Spark operator looks for containers of exactly these names.
DRIVER_CONTAINER: Final = "spark-kubernetes-driver"
EXECUTOR_CONTAINER: Final = "spark-kubernetes-executor"
#: Attempts after the first one; a driver resumes with the splits that are not recorded.
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
    # Spark 4.2 creates a NetworkPolicy at submission, and the chart of the Spark operator grants no one the right to.
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
    manifest = child(obj, "sparkoperator.k8s.io/v1beta2", "SparkApplication", snapshot_name(obj.name), ROLE_SNAPSHOT)
    digest = hashlib.sha256(json.dumps(spec, sort_keys=True).encode()).hexdigest()[:16]
    manifest["metadata"]["annotations"] = {ANNOTATION_RENDERED_HASH: digest}
    return manifest | {"spec": spec}


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
