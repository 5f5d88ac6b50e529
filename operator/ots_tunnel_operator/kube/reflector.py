"""A copy in memory of the objects of one selection, kept by a list and a watch.

Theory of operation
-------------------
    list     replaces the copy; objects that are no longer listed are reported as DELETED, so that a deletion which no
             watch delivered leaves no ghost
    watch    goes on from the list's resourceVersion for WATCH_SECONDS, and is opened again from the last one seen
    by name  where the selection is one object, nothing is listed: the watch begins at the present, and once it is
             accepted the object is read; so the right to list is not needed.
    410      the version is too old: list again at once
    404      an optional kind is not installed: an empty copy; asked again after ABSENT_SECONDS. Any other kind is not
             served: that is an error, and the copy stays: nobody has deleted its objects; then list again
    error    pause (1 s, doubled up to 10 s, or what the server asks for), then go on from the last version
    no word  a watch that was accepted and broke, or two that ended soon, without an event: something between may
             swallow what it has to say, and only a list tells; with the same pauses

The copy is as old as the last sign of the API server at most: an answer, an event or a bookmark. A watch is short, so
that lost rights and a silent connection are noticed within it. `check` raises instead of vouching for a copy

    - that was never listed,
    - after the server refused (401, 403),
    - after PATIENCE_SECONDS of any other error, or
    - without a sign for STALE_SECONDS, as on a connection that went silent.

Events of one object arrive in order, but the answer to a write of ours (`accept`) may overtake them. Of two bodies of
one object the newer resourceVersion stays; versions are compared as numbers (KEP-5504).

Example: an object is deleted while the operator's connection is broken for ten minutes. The watch is answered with 410;
the list does not have the object; it is reported as DELETED; its loop ends, and an object waiting for its tunnel wakes.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from random import Random
from typing import Literal

from ots_tunnel.protocol.backoff import Backoff
from ots_tunnel_operator.kube.cluster import Change, Cluster, Selection
from ots_tunnel_operator.kube.errors import KubeError
from ots_tunnel_operator.kube.kept import Kept, Key, key_of, version_of
from ots_tunnel_operator.kube.kinds import POD, SECRET, TUNNEL, Manifest

#: Seconds after which a watch is opened again: what the API server refuses by then is noticed within a minute.
WATCH_SECONDS = 25.0
#: Seconds between two watches at least.
SHORTEST_SECONDS = 1.0
#: Watches without a word after which only a list tells what there is.
WORDLESS = 2
#: Seconds without a sign of the API server after which a copy is no longer vouched for.
STALE_SECONDS = 40.0
#: Seconds for which an error may last before a copy is no longer vouched for.
PATIENCE_SECONDS = 10.0
#: Seconds between two lists of a kind that is not installed.
ABSENT_SECONDS = 30.0
#: Pauses after an error, seconds.
RETRY = Backoff(1.0, 2.0, 10.0, 0.2)
#: HTTP statuses that no repetition mends: a copy is not vouched for from then on.
REFUSED = frozenset({401, 403})
#: Kinds that nothing is applied to: their managedFields, most of a body, are dropped.
UNMANAGED = frozenset({TUNNEL, POD, SECRET})
#: Kinds whose bodies are kept as they are: all of them are looked through at once.
WHOLE = frozenset({TUNNEL})
Event = Literal["CHANGED", "DELETED"]
#: Called with every change of the copy; the body of a DELETED one is the last that is known.
Listener = Callable[[Selection, Event, Manifest], None]


class StaleCopy(KubeError):
    """A copy is too old to be vouched for; whatever keeps it so has lasted already."""


class Reflector:
    """The copy of one selection.

    Args:
        cluster: the API server.
        selection: what to copy.
        listener: called after every change of the copy; it must not await.
        lost: called when the API server begins to refuse the selection.
        entropy: randomness of the pauses.
        index: name of a label by whose value `labelled` finds objects; empty without.
    """

    def __init__(
        self,
        cluster: Cluster,
        selection: Selection,
        listener: Listener,
        *,
        lost: Callable[[Selection], None] = lambda selection: None,
        entropy: Random,
        index: str = "",
    ) -> None:
        self.selection = selection
        self._cluster = cluster
        self._listener = listener
        self._lost = lost
        self._entropy = entropy
        self._index = index
        self._objects: dict[Key, Kept] = {}
        self._labelled: dict[tuple[str, str], set[Key]] = {}
        self._version = ""
        self._sign: float | None = None
        self._failure: KubeError | None = None
        self._failing_since = 0.0
        self._failures = 0
        #: Watches in a row that were accepted and ended without a word; one that broke counts as two.
        self._wordless = 0
        self._tried = asyncio.Event()

    def __repr__(self) -> str:
        return f"Reflector({self.selection.kind.plural} in {self.selection.namespace or 'every namespace'})"

    def get(self, namespace: str, name: str) -> Manifest | None:
        """One object of the copy; it must not be changed."""
        found = self._objects.get((namespace, name))
        return None if found is None else found.manifest()

    def version(self, namespace: str, name: str) -> str:
        """The resourceVersion of one object of the copy; empty where it is not there."""
        found = self._objects.get((namespace, name))
        return "" if found is None else found.version

    def labelled(self, namespace: str, value: str) -> list[Manifest]:
        """The objects of a namespace whose indexed label has this value, by name."""
        return [self._objects[key].manifest() for key in sorted(self._labelled.get((namespace, value), ()))]

    def objects(self) -> Iterator[Manifest]:
        """Every object of the copy."""
        return (found.manifest() for found in tuple(self._objects.values()))

    async def check(self) -> None:
        """Wait for the first list, and vouch for the copy.

        Raises:
            StaleCopy: the copy has been too old for a while.
            KubeError: the API server refuses it, or it was never listed.
        """
        await self._tried.wait()
        failure, now = self._failure, self._now()
        if failure is not None and (self._sign is None or failure.status in REFUSED):
            raise failure
        if failure is not None and now - self._failing_since > PATIENCE_SECONDS:
            raise StaleCopy(failure.status, failure.reason, failure.message) from failure
        if self._sign is None or now - self._sign > STALE_SECONDS:
            raise StaleCopy(0, "Stale", f"no sign of {self.selection.kind.plural} for {STALE_SECONDS:.0f} s")

    def accept(self, manifest: Manifest) -> None:
        """Take over the answer to a write, ahead of the watch; one of an object that was deleted since is ignored."""
        if key_of(manifest) in self._objects or _is_newer(version_of(manifest), self._version):
            self._put(manifest)

    def begin_anew(self) -> None:
        """Forget how the last run has ended: `check` waits for the next list, which is compared with what was known."""
        self._version, self._failure = "", None
        self._tried.clear()

    async def run(self) -> None:
        """Keep the copy until cancelled; an unexpected error ends it, and `check` raises from then on."""
        try:
            await self._keep()
        except Exception as error:
            self._sign, self._failure = None, KubeError(0, type(error).__name__, f"{self!r} ended: {error}")
            self._tried.set()
            raise

    async def _keep(self) -> None:
        while True:
            try:
                if self._wordless >= WORDLESS:
                    self._version = ""
                if not self._version and not self.selection.name:
                    await self._list()
                began = self._now()
                await self._watch()
                # a server that ends every watch at once must not be asked in a circle
                await asyncio.sleep(max(0.0, began + self._shortest() - self._now()))
            except KubeError as error:
                await self._failed(error)

    async def _list(self) -> None:
        rest, listed = "", set[Key]()
        while True:
            # only one page of bodies is in memory as Python objects
            listing = await self._cluster.listing(self.selection, rest)
            for manifest in listing.items:
                listed.add(key_of(manifest))
                self._put(manifest)
            rest = listing.rest
            if not rest:
                break
        # the copy as it is now: the answer to an early write may have come since the list began
        for before in tuple(self._objects.values()):
            # an answer to a write may be ahead of the list
            if before.key not in listed and not _is_newer(before.version, listing.version):
                self._remove(before.key, before.uid)
        self._version = listing.version
        self._alive()

    async def _watch(self) -> None:
        began, is_accepted = self._now(), False
        async for change in self._cluster.watch(self.selection, self._version, WATCH_SECONDS):
            if not self._version and change.type == "BOOKMARK":
                # the watch is accepted: it delivers whatever changes after this look
                await self._look()
            self._wordless = 0 if is_accepted else self._wordless + 1
            is_accepted = True
            self._alive()
            self._take(change)
        if self._now() - began >= WATCH_SECONDS / 2:
            self._wordless = 0
        self._alive()

    def _shortest(self) -> float:
        """Seconds between the beginnings of two watches at least."""
        if self._wordless < WORDLESS:
            return SHORTEST_SECONDS
        return RETRY.delay(self._wordless - WORDLESS, self._entropy.random())

    async def _look(self) -> None:
        kind, namespace, name = self.selection.kind, self.selection.namespace, self.selection.name
        found, before = await self._cluster.get(kind, namespace, name), self._objects.get((namespace, name))
        if found is not None:
            self._put(found)
        elif before is not None:
            self._remove(before.key, before.uid)

    def _take(self, change: Change) -> None:
        version = version_of(change.object)
        if change.type == "DELETED":
            self._remove(key_of(change.object), str(change.object["metadata"].get("uid") or ""))
        elif change.type != "BOOKMARK":
            self._put(change.object)
        self._version = version or self._version

    def _alive(self) -> None:
        self._sign = self._now()
        self._failure, self._failures = None, 0
        self._tried.set()

    async def _failed(self, error: KubeError) -> None:
        pause = RETRY.delay(self._failures, self._entropy.random())
        self._failures += 1
        self._wordless = WORDLESS if self._wordless == 1 else self._wordless
        if error.status == 410:
            self._version = ""
            pause = pause if self._failures > 1 else 0.0
        elif error.status == 404 and self.selection.kind.optional:
            self._version, pause = "", ABSENT_SECONDS
            for before in tuple(self._objects.values()):
                self._remove(before.key, before.uid)
            self._alive()
        else:
            refused = self._failure is not None and self._failure.status in REFUSED
            if self._failure is None:
                self._failing_since = self._now()
            self._failure = error
            self._version = "" if error.status == 404 else self._version
            self._tried.set()
            if error.status in REFUSED and not refused:
                self._lost(self.selection)
        await asyncio.sleep(pause)

    def _put(self, manifest: Manifest) -> None:
        kind = self.selection.kind
        if kind in UNMANAGED:
            manifest["metadata"].pop("managedFields", None)
        before = self._objects.get(key_of(manifest))
        if before is not None and not _is_newer(version_of(manifest), before.version):
            return
        kept = Kept.of(manifest, self._index, packed=kind not in WHOLE)
        if before is not None and before.uid != kept.uid:
            self._remove(before.key, before.uid)
        elif before is not None:
            self._unindex(before)
        self._objects[kept.key] = kept
        if kept.value:
            self._labelled.setdefault((kept.key[0], kept.value), set()).add(kept.key)
        self._listener(self.selection, "CHANGED", manifest)

    def _remove(self, key: Key, uid: str) -> None:
        before = self._objects.get(key)
        if before is None or before.uid != uid:
            return
        del self._objects[key]
        self._unindex(before)
        self._listener(self.selection, "DELETED", before.manifest())

    def _unindex(self, kept: Kept) -> None:
        place = (kept.key[0], kept.value)
        keys = self._labelled.get(place)
        if keys is not None:
            keys.discard(kept.key)
            if not keys:
                del self._labelled[place]

    def _now(self) -> float:
        return asyncio.get_running_loop().time()


def _is_newer(version: str, than: str) -> bool:
    if version.isdecimal() and than.isdecimal():
        return int(version) > int(than)
    return version != than
