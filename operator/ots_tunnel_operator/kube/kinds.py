"""Kinds of objects that the operator reads or writes, with their paths in the Kubernetes API. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

from ots_tunnel_operator import API_VERSION, KIND, PLURAL

#: A Kubernetes object as decoded JSON.
Manifest = dict[str, Any]
#: A resourceVersion that no object has, because versions begin later: an apply that names it creates an object, and is
#: refused (409) where one exists.
NO_VERSION = "1"


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of object: API version, kind and plural name; `optional` says that a cluster may do without it."""

    api_version: str
    kind: str
    plural: str
    optional: bool = False

    @property
    def root(self) -> str:
        """Path of the group and version."""
        return f"/api/{self.api_version}" if "/" not in self.api_version else f"/apis/{self.api_version}"

    def path(self, namespace: str, name: str = "", subresource: str = "") -> str:
        """Path of one object; without a name, of the collection; without a namespace, of that of every namespace."""
        # no part may lead to another path, such as a name with a slash
        parts = (
            [self.root, "namespaces", quote(namespace, safe=""), self.plural] if namespace else [self.root, self.plural]
        )
        parts += [quote(part, safe="") for part in (name, subresource) if part]
        return "/".join(parts)


TUNNEL = Kind(API_VERSION, KIND, PLURAL)
SECRET = Kind("v1", "Secret", "secrets")
CONFIG_MAP = Kind("v1", "ConfigMap", "configmaps")
POD = Kind("v1", "Pod", "pods")
EVENT = Kind("v1", "Event", "events")
SERVICE_ACCOUNT = Kind("v1", "ServiceAccount", "serviceaccounts")
DEPLOYMENT = Kind("apps/v1", "Deployment", "deployments")
DISRUPTION_BUDGET = Kind("policy/v1", "PodDisruptionBudget", "poddisruptionbudgets")
NETWORK_POLICY = Kind("networking.k8s.io/v1", "NetworkPolicy", "networkpolicies")
ROLE = Kind("rbac.authorization.k8s.io/v1", "Role", "roles")
ROLE_BINDING = Kind("rbac.authorization.k8s.io/v1", "RoleBinding", "rolebindings")
LEASE = Kind("coordination.k8s.io/v1", "Lease", "leases")
#: A cluster may do without it. It does not count as optional all the same: an object that asks for a PodMonitor has to
#: learn that the kind is missing, and not that there is none yet.
POD_MONITOR = Kind("monitoring.coreos.com/v1", "PodMonitor", "podmonitors")
SPARK_APPLICATION = Kind("sparkoperator.k8s.io/v1beta2", "SparkApplication", "sparkapplications", optional=True)

KINDS: Mapping[tuple[str, str], Kind] = {
    (kind.api_version, kind.kind): kind
    for kind in (
        TUNNEL,
        SECRET,
        CONFIG_MAP,
        POD,
        EVENT,
        SERVICE_ACCOUNT,
        DEPLOYMENT,
        DISRUPTION_BUDGET,
        NETWORK_POLICY,
        ROLE,
        ROLE_BINDING,
        LEASE,
        POD_MONITOR,
        SPARK_APPLICATION,
    )
}


def kind_of(manifest: Mapping[str, Any]) -> Kind:
    """Return the kind of a rendered object.

    Raises:
        KeyError: the operator does not handle this kind.
    """
    return KINDS[manifest["apiVersion"], manifest["kind"]]
