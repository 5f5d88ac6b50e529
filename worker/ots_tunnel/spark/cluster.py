"""Access of the driver's pod to the ConfigMaps of its namespace.

The driver pod calls the API server with the token of its service account and the standard library only: an image
for Spark needs no Kubernetes client for three calls.
"""

from __future__ import annotations

import http.client
import json
import os
import ssl
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote, urlsplit

from ots_tunnel.errors import ConfigError, ConnectionLost, OwnershipLost, ServerUnavailable, ServiceError

#: Where Kubernetes mounts the service account's token and the API server's certificate.
SERVICE_ACCOUNT: Final = Path("/var/run/secrets/kubernetes.io/serviceaccount")

#: Seconds a call to the API server may take; own choice, half of the API server's own limit of 60.
CALL_TIMEOUT: Final = 30.0


@dataclass(frozen=True, slots=True)
class ClusterAccess:
    """Address and credentials of the API server; the token is read for every call, because it rotates."""

    url: str
    token_file: Path
    ca_file: Path | None = None


def in_cluster() -> ClusterAccess:
    """Access from inside a pod with a service account.

    Raises:
        ConfigError: this process does not run in a pod, or the pod has no token of a service account.
    """
    host, port = os.environ.get("KUBERNETES_SERVICE_HOST"), os.environ.get("KUBERNETES_SERVICE_PORT", "443")
    if not host:
        raise ConfigError("KUBERNETES_SERVICE_HOST is not set: a driver with a record of progress runs in a pod")
    token = SERVICE_ACCOUNT / "token"
    if not token.exists():
        raise ConfigError(f"{token}: missing: the driver's pod needs a service account")
    literal = f"[{host}]" if ":" in host else host
    return ClusterAccess(f"https://{literal}:{port}", token, SERVICE_ACCOUNT / "ca.crt")


class ConfigMaps:
    """Three calls on the ConfigMaps of one namespace."""

    def __init__(self, access: ClusterAccess, namespace: str) -> None:
        self._access = access
        self._path = f"/api/v1/namespaces/{quote(namespace)}/configmaps"

    def get(self, name: str) -> dict[str, Any] | None:
        """The ConfigMap; None if it does not exist."""
        status, body = self._call("GET", f"{self._path}/{quote(name)}")
        return None if status == 404 else _expect(status, body)

    def make(self, config_map: dict[str, Any]) -> None:
        """Make a ConfigMap; one of its name stays as it is."""
        status, body = self._call("POST", self._path, config_map)
        if status != 409:
            _expect(status, body)

    def replace(self, config_map: dict[str, Any]) -> dict[str, Any]:
        """Replace a ConfigMap if its resourceVersion is still the stored one; return it as stored.

        Raises:
            OwnershipLost: it was changed or deleted meanwhile.
        """
        name = config_map["metadata"]["name"]
        return _expect(*self._call("PUT", f"{self._path}/{quote(name)}", config_map))

    def _call(self, method: str, path: str, body: dict[str, Any] | None = None) -> tuple[int, bytes]:
        try:
            with closing(self._connection()) as connection:
                connection.request(method, path, None if body is None else json.dumps(body), self._headers())
                answer = connection.getresponse()
                return answer.status, answer.read()
        except (OSError, http.client.HTTPException) as error:
            # also of the files of token and authorities, which the kubelet replaces
            raise ConnectionLost(f"{method} {path}: {type(error).__name__}: {error}") from error

    def _headers(self) -> dict[str, str]:
        return {
            "Authorization": f"Bearer {self._access.token_file.read_text().strip()}",
            "Accept": "application/json",
            "Content-Type": "application/json",
        }

    def _connection(self) -> http.client.HTTPConnection:
        address = urlsplit(self._access.url)
        if address.scheme == "http":
            return http.client.HTTPConnection(address.netloc, timeout=CALL_TIMEOUT)
        context = ssl.create_default_context(cafile=self._access.ca_file)
        return http.client.HTTPSConnection(address.netloc, timeout=CALL_TIMEOUT, context=context)


def _expect(status: int, body: bytes) -> dict[str, Any]:
    document: dict[str, Any] = json.loads(body) if body.startswith(b"{") else {}
    if status < 300:
        return document
    message = document.get("message") or body[:200].decode(errors="replace")
    if status in (404, 409):
        raise OwnershipLost(f"progress record: {message}")
    error = ServerUnavailable if status >= 500 or status == 429 else ServiceError
    raise error(str(document.get("reason", status)), message, "", status)
