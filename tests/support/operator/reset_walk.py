"""Random walks of one object through resets: passes that die anywhere, people and GitOps that do what they like.

The plan and the status are the operator's own; what they act on is an `Account`. A walk is repeated by its seed.
"""

from __future__ import annotations

import json
import random
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from ots_tunnel.model import StreamConfig, TunnelType
from ots_tunnel_operator import names
from ots_tunnel_operator.plan.actions import (
    Action,
    ApplyObject,
    CreateTunnel,
    DeleteTunnel,
    EnsureDestination,
    Plan,
    RecordStatus,
    ScaleDown,
    SetReplicas,
)
from ots_tunnel_operator.plan.planner import plan
from ots_tunnel_operator.report.status import build_status
from ots_tunnel_operator.times import parse_time, timestamp
from ots_tunnel_operator.world.service import Table
from ots_tunnel_operator.world.world import World
from tests.support.operator.reset_account import RETENTION, Account, Destination
from tests.support.operator.worlds import (
    NOW,
    SCHEMA,
    SETTINGS,
    assessed,
    deployment,
    pod,
    report_channel,
    resource,
    world,
)

DAY = 86_400.0
#: Steps of one pass, as the operator's own.
MAX_STEPS = 12
#: Difference of times of the status, which have whole seconds.
ROUNDED = 2.0


def merged(before: Mapping[str, Any], change: Mapping[str, Any]) -> dict[str, Any]:
    """A merge patch."""
    found = dict(before)
    for key, value in change.items():
        nested = isinstance(value, Mapping)
        found[key] = merged(found.get(key) or {}, value) if nested else value
    return {key: value for key, value in found.items() if value is not None}


class Walk:
    """One object of type BaseAndStream with a table as its sink."""

    def __init__(self, seed: int) -> None:
        self._chance = random.Random(f"resets:{seed}")
        self._account = Account()
        self._status: dict[str, Any] = {}
        self._now = NOW
        self._asked: list[str] = []
        self._annotation = ""
        self._is_suspended = False
        self._generation = 1
        self._replicas: int | None = None
        self._document = ""
        self._pods = 0
        self._decided = Plan()
        self.story: list[str] = []
        self.done = 0

    def go(self, steps: int) -> str:
        """Walk; what the status claims although it is not so, empty where there is nothing."""
        for _ in range(steps):
            if self._chance.random() < 0.35:
                self._meddle()
            self._pass()
            self._pods = self._replicas or 0
            if self._pods and self._reads_the_tunnel() and self._chance.random() < 0.7:
                self._account.consume(self._now)
            self._now += self._chance.choice([5, 20, 600, 3600])
            if wrong := self._wrong():
                return wrong
        return ""

    def _reads_the_tunnel(self) -> bool:
        """Whether the workers' document names the tunnel that exists: they read no other one of its name."""
        stream = self._account.stream
        return stream is not None and f"{stream.name}\n" in self._document

    def _tell(self, text: str) -> None:
        self.story.append(f"{self._now - NOW:8.0f} {text}")

    def _world(self) -> World:
        of = resource(self._status, suspend=self._is_suspended)
        annotations = {names.ANNOTATION_RESET: self._annotation} if self._annotation else {}
        update = {"annotations": annotations, "generation": self._generation}
        metadata = of.object.metadata.model_copy(update=update)
        stream = self._account.stream
        told = (report_channel(f"c-{stream.name}", consumed_up_to=stream.until),) if stream and stream.until else ()
        workers = {"replicas": self._pods, "readyReplicas": self._pods, "updatedReplicas": self._pods}
        return world(
            replace(of, object=of.object.model_copy(update={"metadata": metadata})),
            now=self._now,
            source=Table(SCHEMA, stream_retention_seconds=RETENTION, stream_start=NOW - 30 * DAY),
            destination=self._account.seen_table(),
            tunnel=self._account.seen_tunnel(self._now, is_consumed=bool(self._pods)),
            pods=tuple(pod(f"pod-{number + 1}", *told) for number in range(self._pods)),
            children={} if self._replicas is None else deployment(self._replicas, **workers),
        )

    def _pass(self) -> None:
        for _ in range(MAX_STEPS):
            seen = self._world()
            found = assessed(seen)
            self._decided = decided = plan(seen, found, SETTINGS)
            if decided.again:
                self._status = build_status(seen, found, decided)
            lives = len(decided.actions)
            if decided.actions and self._chance.random() < 0.08:
                lives = self._chance.randrange(len(decided.actions) + 1)
                self._tell("the operator dies")
            if not all([self._act(action) for action in decided.actions[:lives]]) or lives < len(decided.actions):
                return
            if decided.again and decided.problem is None:
                continue
            shown = replace(seen, resource=replace(seen.resource, status=self._status))
            self._status = build_status(shown, found, decided)
            return
        raise AssertionError(f"no end after {MAX_STEPS} steps: {self._decided}")

    def _act(self, action: Action) -> bool:
        """Carry out an action; False where the service refuses it."""
        account = self._account
        match action:
            case RecordStatus(change):
                self._status = merged(self._status, change)
                if told := change.get("reset"):
                    self._tell(f"{told.get('state')} {told.get('token')}: {told.get('message')}")
                    self.done += told.get("state") == "Done"
            case EnsureDestination() if account.destination is None:
                account.destination = Destination(self._now)
            case CreateTunnel(kind, config, withdrawal):
                if account.stream is not None or self._chance.random() < 0.5:
                    self._status = merged(self._status, withdrawal)
                    return False
                account.create(kind, config if kind is TunnelType.Stream else None, self._now, is_ours=True)
            case DeleteTunnel(name) if account.stream is not None and account.stream.name == name:
                account.stream = None
            case _:
                self._act_on_workers(action)
        return True

    def _act_on_workers(self, action: Action) -> None:
        match action:
            case ScaleDown():
                self._replicas = 0
            case SetReplicas(replicas):
                self._replicas = replicas
            case ApplyObject(manifest) if manifest["kind"] == "Deployment":
                self._replicas = manifest["spec"]["replicas"]
            case ApplyObject(manifest) if manifest["kind"] == "ConfigMap":
                self._document = manifest["data"]["worker.yaml"]

    def _meddle(self) -> None:
        """Somebody does something."""
        chance, account = self._chance, self._account
        what = chance.choices(range(7), (25, 30, 8, 8, 6, 9, 5))[0]
        if what == 0:
            self._suspend(not self._is_suspended)
        elif what == 1:
            self._ask()
        elif what == 2 and self._asked:
            self._annotation = chance.choice(self._asked)
            self._tell(f"GitOps puts back {self._annotation}")
        elif what == 3:
            account.stream = None
            self._tell("the tunnel is deleted")
        elif what == 4 and account.stream is not None:
            kind = chance.choice([TunnelType.Stream, TunnelType.BaseAndStream])
            config = StreamConfig(earliest=False, start_offset_ns=0, end_offset_ns=0)
            account.create(kind, config if kind is TunnelType.Stream else None, self._now, is_ours=False)
            self._tell(f"somebody creates another tunnel, {kind.name}")
        elif what == 5:
            account.destination = Destination(self._now) if account.destination is None else None
            self._tell(f"the destination is {'dropped' if account.destination is None else 'created by somebody'}")
        elif what == 6:
            self._now += chance.choice([1, 3, 8]) * DAY

    def _suspend(self, is_suspended: bool) -> None:
        self._is_suspended = is_suspended
        self._generation += 1
        self._tell(f"suspend is {is_suspended}")

    def _ask(self) -> None:
        chance = self._chance
        form = chance.choice(["NewBase", "Rewind", "NewTunnel"])
        request = {"token": f"k{len(self._asked)}", "form": form}
        request["existingTunnel"] = chance.choice(["Keep", "Delete", "Delete"])
        if form == "Rewind" and chance.random() < 0.6:
            request["startTime"] = timestamp(self._now - chance.choice([60, 3600, 2 * DAY, 6 * DAY]))
        if form == "NewTunnel" and chance.random() < 0.3:
            request["existingTunnel"] = "Adopt"
        self._annotation = json.dumps(request)
        self._asked.append(self._annotation)
        self._tell(f"somebody asks {self._annotation}")
        if not self._is_suspended and chance.random() < 0.6:
            self._suspend(True)

    def _wrong(self) -> str:
        told, stream = self._status.get("reset") or {}, self._account.stream
        if told.get("state") == "Done" and stream is not None and stream.is_ours and told["tunnelId"] == stream.name:
            wanted = TunnelType.BaseAndStream if told["form"] == "NewBase" else TunnelType.Stream
            if stream.kind is not wanted:
                return f"{told['form']} is done, and the tunnel is of type {stream.kind.name}"
        return self._wrongly_ready()

    def _wrongly_ready(self) -> str:
        """What the destination lacks although the object is Ready and says nothing of it."""
        conditions = {item["type"]: item["status"] for item in self._status.get("conditions") or ()}
        table = self._account.destination
        if table is None or not self._pods or self._is_suspended or conditions.get("Ready") != "True":
            return ""
        if not table.has_base:
            return "the object is Ready, and existing rows are missing"
        if self._status.get("possibleGaps"):
            return ""
        lost = self._status.get("lost")
        start = 0.0 if lost is None else parse_time(lost.get("from")) or 0.0
        end = 0.0 if lost is None else parse_time(lost.get("to")) or self._now
        untold = [hole for hole in table.holes if hole[0] < start - ROUNDED or hole[1] > end + ROUNDED]
        return f"the object is Ready, {lost} is lost, and so is {untold}" if untold else ""
