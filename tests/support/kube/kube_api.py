"""Requests to an API server by path: get, list, create, patch, delete, without the cost of a kubectl process each."""

from __future__ import annotations

import http.client
import json
import ssl
import time
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlsplit

import yaml

Document = dict[str, Any]

#: Seconds for which a call to a busy server is repeated.
_PATIENCE = 20.0

#: Kinds that the operator creates, with their paths.
KINDS: dict[str, str] = {
    "TablestoreTunnel": "apis/ots-tunnel.dev/v1alpha1/{}/tablestoretunnels",
    "ConfigMap": "api/v1/{}/configmaps",
    "Secret": "api/v1/{}/secrets",
    "Pod": "api/v1/{}/pods",
    "Event": "api/v1/{}/events",
    "Service": "api/v1/{}/services",
    "ServiceAccount": "api/v1/{}/serviceaccounts",
    "PersistentVolumeClaim": "api/v1/{}/persistentvolumeclaims",
    "Deployment": "apis/apps/v1/{}/deployments",
    "ReplicaSet": "apis/apps/v1/{}/replicasets",
    "PodDisruptionBudget": "apis/policy/v1/{}/poddisruptionbudgets",
    "Role": "apis/rbac.authorization.k8s.io/v1/{}/roles",
    "RoleBinding": "apis/rbac.authorization.k8s.io/v1/{}/rolebindings",
    "NetworkPolicy": "apis/networking.k8s.io/v1/{}/networkpolicies",
    "PodMonitor": "apis/monitoring.coreos.com/v1/{}/podmonitors",
    "SparkApplication": "apis/sparkoperator.k8s.io/v1beta2/{}/sparkapplications",
}


class Refused(Exception):
    """The API server answered with an error."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(f"{status}: {message}")
        self.status = status


class KubeApi:
    """One API server, with the token of its kubeconfig; each call opens its own connection."""

    def __init__(self, kubeconfig: Path) -> None:
        document = yaml.safe_load(kubeconfig.read_text())
        cluster = document["clusters"][0]["cluster"]
        self._address = urlsplit(cluster["server"]).netloc
        self._token = document["users"][0]["user"]["token"]
        self._tls = ssl.create_default_context(cafile=cluster["certificate-authority"])

    def get(self, kind: str, namespace: str, name: str) -> Document | None:
        """One object, or None if it does not exist."""
        return self.at(f"{_path(kind, namespace)}/{quote(name)}")

    def list(self, kind: str, namespace: str) -> list[Document]:
        """Every object of a kind; empty if the kind is not installed."""
        try:
            return list(self._call("GET", _path(kind, namespace))["items"])
        except Refused as error:
            if error.status == 404:
                return []
            raise

    def create(self, document: Document, *, kind: str = "") -> Document:
        """Create an object in its namespace."""
        return self._call("POST", _path(kind or document["kind"], document["metadata"]["namespace"]), document)

    def create_namespace(self, name: str) -> None:
        """Create a namespace."""
        self._call("POST", "/api/v1/namespaces", {"metadata": {"name": name}})

    def patch(self, kind: str, namespace: str, name: str, change: Document, subresource: str = "") -> Document:
        """Merge-patch an object or a subresource of it."""
        path = f"{_path(kind, namespace)}/{quote(name)}" + (f"/{subresource}" if subresource else "")
        return self.patch_at(path, change)

    def at(self, path: str) -> Document | None:
        """What is at a path, or None if nothing is."""
        try:
            return self._call("GET", path)
        except Refused as error:
            if error.status == 404:
                return None
            raise

    def patch_at(self, path: str, change: Document) -> Document:
        """Merge-patch what is at a path."""
        return self._call("PATCH", path, change, "application/merge-patch+json")

    def delete(self, kind: str, namespace: str, name: str) -> None:
        """Delete an object, if it exists."""
        try:
            self._call("DELETE", f"{_path(kind, namespace)}/{quote(name)}")
        except Refused as error:
            if error.status != 404:
                raise

    def _call(
        self, method: str, path: str, document: Document | None = None, content: str = "application/json"
    ) -> Document:
        give_up = time.monotonic() + _PATIENCE
        while True:
            try:
                return self._once(method, path, document, content)
            except Refused as error:
                # a kind that was installed a moment ago, or a busy server
                if error.status != 429 or time.monotonic() > give_up:
                    raise
                time.sleep(0.2)

    def _once(self, method: str, path: str, document: Document | None, content: str) -> Document:
        connection = http.client.HTTPSConnection(self._address, timeout=30, context=self._tls)
        headers = {"Authorization": f"Bearer {self._token}", "Accept": "application/json", "Content-Type": content}
        try:
            connection.request(method, path, None if document is None else json.dumps(document), headers)
            answer = connection.getresponse()
            body = answer.read()
        finally:
            connection.close()
        if answer.status >= 300:
            raise Refused(answer.status, body[:500].decode(errors="replace"))
        found: Document = json.loads(body)
        return found


def _path(kind: str, namespace: str) -> str:
    return "/" + KINDS[kind].format(f"namespaces/{quote(namespace)}")
