"""The seam to the API server in memory: lists and watches with resource versions, lost events and refusals."""

from __future__ import annotations

import asyncio
import copy
from collections.abc import AsyncIterator, Iterator
from typing import Any

from ots_tunnel_operator.kube.cluster import Change, Listing, Selection
from ots_tunnel_operator.kube.errors import KubeError
from ots_tunnel_operator.kube.kinds import Kind, Manifest, kind_of

Place = tuple[Kind, str, str]


class ClusterModel:
    """Implements `kube.cluster.Cluster`; a test changes it by `put`, `remove` and `lose`.

    `failure` is raised by every list and every watch that starts, and ends the ones that run.
    """

    def __init__(self) -> None:
        self.objects: dict[Place, Manifest] = {}
        self.calls: list[tuple[str, str]] = []
        """(verb, plural) of every call."""
        self._log: list[tuple[int, Kind, Change]] = []
        self._version = 1
        self._oldest = 0
        self._changed = asyncio.Event()
        self.failure: KubeError | None = None

    @property
    def version(self) -> str:
        """The resourceVersion of the last change."""
        return str(self._version)

    def put(self, kind: Kind, manifest: Any) -> Manifest:
        """Store an object and report it to the watches."""
        metadata = manifest["metadata"]
        place = (kind, metadata["namespace"], metadata["name"])
        type_ = "MODIFIED" if place in self.objects else "ADDED"
        self._version += 1
        stored = copy.deepcopy(dict(manifest))
        stored["metadata"] = {**metadata, "resourceVersion": self.version}
        self.objects[place] = stored
        self._report(kind, Change(type_, stored))
        return copy.deepcopy(stored)

    def remove(self, kind: Kind, namespace: str, name: str) -> None:
        """Delete an object and report it to the watches."""
        self._version += 1
        gone = self.objects.pop((kind, namespace, name))
        gone["metadata"]["resourceVersion"] = self.version
        self._report(kind, Change("DELETED", gone))

    def lose(self, kind: Kind, namespace: str, name: str) -> None:
        """Delete an object without an event: every watch is too old, and has to list again."""
        self._version += 1
        del self.objects[kind, namespace, name]
        self._oldest = self._version
        self._wake()

    def fail(self, failure: KubeError | None) -> None:
        """Let every list and watch fail from now on, or no longer."""
        self.failure = failure
        self._wake()

    async def get(self, kind: Kind, namespace: str, name: str) -> Manifest | None:
        self.calls.append(("get", kind.plural))
        return copy.deepcopy(self.objects.get((kind, namespace, name)))

    async def stored_version(self, kind: Kind, namespace: str, name: str) -> str:
        found = await self.get(kind, namespace, name)
        return "" if found is None else str(found["metadata"].get("resourceVersion") or "")

    async def list(self, kind: Kind, namespace: str, selector: str) -> list[Manifest]:
        return list((await self.listing(Selection(kind, namespace, labels=selector))).items)

    async def listing(self, selection: Selection, rest: str = "") -> Listing:
        self.calls.append(("list", selection.kind.plural))
        if self.failure is not None:
            raise self.failure
        return Listing(tuple(self._selected(selection)), self.version)

    async def watch(self, selection: Selection, since: str, seconds: float) -> AsyncIterator[Change]:
        self.calls.append(("watch", selection.kind.plural))
        loop, position = asyncio.get_running_loop(), int(since or self._version)
        end = loop.time() + seconds
        accepted = False
        while loop.time() < end:
            if self.failure is not None:
                raise self.failure
            if position < self._oldest:
                raise KubeError(410, "Expired", "too old resource version")
            if not accepted:
                accepted = True
                yield Change("BOOKMARK", {"metadata": {"resourceVersion": since}})
                for item in () if since else self._selected(selection):
                    yield Change("ADDED", item)
            for version, kind, change in self._log:
                if version > position and kind == selection.kind and _fits(change.object, selection):
                    yield Change(change.type, copy.deepcopy(change.object))
            position = self._version
            try:
                async with asyncio.timeout_at(end):
                    await self._changed.wait()
            except TimeoutError:
                yield Change("BOOKMARK", {"metadata": {"resourceVersion": str(position)}})

    async def create(self, kind: Kind, manifest: Manifest) -> Manifest:
        self.calls.append(("create", kind.plural))
        return self.put(kind, manifest)

    async def replace(self, kind: Kind, manifest: Manifest) -> Manifest:
        self.calls.append(("replace", kind.plural))
        return self.put(kind, manifest)

    async def apply(self, manifest: Manifest) -> Manifest:
        self.calls.append(("apply", kind_of(manifest).plural))
        return self.put(kind_of(manifest), manifest)

    async def try_apply(self, manifest: Manifest) -> None:
        self.calls.append(("try_apply", kind_of(manifest).plural))

    async def patch(self, kind: Kind, namespace: str, name: str, change: Manifest, subresource: str = "") -> Manifest:
        self.calls.append(("patch", kind.plural))
        found = self.objects.get((kind, namespace, name))
        if found is None:
            raise KubeError(404, "NotFound", f"{kind.plural} {name!r} not found")
        expected = (change.get("metadata") or {}).get("resourceVersion")
        if expected and expected != found["metadata"]["resourceVersion"]:
            raise KubeError(409, "Conflict", "the object has been modified")
        parts = {key: value for key, value in change.items() if key != "metadata"}
        return self.put(kind, {**found, **{key: {**(found.get(key) or {}), **value} for key, value in parts.items()}})

    async def delete(self, kind: Kind, namespace: str, name: str, *, uid: str = "") -> None:
        self.calls.append(("delete", kind.plural))
        if (kind, namespace, name) in self.objects:
            self.remove(kind, namespace, name)

    async def close(self) -> None:
        pass

    def _selected(self, selection: Selection) -> Iterator[Manifest]:
        for (kind, _, _), item in tuple(self.objects.items()):
            if kind == selection.kind and _fits(item, selection):
                yield copy.deepcopy(item)

    def _report(self, kind: Kind, change: Change) -> None:
        self._log.append((self._version, kind, Change(change.type, copy.deepcopy(change.object))))
        self._wake()

    def _wake(self) -> None:
        self._changed.set()
        self._changed = asyncio.Event()


def _fits(item: Manifest, selection: Selection) -> bool:
    metadata = item["metadata"]
    if selection.namespace not in ("", metadata["namespace"]):
        return False
    if selection.name not in ("", metadata["name"]):
        return False
    labels = metadata.get("labels") or {}
    return all(
        (label in labels if "=" not in label else labels.get(label.split("=")[0]) == label.split("=")[1])
        for label in filter(None, selection.labels.split(","))
    )
