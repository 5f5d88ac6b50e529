"""Leader election by one Lease, in a separate thread with its own event loop, because kopf owns the main one.

A process that has lost the lease never competes again: it exits, and Kubernetes restarts it as a follower
(docs/architecture.md 6.2).

This thread runs on while the loop that works stands still, so a renewal proves nothing by itself: the holder renews
only while that loop has run within STALL_SECONDS. A write is allowed only while the lease is held for certain
(`is_held`), also after a moment in which the whole process or machine was suspended.

The Lease says which namespaces its holder serves. Candidates of other namespaces that share it by mistake would wait
without end, ready and silent: what they serve has no operator. They say so.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import math
import threading
import time
from collections.abc import Awaitable, Callable, Mapping
from datetime import UTC, datetime
from typing import Any

from ots_tunnel.errors import ConfigError
from ots_tunnel_operator import names
from ots_tunnel_operator.kube.client import Kube
from ots_tunnel_operator.kube.cluster import Cluster
from ots_tunnel_operator.kube.errors import KubeError
from ots_tunnel_operator.kube.kinds import LEASE
from ots_tunnel_operator.log_actions import LogAction

logger = logging.getLogger(__name__)

#: Longest text of an error in a log line, in characters.
MAX_ERROR = 300

# The defaults of client-go's leader election.
#: Seconds after its last renewal for which a lease is held.
LEASE_SECONDS = 15
#: Seconds for which the holder tries to renew before it gives up.
RENEW_SECONDS = 10.0
#: Seconds at the end of these in which no attempt begins any more.
LAST_SECONDS = 1.0
#: Seconds between two attempts.
RETRY_SECONDS = 2.0
#: Seconds for which a Lease that a candidate has never seen must be absent: a living holder renews twice in them.
ABSENT_SECONDS = 4.0
#: Seconds that the working loop may stand still before its process stops renewing.
STALL_SECONDS = 10.0


def now() -> float:
    """Seconds that go on while the machine is suspended, where the system has such a clock."""
    return time.clock_gettime(getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC))


class Lease:
    """One candidate for one Lease.

    Args:
        namespace, name: namespace and name of the Lease.
        identity: name of this candidate, unique among all.
        tick: called before every attempt of a follower, which counts as alive while it waits.
        still: seconds since the working loop last ran; read only while this candidate leads.
        serves: the namespaces that the candidate serves, in words.
        connect: makes a connection to the API server for this candidate alone; None takes the pod's own.
    """

    def __init__(
        self,
        namespace: str,
        name: str,
        identity: str,
        *,
        tick: Callable[[], None],
        still: Callable[[], float],
        serves: str,
        connect: Callable[[], Awaitable[Cluster]] | None = None,
    ) -> None:
        self._namespace = namespace
        self._name = name
        self._identity = identity
        self._tick = tick
        self._still = still
        self._serves = serves
        self._connect = connect
        self._holder = ("", "")
        self._renewed = now()
        self._seen: tuple[str, float] = ("", 0.0)
        self._absent: float | None = None
        self.leading = threading.Event()
        self.lost = threading.Event()
        self._lock = threading.Lock()
        self._listener: Callable[[], None] | None = None
        self._is_stopping = False
        self._end: Callable[[], object] | None = None
        self._thread = threading.Thread(target=self._run, name="lease", daemon=True)

    def __repr__(self) -> str:
        return f"Lease({self._namespace}/{self._name}, {self._identity})"

    def start(self) -> None:
        """Start to compete for the lease."""
        self._thread.start()

    def is_held(self) -> bool:
        """Whether no other candidate can hold the lease yet, so that a write may be sent."""
        return self.leading.is_set() and not self.lost.is_set() and now() - self._renewed < RENEW_SECONDS

    def when_lost(self, listener: Callable[[], None] | None) -> None:
        """Register a callback for the loss of the lease; None removes it.

        The callback runs in the lease's thread, or at once in the caller's when the lease is already lost.
        """
        with self._lock:
            self._listener = listener
            lost = self.lost.is_set()
        if lost and listener is not None:
            listener()

    def stop(self) -> None:
        """Release the lease and end the thread."""
        self.let_go()
        self._thread.join(timeout=RENEW_SECONDS)

    def let_go(self) -> None:
        """Ask the candidate to release the lease and end."""
        with self._lock:
            self._is_stopping = True
            end = self._end
        if end is not None:
            # its event loop may have ended by itself
            with contextlib.suppress(RuntimeError):
                end()

    async def compete(self) -> None:
        """Compete for the lease and hold it until it is lost, or released by `stop`; `start` runs this in a thread."""
        try:
            await self._compete()
        except ConfigError as error:
            logger.error(
                "no leader election",
                extra={"action": LogAction.NO_ELECTION, "lease": self._name, "error": str(error)},
            )
        finally:
            with self._lock:
                self.lost.set()
                listener = self._listener
            if listener is not None:
                listener()

    def _run(self) -> None:
        asyncio.run(self.compete())

    async def _compete(self) -> None:
        stop, loop = asyncio.Event(), asyncio.get_running_loop()
        with self._lock:
            self._end = lambda: loop.call_soon_threadsafe(stop.set)
            is_stopping = self._is_stopping
        kube = await (self._connect or Kube.connect)()
        try:
            while not (is_stopping or stop.is_set()):
                began = now()
                left = self._renewed + RENEW_SECONDS - began if self.leading.is_set() else RENEW_SECONDS
                if self._may_try(left) and await self._try(kube, min(left, RENEW_SECONDS / 2)):
                    # The time before the call: the holder must stop before another candidate may take the lease.
                    self._renewed = began
                    if not self.leading.is_set():
                        values = {"lease": self._name, "identity": self._identity}
                        logger.info("leading", extra={"action": LogAction.LEADING, **values})
                        self.leading.set()
                elif self.leading.is_set() and now() - self._renewed >= RENEW_SECONDS:
                    logger.error("the lease is lost", extra={"action": LogAction.LEASE_LOST, "lease": self._name})
                    return
                pause = RETRY_SECONDS
                if self.leading.is_set():
                    pause = max(0.0, min(pause, self._renewed + RENEW_SECONDS - now()))
                with contextlib.suppress(TimeoutError):
                    await asyncio.wait_for(stop.wait(), pause)
            if self.leading.is_set():
                # from the moment in which the release is stored another candidate may lead
                self._renewed = -math.inf
                await self._release(kube)
        finally:
            await kube.close()

    def _may_try(self, left: float) -> bool:
        if not self.leading.is_set():
            self._tick()
            return True
        still = self._still()
        if still > STALL_SECONDS:
            logger.error(
                "the event loop stands still, the lease is not renewed",
                extra={"action": LogAction.LOOP_STALLED, "lease": self._name, "seconds": round(still)},
            )
            return False
        # A process that was suspended for longer does not take back what another may hold. And an attempt in the last
        # moment may be stored when this process has given up: then the others wait for a Lease that nobody has.
        return left > LAST_SECONDS

    async def _try(self, kube: Cluster, seconds: float) -> bool:
        """Take or renew the lease; False where another candidate holds it or the API server did not answer in time."""
        try:
            async with asyncio.timeout(seconds):
                # a look that fails tells nothing: since the one before, the holder may have made the Lease again
                absent, self._absent = self._absent, None
                found = await kube.get(LEASE, self._namespace, self._name)
                if found is None:
                    self._absent = absent
                elif not self._may_take(found):
                    # a leader that finds another holder, as after a deletion of the Lease, writes nothing more
                    self._renewed = -math.inf
                    return False
                if self.leading.is_set() and not self.is_held():
                    # suspended since the attempt began: this renewal would keep the others waiting, and nobody led
                    return False
                if found is None:
                    if self._may_be_held():
                        return False
                    await kube.create(LEASE, self._manifest({}, None))
                    return True
                await kube.replace(LEASE, self._manifest(found.get("spec") or {}, found["metadata"]))
                return True
        except KubeError as error:
            if error.status == 409:
                # another candidate has made or renewed it since the look: whatever was missing before
                self._absent = None
            else:
                logger.warning("the lease could not be written", extra=self._failure(error))
            return False
        except TimeoutError:
            return False

    def _may_be_held(self) -> bool:
        """Whether a Lease that is not there, such as one deleted by hand, may have a holder that still writes.

        That one makes it again with its next renewal, or gives up before the time of its last renewal is over. This may
        have been right before the first look that did not find the Lease, whatever was seen before: the looks of a
        candidate that was cut off are old. One that has never seen the Lease cannot tell a deletion from a first
        installation, which must not wait for the whole life of a Lease: it waits for the next renewal alone.
        """
        if self.leading.is_set():
            return False
        if self._absent is None:
            self._absent = time.monotonic()
        longest = LEASE_SECONDS if self._seen[0] else ABSENT_SECONDS
        return time.monotonic() - self._absent <= longest

    def _may_take(self, lease: Mapping[str, Any]) -> bool:
        """Whether the lease is our own, released, or unrenewed for its whole duration.

        The duration is measured with the local clock from the last change seen, because clocks of nodes differ.
        """
        spec = lease.get("spec") or {}
        if spec.get("holderIdentity") in (None, "", self._identity):
            return True
        version = str(lease["metadata"].get("resourceVersion"))
        if version != self._seen[0]:
            self._seen = (version, time.monotonic())
            self._stand_by(str(spec["holderIdentity"]), lease["metadata"].get("annotations") or {})
        return time.monotonic() - self._seen[1] > float(spec.get("leaseDurationSeconds") or LEASE_SECONDS)

    @property
    def waits_for(self) -> str:
        """Who holds the lease and which namespaces that one serves, where these are others; empty while unknown."""
        holder, serves = self._holder
        if not holder or serves == self._serves:
            return holder
        return f"{holder}, which serves {serves}, not {self._serves}"

    def _stand_by(self, holder: str, annotations: Mapping[str, str]) -> None:
        """Log once for each holder that this candidate waits."""
        # an older release does not say what it serves
        found = holder, annotations.get(names.ANNOTATION_SERVES, self._serves)
        if found == self._holder:
            return
        self._holder = found
        values = {"action": LogAction.STANDING_BY, "lease": self._name, "holder": holder, "serves": found[1]}
        if found[1] == self._serves:
            logger.info("standing by", extra=values)
        else:
            logger.warning(
                f"the holder of the Lease serves other namespaces, {self._serves} has no operator: give each scope a "
                "Lease of its own (--lease-name)",
                extra=values,
            )

    def _manifest(self, spec: Mapping[str, Any], metadata: Mapping[str, Any] | None) -> dict[str, Any]:
        now = datetime.fromtimestamp(time.time(), UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
        mine = spec.get("holderIdentity") == self._identity
        kept: dict[str, Any] = dict(metadata) if metadata else {"name": self._name, "namespace": self._namespace}
        annotations = kept.get("annotations") or {}
        transitions = int(spec.get("leaseTransitions") or 0)
        return {
            "apiVersion": LEASE.api_version,
            "kind": LEASE.kind,
            "metadata": kept | {"annotations": annotations | {names.ANNOTATION_SERVES: self._serves}},
            "spec": {
                "holderIdentity": self._identity,
                "leaseDurationSeconds": LEASE_SECONDS,
                "acquireTime": spec.get("acquireTime") if mine else now,
                "renewTime": now,
                "leaseTransitions": transitions if mine or not spec else transitions + 1,
            },
        }

    async def _release(self, kube: Cluster) -> None:
        """Mark the lease as free, so that a follower takes it at once."""
        try:
            found = await kube.get(LEASE, self._namespace, self._name)
            if found is not None and (found.get("spec") or {}).get("holderIdentity") == self._identity:
                manifest = self._manifest(found["spec"], found["metadata"])
                manifest["spec"]["holderIdentity"] = ""
                manifest["spec"]["leaseDurationSeconds"] = 1
                await kube.replace(LEASE, manifest)
        except KubeError as error:
            logger.warning("the lease could not be released", extra=self._failure(error))

    def _failure(self, error: KubeError) -> dict[str, str]:
        return {"action": LogAction.LEASE_FAILED, "lease": self._name, "error": str(error)[:MAX_ERROR]}
