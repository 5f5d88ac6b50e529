"""One region with Kubernetes: API server, controllers, kubelet, operator, workers, service, users."""

from __future__ import annotations

import asyncio
import base64
import random
from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar

from ots_emulator.settings import AfterRetention
from ots_tunnel.model import ChannelStatus
from ots_tunnel_operator import names
from ots_tunnel_operator.kube.watched import SPARK_LABEL
from ots_tunnel_operator.times import timestamp
from tests.simulation.apiserver.api import APPLY, Api, Request
from tests.simulation.apiserver.client import MERGE, ModelCluster
from tests.simulation.apiserver.store import Manifest, Store
from tests.simulation.apiserver.watches import Watches
from tests.simulation.cluster.controllers import Controllers
from tests.simulation.cluster.deployments import Deployments
from tests.simulation.cluster.kubelet import Kubelet
from tests.simulation.fleet import tables
from tests.simulation.fleet.acts import KINDS, Kind, happen
from tests.simulation.fleet.claims import Claims, condition
from tests.simulation.fleet.endings.busy import Busy
from tests.simulation.fleet.endings.epilogues import Epilogues
from tests.simulation.fleet.endings.exchanged import Exchanged
from tests.simulation.fleet.endings.farewell import Farewell
from tests.simulation.fleet.endings.forestalled import Forestalled
from tests.simulation.fleet.endings.left_out import LeftOut
from tests.simulation.fleet.endings.losses import RETENTION_HOURS, Losses
from tests.simulation.fleet.endings.misconfigured import Misconfigured
from tests.simulation.fleet.endings.older_crd import OlderCrd
from tests.simulation.fleet.endings.pod_trouble import PodTrouble
from tests.simulation.fleet.endings.resets import Resets
from tests.simulation.fleet.endings.revoked import Revoked
from tests.simulation.fleet.endings.scaled_down import ScaledDown
from tests.simulation.fleet.endings.unheard import Unheard
from tests.simulation.fleet.endings.upgraded import Upgraded
from tests.simulation.fleet.evidence import Evidence
from tests.simulation.fleet.fates import Fates
from tests.simulation.fleet.newcomers.afterwards import Afterwards
from tests.simulation.fleet.operator_process import OperatorProcess
from tests.simulation.fleet.outdated import Outdated
from tests.simulation.fleet.reports import Reports
from tests.simulation.fleet.scenario import FleetScenario
from tests.simulation.fleet.strangers import Strangers
from tests.simulation.fleet.turns import Turns
from tests.simulation.fleet.worker_program import WorkerProgram
from tests.simulation.machine.process import EPOCH, Process
from tests.simulation.service import COPY, KEY, SOURCE, TABLE, TUNNEL
from tests.simulation.telling import Telling
from tests.support.emulator.emulator_scene import create_table_request
from tests.support.ledger import Described, Entry
from tests.support.row_changes import VERSIONS

NAMESPACE, NAME, SECRET = "shop", "orders", "ots-credentials"
OBJECT = f"/apis/ots-tunnel.dev/v1alpha1/namespaces/{NAMESPACE}/tablestoretunnels/{NAME}"
SECRETS = f"/api/v1/namespaces/{NAMESPACE}/secrets"
CONFIG_MAPS = f"/api/v1/namespaces/{NAMESPACE}/configmaps"
USER = {"fieldManager": "kubectl", "force": "true"}
#: Seconds between two looks at the status.
LOOK_SECONDS = 5.0
#: Seconds without faults after which everything has to be right: a container in CrashLoopBackOff waits for 300 s.
SETTLING = 900.0
#: Seconds in which the operator may write nothing once everything is right.
QUIET = 120.0
#: Seconds before and after the end time in which more is written.
NEAR_THE_END = 40.0
#: Seconds for which a deletion waits for workers that do not end: their grace period at least.
DRAINING = 60.0
#: Seconds after which a deletion has to be over.
DELETING = 720.0


class Fleet(Telling):
    """Everything of one story."""

    #: Events that can happen.
    kinds: ClassVar[Mapping[str, Kind]] = KINDS
    #: A ConfigMap of somebody else, whose name the operator would like to have.
    foreign_name: ClassVar[str] = f"{NAME}-snapshot"

    def __init__(self, scenario: FleetScenario, folder: Path) -> None:
        seed = str(scenario.seed)
        super().__init__(
            seed,
            page_rows=20,
            tunnel_retention_hours=RETENTION_HOURS,
            after_retention=AfterRetention(scenario.after_retention),
        )
        self.scenario = scenario
        self.chance = random.Random(f"fleet:{seed}:life")
        self._folder = folder
        self.evidence = Evidence(self, "operator")
        self.path = OBJECT
        self._build_cluster(seed)
        self.claims = Claims(self, self.violate)
        self.late_events_until = 0.0
        self.unreachable_until = 0.0
        #: Until when half of the pages do not arrive: `lost` or `cut`.
        self.lossy_until, self.lossy_how = 0.0, ""
        self.slow_cluster_until = 0.0
        self._foreign: Manifest = {}
        self.strangers = Strangers(self)
        self._outdated = Outdated(self)
        self.epilogues = Epilogues(self)
        self.forestalled = Forestalled(self)
        self.losses = Losses(self)
        self.is_applied_again = False
        #: Whether everything that is written has to reach the destination.
        self.is_delivery_judged = True
        tables.install(self.service)

    def _build_cluster(self, seed: str) -> None:
        self._chance = chance = random.Random(f"cluster:{seed}")
        self.store = Store()
        self.api = Api(self.store, self._clock, lambda: f"{chance.getrandbits(64):016x}-uid")
        self.watches = Watches(self.store, self._event_delay, lambda: chance.uniform(20, 300))
        self.kubelet = Kubelet(
            self.api,
            self._clock,
            self._start_worker,
            self._pod_delay,
            self._stop_delay,
            lambda pod: not _is_worker(pod),
        )
        deployments = Deployments(self.api, self._clock, self._suffix)
        self.controllers = Controllers(self.api, deployments, self._controller_delay)
        self.fates = Fates(
            self.loop,
            random.Random(f"fates:{seed}"),
            lambda away, orderly: self.operator.end(away, orderly),
            self._judge,
        )
        reports = Reports(
            lambda address, path: self.page(address, path, self.evidence),
            lambda address: self.page_seconds(address, self.evidence),
        )
        self.operator = OperatorProcess(
            self.loop,
            self.story,
            seed,
            lambda: ModelCluster(self.api, self.watches, self.fates),
            reports,
            self.violate,
        )
        self._started: list[WorkerProgram] = []
        self.turns = Turns(self, seed)

    def counts(self) -> dict[str, int]:
        return {
            "looks": self.claims.looks,
            "writes to the API server": len(self.fates.writes),
            "claims": self.evidence.judged,
        }

    def witness(self, entry: Entry) -> None:
        if isinstance(entry, Described):
            for evidence in (self.evidence, self.turns.evidence):
                evidence.described(entry)
        if self.is_delivery_judged:
            super().witness(entry)

    def disturb(self, until: float) -> None:
        """Watches are disturbed until a time."""
        for evidence in (self.evidence, self.turns.evidence):
            evidence.disturb(until)

    def _judge(self, request: Request) -> None:
        """Judge a write that the operator sends."""
        self.forestalled.overtake(request)
        self.strangers.judge(request)
        self._outdated.judge(request)
        self.turns.judge(request, self.operator)

    def is_outdated(self, request: Request) -> bool:
        """Whether a write of the object will be refused: it names a version that is not the stored one any more."""
        version = ((request.body or {}).get("metadata") or {}).get("resourceVersion")
        found = self.stored()
        if version is None or request.path not in (self.path, f"{self.path}/status"):
            return False
        return found is None or found["metadata"]["resourceVersion"] != version

    # What is

    def stored(self) -> Manifest | None:
        """The object as the API server has it; it must not be changed."""
        return self.store.peek(("TablestoreTunnel", NAMESPACE, NAME))

    def stalled(self) -> str:
        """The reason of the condition Stalled; empty while it is not True."""
        return self.reason("Stalled")

    def reason(self, kind: str) -> str:
        """The reason of a condition; empty while it is not True."""
        status = (self.stored() or {}).get("status") or {}
        return next(
            (one["reason"] for one in status.get("conditions") or () if (one["type"], one["status"]) == (kind, "True")),
            "",
        )

    @property
    def starts(self) -> int:
        """How often a worker's container has been started."""
        return len(self._started)

    def programs(self) -> list[WorkerProgram]:
        """Containers that run."""
        found = [program for program in self.kubelet.processes.values() if isinstance(program, WorkerProgram)]
        return [program for program in found if program.labels.get(names.LABEL_NAME) == NAME]

    def refused(self) -> int:
        """Records that the workers of all times have counted as refused."""
        workers = (program.worker for program in self._started if program.worker is not None)
        return sum(worker.status.tally().records_refused for worker in workers)

    def addresses(self) -> dict[str, WorkerProgram]:
        """Containers that run, by the address of their pod."""
        ours = self.programs()
        return {
            address: program
            for address, program in self.kubelet.processes.items()
            if isinstance(program, WorkerProgram) and program in ours
        }

    def pods(self) -> list[Manifest]:
        """Pods of the object's workers; they must not be changed."""
        found = self.store.all("Pod", NAMESPACE)
        return [pod for pod in found if pod["metadata"]["labels"].get(names.LABEL_NAME) == NAME and _is_worker(pod)]

    @property
    def is_at_rest(self) -> bool:
        """Whether no pod of a worker exists; what else consumes for an object says its kind of story."""
        return not self.pods()

    def ready_pods(self) -> int:
        """Pods whose condition Ready is True and that are not being deleted."""
        return sum(
            not pod["metadata"].get("deletionTimestamp") and condition(pod.get("status") or {}, "Ready") == "True"
            for pod in self.pods()
        )

    def tunnel(self) -> Any:
        """The tunnel at the service; None where there is none."""
        found = self.service.emulator.instances[SOURCE].tunnels
        return next((tunnel for tunnel in found.values() if tunnel.name == TUNNEL), None)

    def owned(self, pod: str) -> int:
        """Number of channels that the worker of a pod owns."""
        tunnel, held = self.tunnel(), (ChannelStatus.OPEN, ChannelStatus.CLOSING)
        channels = [] if tunnel is None else [one for one in tunnel.channels.values() if one.status in held]
        return sum(pod in str(channel.owner) for channel in channels)

    def unowned(self) -> list[str]:
        """Channels that could be read and that nobody owns."""
        tunnel = self.tunnel()
        waiting = (ChannelStatus.CLOSE,)
        return [] if tunnel is None else [c.id[:8] for c in tunnel.channels.values() if c.shown_status in waiting]

    def orphaned(self) -> list[str]:
        """Channels that belong to a client of the object's workers that no longer runs."""
        tunnel, found = self.tunnel(), self.stored()
        tag = names.client_tag_prefix(found["metadata"]["uid"]) if found else ""
        living = {str(program.worker.status.client_id) for program in self.programs() if program.worker is not None}
        owned = [] if tunnel is None else [c for c in tunnel.channels.values() if c.status is ChannelStatus.OPEN]
        return [c.id[:8] for c in owned if str(c.owner).startswith(tag) and str(c.owner) not in living]

    def is_readable(self, channel_id: str) -> bool:
        """Whether a channel may be given to a worker: each of its parents has ended."""
        channels = self.tunnel().channels
        found = channels.get(channel_id)
        parents = [channels.get(parent) for parent in found.parents] if found is not None else []
        return all(parent is None or parent.status is ChannelStatus.TERMINATED for parent in parents)

    def missing_before(self, seconds: float) -> list[str]:
        """Entries of the log that are older than a time of the region and have not taken effect."""
        return [
            f"{place.key}: {place.number}"
            for places in self.history.entries.values()
            for place in places
            if place.committed < EPOCH + seconds and self.delivery.applied.get(place.key, 0) < place.number
        ]

    def missing_until_end(self) -> list[str]:
        """Entries up to the end time that have not taken effect; every entry without one."""
        return self.missing_before(self.scenario.end_after or self.loop.now)

    @property
    def is_operator_able(self) -> bool:
        """Whether an operator leads and nothing keeps it from seeing and writing."""
        path = [self.network.path("operator", f"{host}.region") for host in (SOURCE, COPY)]
        busy = (self.late_events_until, self.unreachable_until, self.lossy_until, self.fates.busy_until)
        dark = max(direction.dark_until for way in path for direction in (way.there, way.back))
        is_ours = not self.strangers.is_claimed and self.turns.is_served
        return (
            (self.operator.process or self.turns.second.process) is not None
            and is_ours
            and self.loop.now > max(*busy, dark)
        )

    @property
    def is_operator_dark(self) -> bool:
        """Whether the operator reaches neither source nor destination."""
        path = [self.network.path("operator", f"{host}.region") for host in (SOURCE, COPY)]
        return all(self.loop.now < way.there.dark_until for way in path)

    @property
    def is_suspended(self) -> bool:
        """Whether the object is to consume nothing."""
        found = self.stored()
        return found is not None and bool(found["spec"].get("suspend"))

    # What users do

    def user(self, method: str, path: str, body: Mapping[str, Any] | None = None, content: str = MERGE) -> Manifest:
        """A request of a user.

        Raises:
            Refusal: it is refused.
        """
        return self.api.call(Request(method, path, body, USER, content))

    def edit(self, spec: Mapping[str, Any]) -> None:
        """Change the spec of the object, if it exists."""
        if self.stored() is not None:
            self.story.tell("user", "edits %s", spec)
            self.user("PATCH", OBJECT, {"spec": spec})

    def reapply(self, pause: float) -> None:
        """Delete the object and apply it again once it is gone; only where its tunnel is kept."""
        found = self.stored()
        # who deletes it twice applies it once
        if self.scenario.deletion_policy == "Retain" and found and not found["metadata"].get("deletionTimestamp"):
            self.user("DELETE", OBJECT)
            self.loop.after(pause, self._apply_when_gone)

    def _apply_when_gone(self) -> None:
        if self.stored() is None:
            self.story.tell("user", "applies the object again")
            self.is_applied_again = True
            self.apply()
        else:
            self.loop.after(1.0, self._apply_when_gone)

    def write_secret(self, wrong: str = "") -> None:
        """Write the credentials."""
        values = {"accessKeyId": KEY.access_key_id, "accessKeySecret": wrong or KEY.access_key_secret}
        data = {name: base64.b64encode(value.encode()).decode() for name, value in values.items()}
        secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": SECRET}, "data": data}
        self.user("PATCH", f"{SECRETS}/{SECRET}", secret, APPLY)
        for folder in self._folder.glob(f"*/{SECRET}"):
            for name, value in values.items():
                (folder / name).write_text(value)

    def remove_secret(self) -> None:
        """Delete the credentials; mounted files stay, as the kubelet keeps them."""
        self.user("DELETE", f"{SECRETS}/{SECRET}")

    def resume(self, process: Process) -> None:
        """End a pause."""
        if not process.is_dead:
            process.resume()

    # The story

    async def tell(self) -> None:
        looking = await self._come_to_rest()
        await PodTrouble(self).happen()
        await ScaledDown(self).happen()
        await self.epilogues.replace_tunnel()
        await self.losses.happen()
        await Resets(self).happen()
        await Exchanged(self).happen()
        looking.cancel()
        await self._delete()
        self.losses.restore()
        await self.epilogues.delete_early()
        await self.epilogues.release_by_hand()
        await self.epilogues.delete_busy()
        await self.epilogues.delete_at_once()
        await self.forestalled.create_where_refused()
        await self.forestalled.create_a_child()
        await self.forestalled.edit_the_endpoint()
        await LeftOut(self).happen()
        await Misconfigured(self).happen()
        await Unheard(self).happen()
        await Revoked(self).happen()
        await Busy(self).happen()
        await Upgraded(self).happen()
        await self.epilogues.keep_off()
        self.stop_controllers()
        await OlderCrd(self).happen()
        await Afterwards(self).happen()

    async def _come_to_rest(self) -> asyncio.Task[None]:
        """Everything up to the rest after the last act; the task that goes on looking at the object."""
        scenario = self.scenario
        self._prepare()
        self._controlling = asyncio.create_task(self.controllers.run())
        looking = asyncio.create_task(self._look())
        self.operator.start()
        for act in scenario.acts:
            self.loop.after(act.at, happen, self, act)
        await self._write(scenario.length)
        self._end_faults()
        await self._settle()
        await self._stay_quiet()
        return looking

    def stop_controllers(self) -> None:
        """From now on nobody makes or ends pods."""
        self._controlling.cancel()

    def _prepare(self) -> None:
        self.service.call(SOURCE, "CreateTable", create_table_request(TABLE, max_versions=VERSIONS))
        self.service.emulator.set_partitions(SOURCE, TABLE, self.scenario.partitions)
        for key in self.key_names():
            for _ in range(self.chance.randint(0, 4)):
                self.history.write(key)
        metadata = {"name": self.foreign_name, "labels": {"app": "somebody-else"}}
        foreign = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"mine": "yes"}}
        self._foreign = self.user("PATCH", f"{CONFIG_MAPS}/{self.foreign_name}", foreign, APPLY)
        self.write_secret()
        self.apply()

    def apply(self, name: str = NAME, **changes: Any) -> None:
        """Apply an object on the tunnel; `changes` are fields of its spec."""
        scenario = self.scenario
        credentials = {"secretRef": {"name": SECRET}}
        tunnel: dict[str, Any] = {"name": TUNNEL, "type": scenario.tunnel}
        if scenario.end_after:
            tunnel["stream"] = {"startFrom": "Latest", "endTime": timestamp(EPOCH + scenario.end_after)}
        source = {"endpoint": "http://source.region", "instance": SOURCE, "table": TABLE, "credentials": credentials}
        sink = {"endpoint": "http://copy.region", "instance": COPY, "table": TABLE, "credentials": credentials}
        workers = {
            "heartbeatIntervalSeconds": scenario.interval,
            "heartbeatTimeoutSeconds": scenario.timeout,
            "checkpointIntervalSeconds": 2,
        }
        spec = {
            "source": {**source, "tunnel": tunnel},
            "sink": {"tablestore": sink},
            "replicas": scenario.replicas,
            "workers": workers,
            "deletionPolicy": scenario.deletion_policy,
            **changes,
        }
        body = {
            "apiVersion": "ots-tunnel.dev/v1alpha1",
            "kind": "TablestoreTunnel",
            "metadata": {"name": name, "namespace": NAMESPACE},
            "spec": spec,
        }
        self.user("PATCH", OBJECT.replace(NAME, name), body, APPLY)

    def key_names(self) -> list[str]:
        """Keys that writers write."""
        return [f"k{number:02}" for number in range(self.scenario.keys)]

    async def _write(self, until: float) -> None:
        keys, chance = self.key_names(), self.chance
        while self.loop.now < until:
            for _ in range(chance.randint(1, self.scenario.burst)):
                self.history.write(keys[chance.randrange(len(keys))])
            end = self.scenario.end_after
            # what is written right before and after the end is what a wrong completion loses
            haste = 5.0 if end and abs(self.loop.now - end) < NEAR_THE_END else 1.0
            await asyncio.sleep(self.scenario.pause / haste * chance.random() ** 2)

    async def _look(self) -> None:
        while True:
            await asyncio.sleep(LOOK_SECONDS)
            self.look()

    def look(self) -> None:
        """Judge what users see."""
        self.claims.look()
        self.judge_foreign()

    def judge_foreign(self) -> None:
        """Judge whether the ConfigMap of somebody else is as it was."""
        if self.store.peek(("ConfigMap", NAMESPACE, self.foreign_name)) != self._foreign:
            self.violate("foreign", "a ConfigMap of somebody else was changed or deleted")

    # The end

    def _end_faults(self) -> None:
        self.service.emulator.clear_faults()
        self.fates.clear()
        self.strangers.end()
        self.turns.end()
        self.story.tell("region", "the faults are over")
        self.loop.after(1.0, self._ask_for_workers)

    def _ask_for_workers(self) -> None:
        found = self.stored()
        if found is None or condition(found.get("status") or {}, "Completed") == "True":
            return
        if not found["spec"].get("replicas"):
            self.edit({"replicas": 1})

    async def _settle(self) -> None:
        # what is dark, or paused, ends by itself: what somebody does then is no unrest
        await asyncio.sleep(self.scenario.last_end - self.loop.now)
        until = max(self.loop.now, self.scenario.end_after) + self.scenario.timeout + SETTLING
        while unfit := self.unfit():
            if self.loop.now > until:
                self.violate("unstable", f"long after the last fault: {'; '.join(unfit)}")
                return
            await asyncio.sleep(2)
        self.story.tell("region", "everything is as it has to be")

    def unfit(self) -> list[str]:
        """What is not as it has to be without faults."""
        found = self.stored()
        if found is None or found["metadata"].get("deletionTimestamp"):
            return ["the object does not exist, or is being deleted"]
        missing = self.missing_until_end()
        unfit = [f"not copied: {', '.join(missing[:5])}"] if missing else []
        status = found.get("status") or {}
        unfit += self.strangers.unfit() + self.turns.unfit()
        if status.get("observedGeneration") != found["metadata"]["generation"]:
            unfit.append("the operator has not seen the last edit")
        unfit += [] if self.operator.process is not None else ["no operator leads"]
        if not self.is_applied_again and not (status.get("destination") or {}).get("createdByOperator"):
            unfit.append("the operator does not know that it has created the destination")
        if self.scenario.end_after:
            return unfit + self._unfit_after_the_end(status)
        return unfit + self._unfit_while_following(status, found["spec"].get("replicas", 1))

    def _unfit_after_the_end(self, status: Mapping[str, Any]) -> list[str]:
        unfit = [
            f"{kind} is {condition(status, kind) or 'absent'}: {_message(status, kind)}"
            for kind in ("Completed", "Ready")
            if condition(status, kind) != "True"
        ]
        return [*unfit, "workers run on"] if self.programs() else unfit

    def _unfit_while_following(self, status: Mapping[str, Any], wanted: int) -> list[str]:
        unfit = [
            f"{kind} is {condition(status, kind) or 'absent'}: {_message(status, kind)}"
            for kind in ("Ready", "SinkReady", "TunnelReady")
            if condition(status, kind) != "True"
        ]
        if (status.get("readyReplicas"), self.ready_pods()) != (wanted, wanted):
            unfit.append(f"{self.ready_pods()} of {wanted} pods, the status says {status.get('readyReplicas')}")
        unfit += self._unfit_rollout(wanted)
        # behind a gap that was accepted no object is caught up any more
        if not (status.get("lag") or {}).get("caughtUp") and not status.get("possibleGaps"):
            unfit.append("not caughtUp")
        if unowned := self.unowned():
            unfit.append(f"unowned: {', '.join(unowned)}")
        return unfit

    def _unfit_rollout(self, wanted: int) -> list[str]:
        """Whether the Deployment is being rolled out."""
        deployment = self.store.peek(("Deployment", NAMESPACE, NAME))
        if deployment is None:
            return ["there is no Deployment"]
        status = deployment.get("status") or {}
        shown = [status.get(key, 0) for key in ("observedGeneration", "replicas", "updatedReplicas")]
        is_over = shown == [deployment["metadata"]["generation"], wanted, wanted]
        return [] if is_over else [f"of {wanted} workers are there, and new: {shown[1:]}"]

    async def _stay_quiet(self) -> None:
        await asyncio.sleep(60)
        begun = self.loop.now
        await asyncio.sleep(QUIET)
        if later := [at for at in self.fates.writes if at > begun]:
            self.violate("restless", f"{len(later)} writes to the API server although nothing changed")
        elif unfit := self.unfit():
            self.violate("unstable", f"without any fault: {'; '.join(unfit)}")

    async def _delete(self) -> None:
        self.story.tell("user", "deletes the object")
        farewell = Farewell(self)
        farewell.begin()
        self.user("DELETE", OBJECT)
        began, until = self.loop.now, self.loop.now + DELETING
        had_tunnel = self.tunnel() is not None
        while left := self._left():
            farewell.look()
            if self.stored() is None and self.loop.now < began + DRAINING and (running := self.programs()):
                self.violate("deletion", f"the object went before {len(running)} workers had ended")
                return
            if self.loop.now > until:
                self.violate("deletion", f"left behind: {', '.join(left)}")
                return
            if had_tunnel and self.tunnel() is None and (running := self.programs()):
                self.violate("deletion", f"the tunnel was deleted under {len(running)} workers")
                return
            await asyncio.sleep(0.2)

    def _left(self) -> list[str]:
        kinds = ("TablestoreTunnel", "Deployment", "Pod")
        left = [f"{kind} {name}" for kind, space, name in self.store.objects if kind in kinds and space == NAMESPACE]
        left += [f"ConfigMap {NAME}-config"] if ("ConfigMap", NAMESPACE, f"{NAME}-config") in self.store.objects else []
        is_kept = self.scenario.deletion_policy == "Retain" or self.epilogues.has_replaced_tunnel
        is_kept = is_kept and not self.losses.is_table_gone
        if (self.tunnel() is not None) != is_kept:
            left.append("no tunnel" if is_kept else "the tunnel")
        return left

    # Parts of the cluster

    def _clock(self) -> float:
        return EPOCH + self.loop.now

    def _suffix(self) -> str:
        """The random end of a pod's name."""
        return f"{self._chance.getrandbits(24):06x}"

    def _event_delay(self) -> float:
        slow = self.loop.now < self.late_events_until
        return self._chance.uniform(0.5, 5.0) if slow else self._chance.uniform(0.0, 0.05)

    def _start_worker(self, pod: Manifest, address: str) -> WorkerProgram:
        name = f"{pod['metadata']['name'].removeprefix(f'{NAME}-')}.{len(self._started)}"
        program = WorkerProgram(self.loop, self.story, self.store, pod, name, self._folder, self.violate)
        self._started.append(program)
        return program

    def _pod_delay(self) -> float:
        """Seconds until a node starts a pod."""
        slow = self.loop.now < self.slow_cluster_until
        return self._chance.uniform(10, 60) if slow else self._chance.uniform(0.5, 4)

    def _stop_delay(self) -> float:
        """Seconds until a node tells a pod to end, as a preStop hook makes it."""
        return self._chance.uniform(2, 20) if self.loop.now < self.slow_cluster_until else 0.0

    def _controller_delay(self) -> float:
        slow = self.loop.now < self.slow_cluster_until
        return self._chance.uniform(0.5, 10) if slow else self._chance.uniform(0.02, 0.5)

    def page(self, address: str, path: str, evidence: Evidence) -> dict[str, Any]:
        """A page of the worker at an address, as an operator reads it.

        Raises:
            OSError: nobody answers.
        """
        program = self.kubelet.processes.get(address)
        page = None
        try:
            if not isinstance(program, WorkerProgram):
                raise ConnectionRefusedError(111, "Connection refused")
            if self._is_lost("cut"):
                raise ConnectionResetError(104, "Connection reset by peer")
            page = program.page(path)
        finally:
            evidence.showed(address, page)
        return page

    def _is_lost(self, how: str) -> bool:
        """Whether the answer of a page gets lost in this way."""
        return self.loop.now < self.lossy_until and how == self.lossy_how and self._chance.random() < 0.5

    def page_seconds(self, address: str, evidence: Evidence) -> float | None:
        """Seconds until a page arrives; None where it never does."""
        program = self.kubelet.processes.get(address)
        hidden = program.hidden_until if isinstance(program, WorkerProgram) else 0.0
        if self.loop.now < max(self.unreachable_until, hidden) or self._is_lost("lost"):
            evidence.showed(address, None)
            return None
        return self._chance.uniform(0.001, 0.05)


def _message(status: Mapping[str, Any], kind: str) -> str:
    return next((f"{c['reason']}: {c['message']}" for c in status.get("conditions") or () if c["type"] == kind), "")


def _is_worker(pod: Manifest) -> bool:
    """Whether a pod is not one of Spark, which runs its own."""
    return SPARK_LABEL not in (pod["metadata"].get("labels") or {})
