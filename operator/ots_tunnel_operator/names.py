"""Names, labels, annotations and paths of the Kubernetes objects that the operator creates.

An object's own name has at most 52 characters: `<name>-snapshot`, which the Spark operator puts in a label of its
pods, then stays below the 63 characters of a label value.
"""

from __future__ import annotations

from ots_tunnel_operator import GROUP

#: Longest name of an object; the CRD refuses longer ones.
MAX_NAME = 52

#: Finalizer that keeps an object until its deletion policy is carried out.
FINALIZER = f"{GROUP}/finalizer"
#: Field manager of everything the operator applies.
FIELD_MANAGER = "ots-tunnel-operator"
#: Client id of the operator's own reads of a tunnel; it never connects as a client (docs/architecture.md 3.1).
CLIENT_ID = "ots-tunnel-operator"
#: Reporting component of events.
COMPONENT = "ots-tunnel-operator"

#: Label with the name of the object that a child belongs to; part of the selector of its workers.
LABEL_NAME = f"{GROUP}/name"
#: Label with the role of a child: worker, snapshot or stream.
LABEL_ROLE = f"{GROUP}/role"
#: Hash of the document in the pod template of workers, or of a query's driver: a changed one restarts the pods.
ANNOTATION_CONFIG_HASH = f"{GROUP}/config-hash"
#: On the workers' Deployment: hash of the pod template that was applied; a changed template replaces the pods.
ANNOTATION_TEMPLATE_HASH = f"{GROUP}/template-hash"
#: On the workers' Deployment: generation of the object and hash of the part of its spec that makes the template.
ANNOTATION_MADE_FROM = f"{GROUP}/made-from"
#: On the workers' Deployment and ConfigMap: the place that they write files to (`manifests.files_place`).
ANNOTATION_FILES_PLACE = f"{GROUP}/files-place"
#: Of Kubernetes: pods with a lower cost go first where a ReplicaSet has to remove some.
ANNOTATION_DELETION_COST = "controller.kubernetes.io/pod-deletion-cost"
#: Hash of the manifest that was applied (`kube.drift`).
ANNOTATION_RENDERED_HASH = f"{GROUP}/rendered-hash"
#: Lease, as `namespace/name`, of the operator that serves an object (`kube.claims`).
ANNOTATION_OPERATOR = f"{GROUP}/operator"
#: When that operator took the object over from another one (`kube.claims`).
ANNOTATION_TAKEN = f"{GROUP}/operator-taken"
#: On the Lease: the namespaces that its holder serves (`kube.lease`).
ANNOTATION_SERVES = f"{GROUP}/serves"
#: What it says of a holder that serves all of them; of any other it lists them.
EVERY_NAMESPACE = "every namespace"
#: On the record of a snapshot: the table that its rows are copied into (`ots_tunnel.endpoint.table_identity`).
ANNOTATION_DESTINATION = f"{GROUP}/destination"
#: Number of refused records (status.refused.records) that a person has seen: the object is not Degraded by them.
ANNOTATION_ACCEPT_REFUSED = f"{GROUP}/accept-refused"
#: Place of files (`manifests.files_place`) that takes over from the recorded one, as a person has decided.
ANNOTATION_ACCEPT_PLACE = f"{GROUP}/accept-place"
#: Asks for a reset (`reset.request`).
ANNOTATION_RESET = f"{GROUP}/reset"
#: With the value `true`, releases a deleted object although its tunnel could not be deleted.
ANNOTATION_FORCE_DELETE = f"{GROUP}/force-delete"
#: In a Deployment's pod template, of `kubectl rollout restart`; the operator leaves it alone.
ANNOTATION_RESTARTED_AT = "kubectl.kubernetes.io/restartedAt"

#: Role label of worker pods.
ROLE_WORKER = "worker"
#: Role label of a snapshot's application and its pods.
ROLE_SNAPSHOT = "snapshot"
#: Role label of a query's application and its pods.
ROLE_STREAM = "stream"

#: Cost by which the operator names the next worker to go; the lowest one but one, so that it is told from a person's.
LEAVES_NEXT = "-2147483647"

#: Container of a worker pod; `workers.podTemplate` merges into it by this name.
WORKER_CONTAINER = "worker"
#: Folder of the worker's document in a worker pod.
CONFIG_DIRECTORY = "/etc/ots-tunnel"
#: File name of the worker's document in its ConfigMap and in the pod.
WORKER_FILE = "worker.yaml"
#: Folder below which the Secrets are mounted, in workers and Spark pods alike.
SECRETS_DIRECTORY = "/etc/ots/secrets"
#: Folder of a worker pod in which files for a bucket are filled, Python's default: the root file system is read-only.
SPOOL_DIRECTORY = "/tmp"
#: Port of metrics, probes and the list of channels in a worker pod.
WORKER_PORT = 8080

#: Environment variable with the image of worker pods where spec.workers.image is empty.
ENV_WORKER_IMAGE = "OTS_OPERATOR_WORKER_IMAGE"
#: Environment variable with the image of Spark pods where spec.spark.image is empty.
ENV_SPARK_IMAGE = "OTS_OPERATOR_SPARK_IMAGE"
#: Environment variable with the image of such pods where sink.files.format is Iceberg.
ENV_SPARK_ICEBERG_IMAGE = "OTS_OPERATOR_SPARK_ICEBERG_IMAGE"


def deployment_name(name: str) -> str:
    """Name of the Deployment with the workers of object `name`."""
    return name


def workers_name(name: str) -> str:
    """Name of the workers' ServiceAccount, PodDisruptionBudget, NetworkPolicy and PodMonitor."""
    return f"{name}-workers"


def config_name(name: str) -> str:
    """Name of the ConfigMap with the worker's document."""
    return f"{name}-config"


def snapshot_name(name: str) -> str:
    """Name of the snapshot's SparkApplication, and of the ConfigMap with its splits and progress."""
    return f"{name}-snapshot"


def snapshot_config_name(name: str) -> str:
    """Name of the ConfigMap with the document of the snapshot's driver."""
    return f"{name}-snapshot-config"


def query_name(name: str) -> str:
    """Name of the query's SparkApplication, and of the ConfigMap with the record of its progress."""
    return f"{name}-stream"


def query_config_name(name: str) -> str:
    """Name of the ConfigMap with the document of the query's driver."""
    return f"{name}-stream-config"


def spark_account_name(name: str) -> str:
    """Name of the Spark driver's ServiceAccount, Role and RoleBinding."""
    return f"{name}-spark"


def spark_executors_name(name: str) -> str:
    """Name of the ServiceAccount of Spark's executors, which has no rights."""
    return f"{name}-spark-executors"


def labels(name: str, role: str) -> dict[str, str]:
    """Labels of a child of object `name`."""
    return {
        "app.kubernetes.io/name": "ots-tunnel",
        "app.kubernetes.io/instance": name,
        "app.kubernetes.io/component": role,
        "app.kubernetes.io/managed-by": FIELD_MANAGER,
        LABEL_NAME: name,
        LABEL_ROLE: role,
    }


def identity_labels(name: str, role: str) -> dict[str, str]:
    """The labels by which a child without an owner belongs to object `name`."""
    return {LABEL_NAME: name, LABEL_ROLE: role}


def worker_selector(name: str) -> dict[str, str]:
    """Labels that select exactly the worker pods of object `name`."""
    return identity_labels(name, ROLE_WORKER)


def selector_text(name: str) -> str:
    """Worker selector as text, for the scale subresource (status.selector)."""
    return ",".join(f"{key}={value}" for key, value in sorted(worker_selector(name).items()))


def client_tag_prefix(uid: str) -> str:
    """First 8 characters of the object's uid, by which the operator recognizes the object's own workers among the
    clients of a tunnel (docs/architecture.md 3.7)."""
    return uid[:8]
