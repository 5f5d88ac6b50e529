"""ServiceAccount, Role and RoleBinding of a Spark driver, each named `<name>-spark`, and the executors' account.

Executors read and write; they never call the API server. So they have an account of their own without any
right, whose token is not in their pods. `of` is the role label of what they are for. Pure.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from ots_tunnel_operator.api.object import TablestoreTunnel
from ots_tunnel_operator.kube.kinds import Manifest
from ots_tunnel_operator.manifests.children import child
from ots_tunnel_operator.manifests.worker_account import image_secrets
from ots_tunnel_operator.names import ROLE_SNAPSHOT, spark_account_name, spark_executors_name

_RBAC: Final = "rbac.authorization.k8s.io/v1"
_DRIVER_RESOURCES: Final = ["pods", "services", "configmaps", "persistentvolumeclaims"]
_DRIVER_VERBS: Final = ["get", "list", "watch", "create", "update", "patch", "delete", "deletecollection"]


def service_account(obj: TablestoreTunnel, of: str = ROLE_SNAPSHOT, pull_secrets: Sequence[str] = ()) -> Manifest:
    """Build ServiceAccount `<name>-spark` of the driver's pod; `pull_secrets` as for workers (`worker_account`)."""
    return child(obj, "v1", "ServiceAccount", spark_account_name(obj.name), of) | image_secrets(pull_secrets)


def executors_account(obj: TablestoreTunnel, of: str = ROLE_SNAPSHOT, pull_secrets: Sequence[str] = ()) -> Manifest:
    """Build ServiceAccount `<name>-spark-executors` of the executors' pods, which no Role names."""
    account = child(obj, "v1", "ServiceAccount", spark_executors_name(obj.name), of)
    return account | {"automountServiceAccountToken": False} | image_secrets(pull_secrets)


def role(obj: TablestoreTunnel, of: str = ROLE_SNAPSHOT) -> Manifest:
    """Build Role `<name>-spark`: the driver runs executors and records progress (docs/architecture.md 6.4)."""
    rules = [{"apiGroups": [""], "resources": _DRIVER_RESOURCES, "verbs": _DRIVER_VERBS}]
    return child(obj, _RBAC, "Role", spark_account_name(obj.name), of) | {"rules": rules}


def role_binding(obj: TablestoreTunnel, of: str = ROLE_SNAPSHOT) -> Manifest:
    """Build RoleBinding `<name>-spark`, which grants the Role to the ServiceAccount."""
    name = spark_account_name(obj.name)
    return child(obj, _RBAC, "RoleBinding", name, of) | {
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": name},
        "subjects": [{"kind": "ServiceAccount", "name": name, "namespace": obj.namespace}],
    }
