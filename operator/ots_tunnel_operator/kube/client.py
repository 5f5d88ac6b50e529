"""Client of the Kubernetes API with plain dictionaries: get, list, create, replace, apply, patch and delete.

The operator writes everything that it renders by server-side apply under its own field manager. Its caller checks
first that an existing object of the same name belongs to it (`NameConflict`).
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from typing import Self
from urllib.parse import urlencode

import aiohttp
from kubernetes.aio.client.api_client import ApiClient
from kubernetes.aio.client.configuration import Configuration
from kubernetes.aio.config import ConfigException, load_incluster_config, load_kube_config

from ots_tunnel.errors import ConfigError, TunnelError
from ots_tunnel_operator.kube.kinds import Kind, Manifest, kind_of
from ots_tunnel_operator.names import FIELD_MANAGER

#: Seconds that one call to the API server may take.
CALL_SECONDS = 30.0


class KubeError(TunnelError):
    """The API server refused a call or did not answer; `status` is 0 where no answer arrived."""

    def __init__(self, status: int, reason: str, message: str) -> None:
        super().__init__(status, reason, message)
        self.status = status
        self.reason = reason
        self.message = message

    def __str__(self) -> str:
        return f"{self.reason}: {self.message}"


class NameConflict(TunnelError):
    """An object with the required name exists but does not belong to the operator's object."""


class Kube:
    """A connection to one API server."""

    def __init__(self, client: ApiClient) -> None:
        self._client = client

    @classmethod
    async def connect(cls) -> Self:
        """Connect with the pod's service account, or outside of a cluster with the kubeconfig.

        Raises:
            ConfigError: neither exists.
        """
        configuration = Configuration()
        try:
            load_incluster_config(configuration)  # type: ignore[no-untyped-call]
        except ConfigException:
            try:
                # read here: the library reads KUBECONFIG only once, at its import
                await load_kube_config(  # type: ignore[no-untyped-call]
                    config_file=os.environ.get("KUBECONFIG") or None, client_configuration=configuration
                )
            except (ConfigException, OSError) as error:
                raise ConfigError(f"no cluster: neither a pod's account nor a kubeconfig: {error}") from error
        return cls(ApiClient(configuration))

    async def close(self) -> None:
        """Close the connections."""
        await self._client.close()  # type: ignore[no-untyped-call]

    async def get(self, kind: Kind, namespace: str, name: str) -> Manifest | None:
        """Read one object; None where the object or its kind does not exist."""
        try:
            return await self._call("GET", kind.path(namespace, name))
        except KubeError as error:
            if error.status == 404:
                return None
            raise

    async def list(self, kind: Kind, namespace: str, selector: str) -> list[Manifest]:
        """List the objects with these labels; empty where the kind is not installed."""
        try:
            answer = await self._call("GET", kind.path(namespace), query={"labelSelector": selector})
        except KubeError as error:
            if error.status == 404:
                return []
            raise
        return list(answer.get("items", ()))

    async def create(self, kind: Kind, manifest: Manifest) -> Manifest:
        """Create an object; an existing one raises a KubeError with status 409."""
        return await self._call("POST", kind.path(manifest["metadata"]["namespace"]), body=manifest)

    async def replace(self, kind: Kind, manifest: Manifest) -> Manifest:
        """Replace an object; when its resourceVersion is outdated, raises a KubeError with status 409."""
        metadata = manifest["metadata"]
        return await self._call("PUT", kind.path(metadata["namespace"], metadata["name"]), body=manifest)

    async def apply(self, manifest: Manifest) -> Manifest:
        """Apply a manifest server-side; fields that another manager changed are set back."""
        metadata = manifest["metadata"]
        query = {"fieldManager": FIELD_MANAGER, "force": "true"}
        path = kind_of(manifest).path(metadata["namespace"], metadata["name"])
        return await self._call("PATCH", path, manifest, query=query, content="application/apply-patch+yaml")

    async def patch(self, kind: Kind, namespace: str, name: str, change: Manifest, subresource: str = "") -> Manifest:
        """Send a merge patch: it replaces lists as a whole, and None removes a field."""
        path = kind.path(namespace, name, subresource)
        query = {"fieldManager": FIELD_MANAGER}
        return await self._call("PATCH", path, change, query=query, content="application/merge-patch+json")

    async def delete(self, kind: Kind, namespace: str, name: str, *, uid: str = "") -> None:
        """Delete an object in the background; a missing object is no error.

        Args:
            uid: where given, an object of the name with another uid raises a KubeError with status 409.
        """
        body: Manifest = {"apiVersion": "v1", "kind": "DeleteOptions", "propagationPolicy": "Background"}
        if uid:
            body["preconditions"] = {"uid": uid}
        try:
            await self._call("DELETE", kind.path(namespace, name), body)
        except KubeError as error:
            if error.status != 404:
                raise

    async def _call(
        self,
        method: str,
        path: str,
        body: Manifest | None = None,
        *,
        query: Mapping[str, str] | None = None,
        content: str = "application/json",
    ) -> Manifest:
        configuration = self._client.configuration
        url = f"{configuration.host}{path}" + (f"?{urlencode(query)}" if query else "")
        headers = {"Accept": "application/json", "Content-Type": content}
        await self._client.update_params_for_auth(headers, [], ["BearerToken"], path, method, body)
        timeout = aiohttp.ClientTimeout(total=CALL_SECONDS)
        try:
            answer = await self._client.rest_client.request(  # type: ignore[no-untyped-call]
                method, url, headers=headers, body=body, _request_timeout=timeout
            )
            data = await answer.read()
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            raise KubeError(0, type(error).__name__, f"{method} {path}: {error}") from error
        return _document(answer.status, data, f"{method} {path}")


def _document(status: int, data: bytes, call: str) -> Manifest:
    try:
        document = json.loads(data) if data else {}
    except ValueError:
        document = {"message": data[:200].decode(errors="replace")}
    if status >= 400:
        raise KubeError(status, str(document.get("reason") or status), str(document.get("message") or call))
    return dict(document)
