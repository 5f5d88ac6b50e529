"""Reads from memory what watches keep there: objects, children, pods, and the Secrets that objects name.

One `Reflector` per kind and namespace, or for all namespaces, starts with the first read of the kind. It covers the
objects with the operator's labels only. So an object without them that has a name of ours is not seen here: whoever
changes something reads the one object from the API server first, and what is not seen is created by a call that is
refused where it exists (`apply`).

Secrets have no label of ours. Each Secret that an object names has a watch of its own, by the field metadata.name:
other Secrets never reach this process, nothing is listed, and the chart can restrict the operator's rights to names
(`rbac.secretNames`). Such a watch ends when nobody has read it for IDLE_SECONDS.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from random import Random
from typing import NoReturn

from ots_tunnel_operator import names
from ots_tunnel_operator.kube.cluster import Cluster, Selection
from ots_tunnel_operator.kube.errors import KubeError
from ots_tunnel_operator.kube.kinds import POD, SECRET, TUNNEL, Kind, Manifest
from ots_tunnel_operator.kube.reflector import Event, Reflector
from ots_tunnel_operator.log_actions import LogAction

logger = logging.getLogger(__name__)

#: Label by which a Spark operator marks the pods of an application.
SPARK_LABEL = "sparkoperator.k8s.io/app-name"
#: Seconds after its last read for which the watch of a Secret goes on.
IDLE_SECONDS = 600.0
#: Seconds between two looks for idle watches.
SWEEP_SECONDS = 60.0
#: Most Secrets watched; a further one is read by a GET each time.
MAX_SECRETS = 500

Listener = Callable[[Kind, Event, Manifest], None]


class Watched:
    """Implements `cluster.Reader` from memory.

    Args:
        cluster: the API server.
        namespaces: the ones served; empty means all, by one watch.
        listener: called after every change of a copy; it must not await.
        lost: called with a kind and a namespace, empty for all, when the API server begins to refuse a watch.
        entropy: randomness of pauses.
    """

    def __init__(
        self,
        cluster: Cluster,
        *,
        namespaces: tuple[str, ...] = (),
        listener: Listener,
        lost: Callable[[Kind, str], None] = lambda kind, namespace: None,
        entropy: Random | None = None,
    ) -> None:
        self._cluster = cluster
        self._namespaces = namespaces
        self._listener = listener
        self._lost = lost
        self._entropy = entropy or Random()
        self._running: dict[Selection, tuple[Reflector, asyncio.Task[None]]] = {}
        self._read: dict[Selection, float] = {}
        self._swept = 0.0
        self._is_closed = False

    async def get(self, kind: Kind, namespace: str, name: str) -> Manifest | None:
        """One object; None where it does not exist or does not have the operator's labels.

        Raises:
            KubeError: nothing recent is known.
        """
        copy = await self._copy(kind, namespace, name)
        return await self._cluster.get(kind, namespace, name) if copy is None else copy.get(namespace, name)

    async def stored_version(self, kind: Kind, namespace: str, name: str) -> str:
        """The resourceVersion of one object, without its body; empty where `get` returns None.

        Raises:
            KubeError: nothing recent is known.
        """
        copy = await self._copy(kind, namespace, name)
        return (
            await self._cluster.stored_version(kind, namespace, name) if copy is None else copy.version(namespace, name)
        )

    async def list(self, kind: Kind, namespace: str, selector: str) -> list[Manifest]:
        """The objects with these labels: `label=value,...`, where one label is that of the object, or of Spark.

        Raises:
            KubeError: nothing recent is known.
        """
        wanted = dict(part.split("=", 1) for part in selector.split(","))
        index = SPARK_LABEL if SPARK_LABEL in wanted else _label(kind)
        selection = self._selection(kind, namespace)
        if index == SPARK_LABEL:
            selection = Selection(kind, selection.namespace, labels=SPARK_LABEL)
        reflector = self._reflector(selection, index)
        await reflector.check()
        return [
            item
            for item in reflector.labelled(namespace, wanted[index])
            if wanted.items() <= (item["metadata"].get("labels") or {}).items()
        ]

    def accept(self, kind: Kind, manifest: Manifest) -> None:
        """Take over the answer to a call, ahead of the watch, where it is an object that the watch covers."""
        if kind is not TUNNEL and names.LABEL_ROLE not in (manifest["metadata"].get("labels") or {}):
            return
        found = self._running.get(self._selection(kind, manifest["metadata"].get("namespace", "")))
        if found is not None:
            found[0].accept(manifest)

    def object(self, namespace: str, name: str) -> Manifest | None:
        """One object of the operator's kind, however old the copy is; it must not be changed."""
        found = self._running.get(self._selection(TUNNEL, namespace))
        return None if found is None else found[0].get(namespace, name)

    def objects(self) -> tuple[Manifest, ...]:
        """Every object of the operator's kind, however old the copy is; they must not be changed."""
        found = (reflector for selection, (reflector, _) in self._running.items() if selection.kind is TUNNEL)
        return tuple(item for reflector in found for item in reflector.objects())

    async def close(self) -> None:
        """End every watch; none is started any more."""
        self._is_closed = True
        tasks = [task for _, task in self._running.values()]
        self._running.clear()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def follow_objects(self) -> None:
        """Watch the objects of every namespace, and vouch for them: an elder one on the same tunnel may be anywhere.

        Raises:
            KubeError: nothing recent is known.
        """
        for namespace in self._namespaces or ("",):
            await self._reflector(self._selection(TUNNEL, namespace), "").check()

    async def _copy(self, kind: Kind, namespace: str, name: str) -> Reflector | None:
        """The copy that covers one object, vouched for; None for a Secret beside as many as are watched."""
        selection = self._selection(kind, namespace, name)
        if kind is SECRET and selection not in self._running and self._secrets() >= MAX_SECRETS:
            return None
        if kind is TUNNEL:
            await self.follow_objects()
        reflector = self._reflector(selection, _label(kind))
        await reflector.check()
        return reflector

    def _selection(self, kind: Kind, namespace: str, name: str = "") -> Selection:
        if kind is SECRET:
            return Selection(kind, namespace, name=name)
        scope = namespace if self._namespaces else ""
        if kind is TUNNEL:
            return Selection(kind, scope)
        labels = f"{names.LABEL_ROLE}={names.ROLE_WORKER}" if kind is POD else names.LABEL_ROLE
        return Selection(kind, scope, labels=labels)

    def _reflector(self, selection: Selection, index: str) -> Reflector:
        if self._is_closed:
            raise KubeError(0, "Closed", f"the watch of {selection.kind.plural} has ended with the operator")
        now = asyncio.get_running_loop().time()
        if now - self._swept > SWEEP_SECONDS:
            self._swept = now
            self._sweep(now)
        self._read[selection] = now
        found = self._running.get(selection)
        if found is None:
            found = self._start(
                Reflector(
                    self._cluster, selection, self._changed, lost=self._refused, entropy=self._entropy, index=index
                )
            )
        elif found[1].done():
            self._start_again(*found)
        return found[0]

    def _start(self, reflector: Reflector) -> tuple[Reflector, asyncio.Task[None]]:
        task = asyncio.create_task(reflector.run(), name=f"watch {reflector.selection.kind.plural}")
        self._running[reflector.selection] = reflector, task
        return reflector, task

    def _start_again(self, reflector: Reflector, ended: asyncio.Task[None]) -> NoReturn:
        """Start a watch that has ended, which it does only by a defect; what it knew is compared with its next list.

        Raises:
            KubeError: always, because this read has nothing recent.
        """
        error = ended.exception()
        logger.error(
            "a watch ended",
            exc_info=error,
            extra={"action": LogAction.WATCH_ENDED, "watch": repr(reflector)},
        )
        reflector.begin_anew()
        self._start(reflector)
        raise KubeError(0, type(error).__name__, f"{reflector!r} ended: {error}")

    def _secrets(self) -> int:
        return sum(selection.kind is SECRET for selection in self._running)

    def _sweep(self, now: float) -> None:
        for selection, read in tuple(self._read.items()):
            if selection.kind is SECRET and now - read > IDLE_SECONDS:
                del self._read[selection]
                found = self._running.pop(selection, None)
                if found is not None:
                    found[1].cancel()

    def _changed(self, selection: Selection, event: Event, manifest: Manifest) -> None:
        self._listener(selection.kind, event, manifest)

    def _refused(self, selection: Selection) -> None:
        self._lost(selection.kind, selection.namespace)


def _label(kind: Kind) -> str:
    return names.LABEL_NAME if kind is not TUNNEL else ""
