"""The seam to the API server: the only calls by which the operator reads or changes a cluster.

`kube.client.Kube` is the implementation over HTTP. Whatever replaces the cluster, such as a model for tests in virtual
time, implements `Cluster` and nothing else (docs/architecture.md 6.6).
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Literal, Protocol

from ots_tunnel_operator.kube.kinds import Kind, Manifest


@dataclass(frozen=True, slots=True)
class Selection:
    """The objects of one kind that a list or a watch covers.

    Args:
        namespace: empty means every namespace.
        labels: selector in the API server's syntax; empty selects all.
        name: selects the one object of this name; empty selects all.
    """

    kind: Kind
    namespace: str = ""
    labels: str = ""
    name: str = ""


@dataclass(frozen=True, slots=True)
class Listing:
    """One page of a list: some of the selected objects, and the resourceVersion from which a watch goes on.

    Args:
        rest: asks for the next page; empty on the last one.
    """

    items: tuple[Manifest, ...]
    version: str
    rest: str = ""


@dataclass(frozen=True, slots=True)
class Change:
    """One event of a watch; a bookmark carries nothing but `metadata.resourceVersion`."""

    type: Literal["ADDED", "MODIFIED", "DELETED", "BOOKMARK"]
    object: Manifest


class Reader(Protocol):
    """Reads objects: `Cluster` from the API server, `kube.watched.Watched` from memory."""

    async def get(self, kind: Kind, namespace: str, name: str) -> Manifest | None:
        """One object; None where it, or an optional kind, does not exist.

        Raises:
            KindMissing: the API server does not serve a kind that every cluster has to have.
            KubeError: any other refusal.
        """

    async def stored_version(self, kind: Kind, namespace: str, name: str) -> str:
        """The resourceVersion of one object; empty where it does not exist. Errors as of `get`."""

    async def list(self, kind: Kind, namespace: str, selector: str) -> list[Manifest]:
        """The objects with these labels; empty where an optional kind is not installed. Errors as of `get`."""


class Cluster(Reader, Protocol):
    """Every call to the API server; each raises a `KubeError` with the HTTP status, 0 where no answer arrived."""

    async def listing(self, selection: Selection, rest: str = "") -> Listing:
        """List what a watch then goes on from, a page at a time; a kind that is not served raises KindMissing.

        Args:
            rest: that of the page before; empty for the first one. A page of a list that is too old is a KubeError with
                status 410.
        """

    def watch(self, selection: Selection, since: str, seconds: float) -> AsyncIterator[Change]:
        """The changes after a resourceVersion, for about `seconds`; then the iterator ends.

        The first one is a bookmark of that version, as soon as the API server has accepted the watch. With an empty
        version the changes begin with an ADDED for every selected object that exists.

        Raises:
            KubeError: with status 410 where the version is too old, so that only a new list helps.
        """

    async def create(self, kind: Kind, manifest: Manifest) -> Manifest:
        """Create an object; an existing one is a KubeError with status 409."""

    async def replace(self, kind: Kind, manifest: Manifest) -> Manifest:
        """Replace an object; an outdated resourceVersion is a KubeError with status 409."""

    async def apply(self, manifest: Manifest) -> Manifest:
        """Apply a manifest server-side and take over its fields from other managers.

        With `metadata.uid` it changes only that object, with `kinds.NO_VERSION` it only creates one; else 409.
        """

    async def try_apply(self, manifest: Manifest) -> None:
        """Have the API server judge what `apply` would do, and store nothing; a refusal is raised as of `apply`."""

    async def patch(self, kind: Kind, namespace: str, name: str, change: Manifest, subresource: str = "") -> Manifest:
        """Send a merge patch; with an outdated `metadata.resourceVersion` it is a KubeError with status 409."""

    async def delete(self, kind: Kind, namespace: str, name: str, *, uid: str = "") -> None:
        """Delete an object in the background, where `uid` is given only the one with it; a missing one is no error."""

    async def close(self) -> None:
        """Close the connections."""
