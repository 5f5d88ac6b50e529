"""The kubelet of all nodes: starts the process of each pod, watches its probes, restarts it, ends it.

Theory of operation
-------------------
One task per pod. It waits until the pod's Secrets and ConfigMaps exist and its image can be fetched, starts the
process, and from then on writes the pod's status when something changed. A process that ends is started again after
10 s, doubled up to 5 minutes (CrashLoopBackOff). A deletion sends SIGTERM; the process has its grace period, then it is
killed, and only then the pod object goes. A node that is lost takes its processes with it and leaves the pod objects
standing for a while.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from tests.simulation.apiserver.api import Api, Request
from tests.simulation.apiserver.refusal import Refusal
from tests.simulation.apiserver.store import Event, Key, Manifest
from tests.simulation.cluster.pod_status import Ended, PodView, status_of
from tests.simulation.cluster.process import Process

MANAGER = "kubelet"
#: Seconds between two looks at the probes, and failed looks until the kubelet acts.
PROBE_SECONDS = 3.0
LIVENESS_FAILURES = 20
#: First and longest pause before a restart, seconds.
BACKOFF_SECONDS = 10.0
BACKOFF_MAX_SECONDS = 300.0
#: Seconds between two looks for a missing Secret or ConfigMap.
MOUNT_SECONDS = 5.0
KILLED = 137
#: Seconds for which a failed pull is shown as that, before the pause until the next one is.
PULL_SECONDS = 5.0

Start = Callable[[Manifest, str], Process]


class Kubelet:
    """Runs the pods of the cluster.

    Args:
        start: starts the process of a pod; the text is the pod's address.
        delay: seconds from the creation of a pod to the start of its process.
        stop_delay: seconds from the deletion of a pod to the signal to its process.
        is_foreign: whether somebody else runs a pod.
    """

    def __init__(
        self,
        api: Api,
        clock: Callable[[], float],
        start: Start,
        delay: Callable[[], float],
        stop_delay: Callable[[], float] = lambda: 0.0,
        is_foreign: Callable[[Manifest], bool] = lambda pod: False,
    ) -> None:
        self._api = api
        self._clock = clock
        self._start = start
        self._delay = delay
        self._stop_delay = stop_delay
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._leaving: dict[str, asyncio.Event] = {}
        self._addresses = 0
        self.processes: dict[str, Process] = {}
        """Running processes by the address of their pod."""
        self.unfetchable: set[str] = set()
        """Images that no registry has."""
        before = api.store.listener

        def follow(event: Event) -> None:
            before(event)
            if event.key[0] == "Pod" and not is_foreign(event.object):
                self._follow(event)

        api.store.listener = follow

    async def close(self) -> None:
        """Kill every process and end every task."""
        for process in list(self.processes.values()):
            process.kill()
        for task in self._tasks.values():
            task.cancel()
        await asyncio.gather(*self._tasks.values(), return_exceptions=True)

    def _follow(self, event: Event) -> None:
        uid = event.object["metadata"]["uid"]
        if event.type == "ADDED":
            self._leaving[uid] = asyncio.Event()
            task = asyncio.get_running_loop().create_task(self._live(event.key, uid), name=f"pod {event.key[2]}")
            self._tasks[uid] = task
            task.add_done_callback(lambda _: self._tasks.pop(uid, None))
        elif uid in self._leaving and (event.type == "DELETED" or event.object["metadata"].get("deletionTimestamp")):
            self._leaving[uid].set()

    async def _live(self, key: Key, uid: str) -> None:
        leaving = self._leaving[uid]
        view = PodView(ready_changed=self._clock())
        try:
            if await _happened(leaving, self._delay()):
                return
            pod = self._api.store.read(key)
            while pod is not None and self._missing(pod):
                if await _happened(leaving, MOUNT_SECONDS):
                    return
                pod = self._api.store.read(key)
            if pod is None or not await self._pulled(key, pod, view, leaving):
                return
            self._addresses += 1
            address = f"10.1.{self._addresses // 250}.{self._addresses % 250 + 1}"
            self._write(key, {"spec": {"nodeName": "node"}}, "")
            view = replace(view, phase="Running", ip=address, waiting="")
            await self._restart_forever(key, pod, view, leaving)
        finally:
            self._leaving.pop(uid, None)
            found = self._api.store.read(key)
            if found is not None and found["metadata"]["uid"] == uid and found["metadata"].get("deletionTimestamp"):
                self._api.finalize(key)

    async def _pulled(self, key: Key, pod: Manifest, view: PodView, leaving: asyncio.Event) -> bool:
        """Wait until the image can be fetched, with growing pauses; False where the pod is to go before."""
        image, pause = pod["spec"]["containers"][0].get("image", ""), BACKOFF_SECONDS
        while image in self.unfetchable:
            self._show(key, replace(view, waiting="ErrImagePull", words=f"failed to pull {image}: not found"))
            if await _happened(leaving, PULL_SECONDS):
                return False
            self._show(key, replace(view, waiting="ImagePullBackOff", words=f'Back-off pulling image "{image}"'))
            if await _happened(leaving, pause):
                return False
            pause = min(2 * pause, BACKOFF_MAX_SECONDS)
        return True

    async def _restart_forever(self, key: Key, pod: Manifest, view: PodView, leaving: asyncio.Event) -> None:
        pause = BACKOFF_SECONDS
        while True:
            view = replace(view, started=self._clock())
            self._show(key, view)
            view = await self._run(key, pod, view, leaving)
            if leaving.is_set():
                return
            self._show(key, view)
            if await _happened(leaving, pause):
                return
            pause = min(2 * pause, BACKOFF_MAX_SECONDS)
            view = replace(view, waiting="")

    async def _run(self, key: Key, pod: Manifest, view: PodView, leaving: asyncio.Event) -> PodView:
        """Run the process once; returns the view after its end."""
        process = self._start(pod, view.ip)
        self.processes[view.ip] = process
        ended = asyncio.ensure_future(process.wait())
        failures = 0
        try:
            while not ended.done() and not leaving.is_set():
                await self._pause(ended, leaving, PROBE_SECONDS)
                if process.is_ready != view.ready and not ended.done():
                    view = replace(view, ready=process.is_ready, ready_changed=self._clock())
                    self._show(key, view)
                failures = 0 if process.is_live else failures + 1
                if failures >= LIVENESS_FAILURES:
                    process.terminate()
            if not ended.done():
                await self._end(key, process, ended, pod)
            code = ended.result()
        finally:
            process.kill()
            ended.cancel()
            del self.processes[view.ip]
        reason = "Completed" if code == 0 else "Error"
        last = Ended(code, reason, process.message, self._clock())
        changed = self._clock() if view.ready else view.ready_changed
        return replace(
            view, ready=False, ready_changed=changed, restarts=view.restarts + 1, waiting="CrashLoopBackOff", last=last
        )

    async def _end(self, key: Key, process: Process, ended: asyncio.Future[int], pod: Manifest) -> None:
        if (pause := self._stop_delay()) > 0:
            await asyncio.wait([ended], timeout=pause)
        process.terminate()
        grace = float(pod["spec"].get("terminationGracePeriodSeconds", 30))
        await asyncio.wait([ended], timeout=grace)
        if not ended.done():
            process.kill()
            await asyncio.wait([ended])

    async def _pause(self, ended: asyncio.Future[int], leaving: asyncio.Event, seconds: float) -> None:
        waiting: asyncio.Future[Any] = asyncio.ensure_future(leaving.wait())
        try:
            await asyncio.wait({ended, waiting}, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
        finally:
            waiting.cancel()

    def _missing(self, pod: Manifest) -> bool:
        namespace = pod["metadata"]["namespace"]
        for volume in pod["spec"].get("volumes") or ():
            name = (volume.get("configMap") or {}).get("name")
            if name and self._api.store.peek(("ConfigMap", namespace, name)) is None:
                return True
            name = (volume.get("secret") or {}).get("secretName")
            if name and self._api.store.peek(("Secret", namespace, name)) is None:
                return True
        return False

    def _show(self, key: Key, view: PodView) -> None:
        self._write(key, {"status": status_of(view)}, "/status")

    def _write(self, key: Key, patch: Mapping[str, Any], subresource: str) -> None:
        path = f"/api/v1/namespaces/{key[1]}/pods/{key[2]}{subresource}"
        try:
            self._api.call(Request("PATCH", path, patch, content="application/merge-patch+json", manager=MANAGER))
        except Refusal as error:
            # the pod was removed by force: its process is killed at the next look
            if error.status != 404:
                raise


async def _happened(event: asyncio.Event, seconds: float) -> bool:
    """Whether the event came within this time."""
    try:
        async with asyncio.timeout(seconds):
            await event.wait()
    except TimeoutError:
        return False
    return True
