"""What kopf does with one object: its events one after the other, a finalizer, one loop, one deletion.

Theory of operation
-------------------
The events of an object wait in a queue. The first one starts the loop, whether the finalizer is written or not. A write
is repeated with growing pauses where the answer says so; once it has failed for good, kopf pauses and waits for another
event: the one whose write has failed is lost. For an object that is being deleted kopf asks the loop to end, runs the
deletion, cancels a loop that goes on, and takes the finalizer away; the deletion runs again with every look at the
loop. A loop that has ended is never started again.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from ots_tunnel_operator import names
from ots_tunnel_operator.handlers import CANCEL_SECONDS, GRACE_SECONDS, run_deletion
from ots_tunnel_operator.kube.cluster import Cluster
from ots_tunnel_operator.kube.errors import KubeError
from ots_tunnel_operator.kube.kinds import TUNNEL, Manifest
from ots_tunnel_operator.runtime import Runtime

#: Seconds after which kopf repeats a handler that failed.
RETRY_SECONDS = 60.0
#: Part of the message of a write whose version is not the stored one.
OUTDATED = "the object has been modified"
#: Seconds between the attempts of one of kopf's calls, and after the calls that have failed for good.
BACKOFFS = (1, 1, 2, 3, 5, 8, 13, 21)
THROTTLES = (1, 1, 2, 3, 5, 8, 13, 21, 34, 55, 89, 144, 233, 377, 610)


class KopfObject:
    """Processes the events of one object.

    Args:
        failed: called with a text when a handler ends with an error.
    """

    def __init__(self, runtime: Runtime, cluster: Cluster, body: Manifest, failed: Callable[[str], None]) -> None:
        metadata = body["metadata"]
        self._runtime = runtime
        self._cluster = cluster
        self._failed = failed
        self._uid, self._namespace, self._name = metadata["uid"], metadata["namespace"], metadata["name"]
        self._events: asyncio.Queue[Manifest | None] = asyncio.Queue()
        self._arrived = asyncio.Event()
        self._loop: asyncio.Task[None] | None = None
        self._asked: float | None = None
        self._is_cancelled = False
        self._throttled_until = 0.0
        self._failures = 0
        self._task = asyncio.create_task(self._run(), name=f"events of {self._name}")

    def put(self, body: Manifest | None) -> None:
        """Add an event; None tells that the object is gone."""
        self._events.put_nowait(body)
        self._arrived.set()

    async def _run(self) -> None:
        while (body := await self._events.get()) is not None:
            if self._events.empty():
                self._arrived.clear()
            if await self._sleep(self._throttled_until - _now()):
                await self._try(body)

    async def _sleep(self, seconds: float) -> bool:
        """Wait; False where another event arrives first."""
        if seconds <= 0:
            return True
        try:
            async with asyncio.timeout(seconds):
                await self._arrived.wait()
        except TimeoutError:
            return True
        return False

    async def _try(self, body: Manifest) -> None:
        try:
            await self._process(body)
        except KubeError:
            self._throttled_until = _now() + THROTTLES[min(self._failures, len(THROTTLES) - 1)]
            self._failures += 1
        else:
            self._failures = 0

    async def _process(self, body: Manifest) -> None:
        finalizers = body["metadata"].get("finalizers") or []
        is_held = names.FINALIZER in finalizers
        if not body["metadata"].get("deletionTimestamp"):
            if self._loop is None:
                self._loop = asyncio.create_task(self._run_loop(), name=f"loop {self._name}")
            if not is_held:
                await self._write(body, {"finalizers": [*finalizers, names.FINALIZER]})
            return
        delay = await self._stop_loop()
        if not is_held:
            return
        if not await self._delete():
            delay = RETRY_SECONDS
        if delay is None:
            await self._write(body, {"finalizers": [each for each in finalizers if each != names.FINALIZER]})
        elif await self._sleep(delay):
            # the next event is the answer to this
            await self._write(None, {"annotations": {"kopf.dev/touch-dummy": f"{_now()}"}})

    async def _write(self, body: Manifest | None, change: dict[str, Any]) -> None:
        if body is not None:
            change = {"resourceVersion": body["metadata"]["resourceVersion"], **change}
        for pause in (*BACKOFFS, None):
            try:
                await self._cluster.patch(TUNNEL, self._namespace, self._name, {"metadata": change})
            except KubeError as error:
                # kopf tests the version in a JSON patch, whose refusal it takes for a sign of a newer event
                if error.status == 404 or (error.status == 409 and OUTDATED in error.message):
                    return
                if pause is None or (error.status not in (0, 403, 429) and error.status < 500):
                    raise
                await asyncio.sleep(pause)
            else:
                return

    async def _run_loop(self) -> None:
        cache = self._runtime.cache(self._uid, self._namespace, self._name)
        try:
            await asyncio.sleep(self._runtime.first_pause(self._namespace, self._name))
            await self._runtime.reconciler().run(self._namespace, self._name, cache)
        except Exception as error:
            # kopf would log it and go on; here it is a finding
            self._failed(f"the loop of {self._name} ended with {type(error).__name__}: {error}")

    async def _stop_loop(self) -> float | None:
        """Ask the loop to end, then cancel it; seconds until the next look, None where there is nothing to wait for."""
        if self._loop is None or self._loop.done():
            return None
        self._asked = _now() if self._asked is None else self._asked
        left = self._asked + GRACE_SECONDS - _now()
        if left > 0:
            return left
        if not self._is_cancelled:
            self._is_cancelled = True
            self._loop.cancel()
            await asyncio.sleep(0)
        left += CANCEL_SECONDS
        if self._loop.done() or left > 0:
            return None if self._loop.done() else left
        self._failed(f"{self._loop.get_name()} goes on {CANCEL_SECONDS} s after its cancellation")
        return None

    async def _delete(self) -> bool:
        try:
            await run_deletion(self._runtime, self._namespace, self._name, self._uid)
        except Exception as error:
            # as above: kopf would try again later
            self._failed(f"the deletion of {self._name} ended with {type(error).__name__}: {error}")
            return False
        return True


def _now() -> float:
    return asyncio.get_running_loop().time()
