"""Client of the Kubernetes API with plain dictionaries; it implements `kube.cluster.Cluster` over HTTP.

The operator writes everything that it renders by server-side apply under its own field manager. Its caller checks
first that an existing object of the same name belongs to it (`NameConflict`).

At most CALLS calls are under way at once, watches apart. Waiting for one's turn does not count against a call's time.
Where the API server asks for a pause (Retry-After), it is made outside of that turn, up to PATIENCE_SECONDS in all, and
the call is repeated: after 429 any call, after another error only a GET, because a write may have been carried out.
Who sends such a call, or opens such a watch, again waits as well, or is refused here where the pause is longer.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Callable, Mapping
from typing import Self, cast
from urllib.parse import urlencode, urlsplit
from urllib.request import getproxies, proxy_bypass

import aiohttp
from kubernetes.aio.client.api_client import ApiClient
from kubernetes.aio.client.configuration import Configuration
from kubernetes.aio.config import ConfigException, load_incluster_config, load_kube_config

from ots_tunnel.errors import ConfigError
from ots_tunnel_operator.kube.answer import change_of, cut_off, document_of, pause_of
from ots_tunnel_operator.kube.cluster import Change, Listing, Selection
from ots_tunnel_operator.kube.errors import KubeError, is_absent
from ots_tunnel_operator.kube.kinds import Kind, Manifest, kind_of
from ots_tunnel_operator.kube.pauses import Pauses
from ots_tunnel_operator.names import FIELD_MANAGER

#: Seconds that one call to the API server may take.
CALL_SECONDS = 30.0
#: Calls under way at once.
CALLS = 32
#: Seconds of pauses that the API server may ask of one call.
PATIENCE_SECONDS = 20.0
#: Seconds that the connection of a watch may take, and by which its end may be late.
CONNECT_SECONDS = 10.0
#: Objects of one page of a list, which are in memory at once: as Python objects a Deployment takes 50 kB.
PAGE = 100


class Kube:
    """A connection to one API server.

    Args:
        client: of the library.
        may_write: asked right before every write; where it says no, nothing is sent. None allows all.
        refused: called with HTTP method and status, or name of the error, of each request that fails.
    """

    def __init__(
        self,
        client: ApiClient,
        may_write: Callable[[], bool] | None = None,
        refused: Callable[[str, str], None] = lambda method, code: None,
    ) -> None:
        self._client = client
        self._may_write = may_write
        self._refused = refused
        self._turns = asyncio.Semaphore(CALLS)
        self._pauses = Pauses()

    @classmethod
    async def connect(
        cls,
        may_write: Callable[[], bool] | None = None,
        refused: Callable[[str, str], None] = lambda method, code: None,
    ) -> Self:
        """Connect with the pod's service account, or outside of a cluster with the kubeconfig; arguments as above.

        Raises:
            ConfigError: neither exists.
        """
        configuration = Configuration()
        # watches hold connections; `_turns` bounds the others
        configuration.connection_pool_maxsize = 0
        try:
            load_incluster_config(configuration)  # type: ignore[no-untyped-call]  # the library has no types here
        except ConfigException:
            try:
                # read here: the library reads KUBECONFIG only once, at its import
                await load_kube_config(  # type: ignore[no-untyped-call]  # the library has no types here
                    config_file=os.environ.get("KUBECONFIG") or None, client_configuration=configuration
                )
            except (ConfigException, OSError) as error:
                raise ConfigError(f"no cluster: neither a pod's account nor a kubeconfig: {error}") from error
        configuration.proxy = configuration.proxy or _environment_proxy(configuration.host)
        # otherwise aiohttp looks for a proxy and for a .netrc at each call, in two threads one after the other
        configuration.client_session_kwargs = {"trust_env": False}
        return cls(ApiClient(configuration), may_write, refused)

    async def close(self) -> None:
        """Close the connections."""
        await self._client.close()  # type: ignore[no-untyped-call]  # the library has no types here

    async def get(self, kind: Kind, namespace: str, name: str) -> Manifest | None:
        """Read one object; None where it, or an optional kind, does not exist."""
        try:
            return await self._call("GET", kind.path(namespace, name))
        except KubeError as error:
            if is_absent(error, kind):
                return None
            raise

    async def stored_version(self, kind: Kind, namespace: str, name: str) -> str:
        """The resourceVersion of one object; empty where it, or an optional kind, does not exist."""
        found = await self.get(kind, namespace, name)
        return "" if found is None else str(found["metadata"].get("resourceVersion") or "")

    async def list(self, kind: Kind, namespace: str, selector: str) -> list[Manifest]:
        """List the objects with these labels; empty where an optional kind is not installed."""
        try:
            answer = await self._call("GET", kind.path(namespace), query={"labelSelector": selector})
        except KubeError as error:
            if is_absent(error, kind):
                return []
            raise
        return list(answer.get("items", ()))

    async def listing(self, selection: Selection, rest: str = "") -> Listing:
        """List a selection, a page at a time; a kind that is not served raises KindMissing."""
        query = _query(selection) | {"limit": str(PAGE)} | ({"continue": rest} if rest else {})
        answer = await self._call("GET", selection.kind.path(selection.namespace), query=query)
        metadata = answer.get("metadata") or {}
        version, rest = (str(metadata.get(name) or "") for name in ("resourceVersion", "continue"))
        return Listing(tuple(answer.get("items", ())), version, rest)

    async def watch(self, selection: Selection, since: str, seconds: float) -> AsyncIterator[Change]:
        """The changes after a resourceVersion, for about `seconds`; the first one is a bookmark of that version.

        Raises:
            KubeError: the API server refused or ended the watch; with status 410 only a new list helps.
        """
        query = _query(selection) | {"watch": "true", "allowWatchBookmarks": "true"}
        query |= {"timeoutSeconds": str(int(seconds))} | ({"resourceVersion": since} if since else {})
        path = selection.kind.path(selection.namespace)
        timeout = aiohttp.ClientTimeout(
            total=seconds + 2 * CONNECT_SECONDS, sock_connect=CONNECT_SECONDS, sock_read=seconds + CONNECT_SECONDS
        )
        answer, call = None, f"WATCH {path}"
        await self._pauses.end(call)
        try:
            answer = await self._send("GET", path, None, query, "application/json", timeout)
            if answer.status >= 400:
                self._refused("WATCH", str(answer.status))
                self._pauses.ask(call, pause_of(answer) or 0.0)
                document_of(answer.status, await answer.read(), f"GET {path}")
            yield Change("BOOKMARK", {"metadata": {"resourceVersion": since}})
            rest = b""
            async for chunk in answer.content.iter_any():
                *lines, rest = (rest + chunk).split(b"\n")
                for line in lines:
                    yield change_of(line, f"watch of {path}")
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            self._refused("WATCH", type(error).__name__)
            raise KubeError(0, type(error).__name__, f"watch of {path}: {error}") from error
        finally:
            if answer is not None:
                cut_off(answer)

    async def create(self, kind: Kind, manifest: Manifest, *, dry_run: bool = False) -> Manifest:
        """Create an object, or with `dry_run` only have it checked; an existing one raises a KubeError (409)."""
        query = {"dryRun": "All"} if dry_run else None
        return await self._call("POST", kind.path(manifest["metadata"]["namespace"]), manifest, query=query)

    async def replace(self, kind: Kind, manifest: Manifest) -> Manifest:
        """Replace an object; when its resourceVersion is outdated, raises a KubeError with status 409."""
        metadata = manifest["metadata"]
        return await self._call("PUT", kind.path(metadata["namespace"], metadata["name"]), body=manifest)

    async def apply(self, manifest: Manifest) -> Manifest:
        """Apply a manifest server-side; fields that another manager changed are set back."""
        return await self._apply(manifest, {})

    async def try_apply(self, manifest: Manifest) -> None:
        """Have the API server judge an apply, and store nothing."""
        await self._apply(manifest, {"dryRun": "All"})

    async def _apply(self, manifest: Manifest, options: Mapping[str, str]) -> Manifest:
        metadata = manifest["metadata"]
        query = {"fieldManager": FIELD_MANAGER, "force": "true", **options}
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
            if not is_absent(error, kind):
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
        call, left = f"{method} {path}", PATIENCE_SECONDS
        while True:
            wait = self._pauses.left(call)
            if wait > left:
                message = f"{call}: the API server has asked for a pause, {wait:.0f} s of it are left"
                raise KubeError(429, "TooManyRequests", message)
            if wait:
                left -= wait
                await asyncio.sleep(wait)
                # it may have grown meanwhile
                continue
            async with self._turns:
                status, data, pause = await self._once(method, path, body, query, content)
            if pause is None:
                return document_of(status, data, call)
            self._pauses.ask(call, pause)
            if pause > left or not (status == 429 or method == "GET"):
                return document_of(status, data, call)

    async def _once(
        self, method: str, path: str, body: Manifest | None, query: Mapping[str, str] | None, content: str
    ) -> tuple[int, bytes, float | None]:
        """Status and body of one try, and the pause that the API server asks for."""
        if method != "GET" and self._may_write is not None and not self._may_write():
            raise KubeError(0, "NotLeading", f"{method} {path}: the lease is not held, nothing was sent")
        try:
            answer = await self._send(method, path, body, query, content, aiohttp.ClientTimeout(total=CALL_SECONDS))
            data = await answer.read()
            if answer.status >= 400:
                self._refused(method, str(answer.status))
            return answer.status, data, pause_of(answer)
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            self._refused(method, type(error).__name__)
            raise KubeError(0, type(error).__name__, f"{method} {path}: {error}") from error

    async def _send(
        self,
        method: str,
        path: str,
        body: Manifest | None,
        query: Mapping[str, str] | None,
        content: str,
        timeout: aiohttp.ClientTimeout,
    ) -> aiohttp.ClientResponse:
        configuration = self._client.configuration
        url = f"{configuration.host}{path}" + (f"?{urlencode(query)}" if query else "")
        headers = {"Accept": "application/json", "Content-Type": content}
        await self._client.update_params_for_auth(headers, [], ["BearerToken"], path, method, body)
        answer = await self._client.rest_client.request(  # type: ignore[no-untyped-call]  # the library has no types here
            method, url, headers=headers, body=body, _request_timeout=timeout
        )
        return cast(aiohttp.ClientResponse, answer.response)


def _environment_proxy(host: str) -> str | None:
    """The proxy that the environment names for an address (HTTPS_PROXY, HTTP_PROXY), unless NO_PROXY excludes it."""
    address = urlsplit(host)
    return None if proxy_bypass(address.hostname or "") else getproxies().get(address.scheme)


def _query(selection: Selection) -> dict[str, str]:
    field = f"metadata.name={selection.name}" if selection.name else ""
    selectors = {"labelSelector": selection.labels, "fieldSelector": field}
    return {name: value for name, value in selectors.items() if value}
