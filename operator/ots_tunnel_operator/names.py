"""Names, labels and annotations: everything a human or a selector finds our objects by.

The longest child name is `<name>-snapshot-config`; with at most 52 characters for the object's own name it, and the
pods of the Deployment, stay below the 63 of a label.
"""

from __future__ import annotations

from ots_tunnel_operator import GROUP

#: Longest name of an object; the CRD refuses longer ones.
MAX_NAME = 52

#: Holds an object until its deletion policy has been carried out.
FINALIZER = f"{GROUP}/finalizer"
#: Field manager of everything the operator applies.
FIELD_MANAGER = "ots-tunnel-operator"
#: Client id the operator reads the tunnel with; it never connects (docs/architecture.md 3).
CLIENT_ID = "ots-tunnel-operator"
#: Reporting component of events.
COMPONENT = "ots-tunnel-operator"

#: Name of the object a child belongs to; the selector of its workers.
LABEL_NAME = f"{GROUP}/name"
#: What a child is for: worker, snapshot.
LABEL_ROLE = f"{GROUP}/role"
#: Hash of the worker's document: a change rolls the pods.
ANNOTATION_CONFIG_HASH = f"{GROUP}/config-hash"
#: Hash of what we rendered, for children that others complete with defaults.
ANNOTATION_RENDERED_HASH = f"{GROUP}/rendered-hash"
#: Set to `true` on an object to release it although its tunnel could not be deleted.
ANNOTATION_FORCE_DELETE = f"{GROUP}/force-delete"

#: Role label of worker pods.
ROLE_WORKER = "worker"
#: Role label of a snapshot's pods and its application.
ROLE_SNAPSHOT = "snapshot"

#: Container of a worker pod; `workers.podTemplate` merges into it by this name.
WORKER_CONTAINER = "worker"
#: Folder of the rendered document.
CONFIG_DIRECTORY = "/etc/ots-tunnel"
#: File of the worker's document in ConfigMap and pod.
WORKER_FILE = "worker.yaml"
#: Folder below which the Secrets are mounted, in workers and Spark pods alike.
SECRETS_DIRECTORY = "/etc/ots/secrets"
#: Port of metrics, health and the channel list in a worker pod.
WORKER_PORT = 8080

#: Environment of the operator: image of workers whose object names none.
ENV_WORKER_IMAGE = "OTS_OPERATOR_WORKER_IMAGE"
#: The same for Spark applications.
ENV_SPARK_IMAGE = "OTS_OPERATOR_SPARK_IMAGE"


def deployment_name(name: str) -> str:
    """Deployment of the workers of object `name`."""
    return name


def config_name(name: str) -> str:
    """ConfigMap with the worker's document."""
    return f"{name}-config"


def snapshot_name(name: str) -> str:
    """SparkApplication of the snapshot, and the ConfigMap with its frozen splits and progress."""
    return f"{name}-snapshot"


def snapshot_config_name(name: str) -> str:
    """ConfigMap with the snapshot driver's document."""
    return f"{name}-snapshot-config"


def spark_account_name(name: str) -> str:
    """ServiceAccount, Role and RoleBinding of the Spark driver."""
    return f"{name}-spark"


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


def worker_selector(name: str) -> dict[str, str]:
    """Labels that select the worker pods of object `name` and nothing else."""
    return {LABEL_NAME: name, LABEL_ROLE: ROLE_WORKER}


def selector_text(name: str) -> str:
    """The selector as the scale subresource shows it (status.selector)."""
    return ",".join(f"{key}={value}" for key, value in sorted(worker_selector(name).items()))


def client_tag_prefix(uid: str) -> str:
    """First 8 characters of the object's uid: workers with it in their client tag are ours (docs/architecture.md 3)."""
    return uid[:8]
