"""One attempt of an application: a driver and executors that copy splits as `ots_tunnel.spark.snapshot.driver` does.

The record of progress is the real one; tasks are a model. A task reads the rows of its split, works for a while, and
sends them; it may end after some of them, and the next one resumes there. What was sent takes effect within the write
deadline, also when its pod has been killed meanwhile. Rows are cut into the real changes, and a request holds so few
cells that most rows need several; the later ones of a row follow the first at once, if the task still runs. A node that
is lost takes the object of a pod away, and not its process: an executor goes on until the deadline of its split, a
driver runs its job as long as the record lets it. The API server answers no pod whose object is gone.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

import yaml

from ots_emulator.tables.keys import BOTTOM_KEY, TOP_KEY
from ots_tunnel.client.table_calls import RowChange, batch_write_request
from ots_tunnel.errors import OwnershipLost, ServerUnavailable, ServiceError, TunnelError
from ots_tunnel.model import Action
from ots_tunnel.protocol.key_order import value_order
from ots_tunnel.protocol.plainbuffer.codec import encode_primary_key
from ots_tunnel.protocol.plainbuffer.tags import HEADER
from ots_tunnel.protocol.record import Record
from ots_tunnel.sinks.grouping import Limits
from ots_tunnel.sinks.table.row_change import Omissions, changes_of
from ots_tunnel.snapshot.copied import Report
from ots_tunnel.snapshot.document import ProgressConfig
from ots_tunnel.snapshot.splits import Split, SplitList, freeze
from ots_tunnel.spark.snapshot.progress import ProgressRecord
from ots_tunnel_operator import names
from ots_tunnel_operator.assess.spark.snapshot import SPLIT_DEADLINE
from ots_tunnel_operator.manifests.spark.snapshot_document import SNAPSHOT_FILE
from ots_tunnel_operator.times import timestamp
from tests.simulation.apiserver.api import Request
from tests.simulation.apiserver.refusal import Refusal
from tests.simulation.apiserver.store import Manifest
from tests.simulation.service import COPY, SOURCE, TABLE
from tests.simulation.spark.acts import KILL

if TYPE_CHECKING:
    from tests.simulation.spark.fleet import SparkFleet

LABEL = "sparkoperator.k8s.io/app-name"
#: Inner bounds of the splits.
BOUNDS = ("k03", "k06", "k12")
EXECUTORS = 2
#: Share of requests after which a task reports how far it came, and ends.
SLICE_CHANCE = 0.25
#: Most that one request holds.
LIMITS = Limits(max_rows=4, max_cells=2)


class ModelConfigMaps:
    """`ots_tunnel.spark.cluster.ConfigMaps` over the model of the API server.

    Args:
        is_known: whether the driver's pod still exists.
    """

    def __init__(self, fleet: SparkFleet, is_known: Callable[[], bool]) -> None:
        self._fleet = fleet
        self._is_known = is_known
        self._place = "/api/v1/namespaces/shop/configmaps"

    def get(self, name: str) -> Manifest | None:
        """See `ConfigMaps.get`."""
        try:
            return self._call("GET", f"{self._place}/{name}")
        except OwnershipLost:
            return None

    def make(self, config_map: Manifest) -> None:
        """See `ConfigMaps.make`."""
        with suppress(OwnershipLost):
            self._call("POST", self._place, config_map)

    def replace(self, config_map: Manifest) -> Manifest:
        """See `ConfigMaps.replace`."""
        return self._call("PUT", f"{self._place}/{config_map['metadata']['name']}", config_map)

    def _call(self, method: str, path: str, body: Manifest | None = None) -> Manifest:
        if self._fleet.loop.now < self._fleet.spark.api_away_until:
            raise ServerUnavailable("OTSServerUnavailable", "the API server does not answer", http_status=503)
        if not self._is_known():
            raise ServiceError("Unauthorized", "the pod of the token is gone", http_status=401)
        try:
            return self._fleet.api.call(Request(method, path, body, manager="spark-driver"))
        except Refusal as refusal:
            raise OwnershipLost(refusal.message) from refusal


class Attempt:
    """A driver with its executors.

    Args:
        app: the application as it was submitted.
        number: of this attempt.
    """

    def __init__(self, fleet: SparkFleet, app: Manifest, number: int, chance: random.Random) -> None:
        self._fleet = fleet
        self._app = app
        self._chance = chance
        self._name = app["metadata"]["name"]
        self._number = number
        self.driver = f"{self._name}-driver"
        #: Pods whose process runs.
        self.alive: set[str] = set()
        #: Executors of this attempt, in the order of their start, to the state that the Spark operator shows.
        self.executors: dict[str, str] = {}
        self._tasks: dict[str, set[asyncio.Task[Report | None]]] = {}
        #: What tasks that have succeeded report.
        self._reports: list[Report] = []
        #: Where tasks end before their split does; apart from the chance of everything else.
        self._slices = random.Random(f"slices {fleet.scenario.seed} {number}")
        #: Executors on lost nodes.
        self._lost: set[str] = set()
        #: uid of the driver's pod; empty before its start.
        self._uid = ""
        #: Exit code of the driver; None while it runs.
        self.code: int | None = None
        self.is_running = False
        self._driving = asyncio.create_task(self._drive(), name=f"driver {number}")

    # What befalls it

    def kill(self, pod: str, code: int = 137) -> None:
        """A pod's process is killed."""
        if pod not in self.alive:
            return
        self.alive.discard(pod)
        self._show(pod, code)
        for task in self._tasks.pop(pod, ()):
            task.cancel()
        if pod == self.driver:
            self._end(code)

    def vanish(self, pod: str, *, shown: bool) -> None:
        """The node of an executor is lost: its process goes on; its object goes, or is shown as running for ever."""
        if pod in self.executors and pod in self.alive:
            self.alive.discard(pod)
            self._lost.add(pod)
            self._tasks.pop(pod, None)
            if not shown:
                self._fleet.api.finalize(("Pod", "shop", pod))

    @property
    def is_cut_off(self) -> bool:
        """Whether the node of the driver is lost while its process goes on."""
        return self.driver in self._lost

    def cut_off(self) -> None:
        """The nodes of all pods are lost: their objects go, their processes go on and see each other."""
        self._lost |= self.alive
        for pod in self.alive:
            self._fleet.api.finalize(("Pod", "shop", pod))

    def stop(self) -> None:
        """Kill every pod that is left, and remove their objects; nobody reaches one on a lost node."""
        if self.is_cut_off:
            return
        for pod in [*self.alive]:
            self.kill(pod)
        self._end(137)
        for pod in (self.driver, *self.executors):
            self._fleet.api.finalize(("Pod", "shop", pod))

    # The driver

    async def _drive(self) -> None:
        try:
            await asyncio.sleep(self._chance.uniform(1, 6))
            self._start(self.driver)
            self.is_running = True
            await asyncio.sleep(self._chance.uniform(1, 6))
            record = self._load()
            for _ in range(EXECUTORS):
                self._begin_executor()
            self._end(await self._copy(record))
        except (TunnelError, KeyError) as error:
            self._fleet.story.tell(self.driver, "%s", error)
            self._end(1)

    def _load(self) -> ProgressRecord:
        documents = self._fleet.store.read(("ConfigMap", "shop", names.snapshot_config_name("orders")))
        if documents is None:
            raise KeyError("the document of the driver is not there")
        document: dict[str, Any] = yaml.safe_load(documents["data"][SNAPSHOT_FILE])
        config = ProgressConfig.model_validate(document["progress"], by_alias=True, by_name=False)
        clock = self._fleet.service.clock.now
        calls, loop = ModelConfigMaps(self._fleet, self._is_known), self._fleet.loop
        record = ProgressRecord(
            calls,
            config,
            clock,
            lambda seconds: None,
            lambda: loop.now,
            f"driver {self._uid}",
            write_deadline=document["writeDeadlineSeconds"],
        )
        record.load()
        if record.splits is None:
            bounds = tuple(encode_primary_key((("pk", bound),)) for bound in BOUNDS)
            record.freeze(*freeze(SplitList(("pk",), bounds)))
        return record

    def _is_known(self) -> bool:
        found = self._fleet.store.read(("Pod", "shop", self.driver))
        return found is not None and found["metadata"]["uid"] == self._uid

    async def _copy(self, record: ProgressRecord) -> int:
        """Run one job with a task for every split that is not recorded; return the exit code."""
        assert record.splits is not None
        left = {split.index: split for split in record.pending()}
        failures = 0
        while left:
            split = left[sorted(left)[self._chance.randrange(len(left))]]
            pods = [pod for pod in self.executors if pod in self.alive]
            if not pods:
                await self._look(record, 2)
                self._begin_executor()
                continue
            pod = self._chance.choice(pods)
            task = asyncio.create_task(self._task(split, pod), name=f"split {split.index}")
            self._tasks.setdefault(pod, set()).add(task)
            while pod in self.alive and not task.done():
                await self._look(record, 0.5, task)
            report = task.result() if task.done() and not task.cancelled() else None
            if report is None:
                failures += 1
                if failures > 8:
                    return 1
                continue
            self._reports.append(report)
            del left[split.index]
            if report.cursor is not None:
                left[split.index] = replace(split, start=report.cursor)
        record.mark(self._reports)
        return 0

    async def _look(self, record: ProgressRecord, seconds: float, *tasks: asyncio.Task[Report | None]) -> None:
        """Wait, and look as the driver does while its job runs."""
        await asyncio.wait((*tasks, asyncio.create_task(asyncio.sleep(seconds))), return_when=asyncio.FIRST_COMPLETED)
        record.check()
        try:
            record.mark(self._reports)
        except OwnershipLost:
            raise
        except TunnelError:
            return  # it tries again with the next look

    async def _task(self, split: Split, pod: str) -> Report | None:
        """Copy a part of a split, or all; return how far it came, which nobody asks for on a lost node.

        None says that it was too late.
        """
        begun, loop = self._fleet.loop.now, self._fleet.loop
        deadline = self._fleet.write_deadline
        rows = list(self._rows(split))
        for start in range(0, len(rows), 4):
            await asyncio.sleep(self._chance.uniform(0.2, 12))
            if self._fleet.is_slow or pod in self._lost:
                await asyncio.sleep(self._chance.uniform(20, 200))
            if loop.now >= begun + SPLIT_DEADLINE - deadline:
                self._fleet.story.tell(pod, "split %d was not copied in time", split.index)
                return None
            effect, pieces = asyncio.Event(), [_pieces(row) for _, row in rows[start : start + 4]]
            first = [changes[0] for changes in pieces]
            loop.after(self._chance.uniform(0, deadline), self._take_effect, first, effect)
            self._befall_sender(pod)
            await effect.wait()
            for change in (change for changes in pieces for change in changes[1:]):
                self._write_rows([change])
            if start + 4 < len(rows) and self._slices.random() < SLICE_CHANCE:
                return Report(split.index, split.start, (("pk", rows[start + 4][0]),), 0, 0)
        return Report(split.index, split.start, None, 0, 0)

    def _befall_sender(self, pod: str) -> None:
        """What an act has in store for the next executor that sends rows."""
        strikes = self._fleet.spark.strikes
        if not strikes or pod in self._lost:
            return
        how = strikes.popleft()
        self._fleet.story.tell("act", "  %s: %s, with rows on their way", how, pod)
        self._fleet.loop.after(0, self.kill if how == KILL else partial(self.vanish, shown=False), pod)

    def _rows(self, split: Split) -> Iterator[tuple[str, bytes]]:
        """Keys and images of the rows of a split from where it stands, as they are now."""
        (_, low), (_, high) = split.start[0], split.end[0]
        table = self._fleet.service.emulator.instances[SOURCE].tables[TABLE]
        for found, image in table.scan(BOTTOM_KEY, TOP_KEY, int(self._fleet.service.clock.now() * 1000)):
            key = found[0].decode()
            if value_order(low) <= value_order(key) < value_order(high):
                yield key, image

    def _take_effect(self, changes: list[RowChange], effect: asyncio.Event) -> None:
        self._fleet.judge_copy(len(changes))
        self._write_rows(changes)
        effect.set()

    def _write_rows(self, changes: list[RowChange]) -> None:
        if changes and COPY in self._fleet.service.emulator.instances:
            self._fleet.service.call(COPY, "BatchWriteRow", batch_write_request(TABLE, changes))

    # Pods

    def _begin_executor(self) -> None:
        if self.is_cut_off:
            return
        pod = f"{self._name}-{self._number}-exec-{len(self.executors) + 1}"
        self.executors[pod] = "RUNNING"
        self._start(pod)

    def _start(self, pod: str) -> None:
        app = self._app["metadata"]
        owner = {
            "apiVersion": self._app["apiVersion"],
            "kind": self._app["kind"],
            "name": app["name"],
            "uid": app["uid"],
        }
        part = "driver" if pod == self.driver else "executor"
        labels = {LABEL: self._name, "spark-role": part, **names.labels("orders", names.ROLE_SNAPSHOT)}
        metadata = {"name": pod, "namespace": "shop", "labels": labels, "ownerReferences": [owner]}
        body = {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": {"containers": [{"name": "spark"}]}}
        self.alive.add(pod)
        stored = self._fleet.api.call(Request("POST", "/api/v1/namespaces/shop/pods", body, manager="spark"))
        if pod == self.driver:
            self._uid = stored["metadata"]["uid"]
        self._write(pod, {"phase": "Running", "containerStatuses": [{"name": "spark", "state": {"running": {}}}]})

    def _show(self, pod: str, code: int) -> None:
        """Show the end of a pod."""
        if pod in self.executors:
            self.executors[pod] = "FAILED" if code else "COMPLETED"
        state = {"terminated": {"exitCode": code, "finishedAt": timestamp(self._fleet.service.clock.now())}}
        phase = "Failed" if code else "Succeeded"
        self._write(pod, {"phase": phase, "containerStatuses": [{"name": "spark", "state": state}]})

    def _write(self, pod: str, status: Manifest) -> None:
        if pod not in self._lost and ("Pod", "shop", pod) in self._fleet.store.objects:
            path = f"/api/v1/namespaces/shop/pods/{pod}/status"
            patch = "application/merge-patch+json"
            self._fleet.api.call(Request("PATCH", path, {"status": status}, content=patch, manager="kubelet"))

    def _end(self, code: int) -> None:
        """The driver ends, and its executors with it; one on a lost node does not hear of it."""
        if self.code is not None:
            return
        self.code = code
        for pod in [*self.alive]:
            self.alive.discard(pod)
            self._show(pod, code)
            for task in () if pod in self._lost else self._tasks.pop(pod, ()):
                task.cancel()
        if asyncio.current_task() is not self._driving:
            self._driving.cancel()


def _pieces(image: bytes) -> list[RowChange]:
    """The changes that write one row, in their order."""
    record = Record(Action.PUT, HEADER + image)
    return [change.row for change in changes_of(record, LIMITS, Omissions(), None, may_overlap=True)]
