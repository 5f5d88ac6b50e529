"""What happens to a fleet: faults of Kubernetes, of the operator, of workers and of the service, and what users do.

To add one: a row in `KINDS` with how often it is drawn, how long it may last, and what it does.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from ots_emulator.refusal import Refusal
from ots_emulator.server.faults import FaultRule
from tests.simulation.apiserver.refusal import Refusal as ApiRefusal
from tests.simulation.apiserver.refusal import injected, not_served
from tests.simulation.fleet.operator_process import TAKE_OVER
from tests.simulation.service import COPY, KEY, SOURCE, TABLE

if TYPE_CHECKING:
    from tests.simulation.fleet.fleet import Fleet
    from tests.simulation.fleet.worker_program import WorkerProgram


@dataclass(frozen=True, slots=True)
class Act:
    """One event.

    Args:
        at: seconds from the beginning.
        kind: a name in `KINDS`.
        target: number of the pod, the call or the count that it is about.
        seconds: how long it lasts.
        value: what the kind needs besides.
    """

    at: float
    kind: str
    target: int = 0
    seconds: float = 0.0
    value: str = ""

    def __str__(self) -> str:
        parts = [f"{self.kind} {self.target}"]
        parts += [f"{self.seconds:.1f} s"] if self.seconds else []
        parts += [self.value] if self.value else []
        return ", ".join(parts)


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of event; `seconds` are the least and the most that it lasts."""

    apply: Callable[[Fleet, Act], None]
    weight: int = 2
    seconds: tuple[float, float] = (0.0, 0.0)
    values: tuple[str, ...] = ("",)

    def draw(self, chance: random.Random, name: str, at: float) -> Act:
        """An event of this kind."""
        least, most = self.seconds
        seconds = round(least + (most - least) * chance.random() ** 2, 3)
        return Act(round(at, 3), name, chance.randrange(12), seconds, chance.choice(self.values))


def _program(fleet: Fleet, act: Act) -> WorkerProgram | None:
    programs = fleet.programs()
    return programs[act.target % len(programs)] if programs else None


# The operator and its calls


def _kill_operator(fleet: Fleet, act: Act) -> None:
    fleet.operator.end(act.seconds, act.target % 2 == 1)


def _second_operator(fleet: Fleet, act: Act) -> None:
    fleet.turns.begin(act.seconds)


def _crash_at_write(fleet: Fleet, act: Act) -> None:
    fleet.fates.crash(act.target, before=act.value == "before", away=act.seconds, orderly=act.target % 2 == 1)


def _refuse(fleet: Fleet, act: Act) -> None:
    status, _, what = act.value.partition(" ")
    fleet.fates.refuse(injected(int(status)), fleet.loop.now + act.seconds, what)


def _not_served(fleet: Fleet, act: Act) -> None:
    fleet.disturb(fleet.loop.now + act.seconds)
    fleet.fates.refuse(not_served(act.value), fleet.loop.now + act.seconds, act.value)
    fleet.watches.break_all()


def _refuse_watches(fleet: Fleet, act: Act) -> None:
    """What kopf lists and watches is refused for longer than it repeats a call, and the watches that are open break."""
    fleet.disturb(fleet.loop.now + act.seconds)
    fleet.fates.refuse(injected(int(act.value)), fleet.loop.now + act.seconds, "tablestoretunnels")
    fleet.watches.break_all()


def _slow_api(fleet: Fleet, act: Act) -> None:
    fleet.fates.slow_until = fleet.loop.now + act.seconds


def _lose_answers(fleet: Fleet, act: Act) -> None:
    fleet.fates.lost += act.target + 1


def _stale_reads(fleet: Fleet, act: Act) -> None:
    fleet.fates.stale_until = fleet.loop.now + act.seconds


def _break_watches(fleet: Fleet, act: Act) -> None:
    fleet.disturb(fleet.loop.now)
    fleet.watches.break_all()


def _compact(fleet: Fleet, act: Act) -> None:
    fleet.disturb(fleet.loop.now)
    fleet.store.compact()
    fleet.watches.break_all()


def _miss_deletion(fleet: Fleet, act: Act) -> None:
    """A pod is deleted while no watch can be opened, and the versions in between are gone afterwards."""
    fleet.watches.break_all()
    fleet.fates.refuse(injected(500), fleet.loop.now + act.seconds)
    _delete_pod(fleet, act)
    fleet.loop.after(act.seconds - 0.1, fleet.store.compact)


def _claim_elsewhere(fleet: Fleet, act: Act) -> None:
    fleet.strangers.claim(act.seconds)


def _late_events(fleet: Fleet, act: Act) -> None:
    fleet.late_events_until = fleet.loop.now + act.seconds
    fleet.disturb(fleet.late_events_until)


# Workers


def _kill_worker(fleet: Fleet, act: Act) -> None:
    program = _program(fleet, act)
    if program is not None:
        program.kill()


def _pause_worker(fleet: Fleet, act: Act) -> None:
    program = _program(fleet, act)
    if program is not None:
        program.process.pause()
        fleet.loop.after(act.seconds, fleet.resume, program.process)


def _delete_pod(fleet: Fleet, act: Act) -> None:
    pods = list(fleet.store.all("Pod"))
    if pods:
        metadata = pods[act.target % len(pods)]["metadata"]
        fleet.user("DELETE", f"/api/v1/namespaces/{metadata['namespace']}/pods/{metadata['name']}")


def _unreachable(fleet: Fleet, act: Act) -> None:
    fleet.unreachable_until = fleet.loop.now + act.seconds


def _hide_one(fleet: Fleet, act: Act) -> None:
    program = _program(fleet, act)
    if program is not None:
        program.hidden_until = fleet.loop.now + act.seconds


def _lossy_pages(fleet: Fleet, act: Act) -> None:
    fleet.lossy_until, fleet.lossy_how = fleet.loop.now + act.seconds, act.value


def _slow_cluster(fleet: Fleet, act: Act) -> None:
    fleet.slow_cluster_until = fleet.loop.now + act.seconds


# The network and the service


def _dark(fleet: Fleet, act: Act) -> None:
    program = _program(fleet, act)
    if program is None:
        return
    for host in (SOURCE, COPY):
        path = fleet.network.path(program.process.machine, f"{host}.region")
        path.there.dark_until = path.back.dark_until = fleet.loop.now + act.seconds


def _operator_dark(fleet: Fleet, act: Act) -> None:
    for host in (SOURCE, COPY):
        path = fleet.network.path("operator", f"{host}.region")
        path.there.dark_until = path.back.dark_until = fleet.loop.now + act.seconds


def _errors(fleet: Fleet, act: Act) -> None:
    operation, code = act.value.split()
    until = fleet.service.clock.now() + act.seconds
    # the writers of the region have a key of their own
    rule = FaultRule(operation=operation, code=code, until=until, access_key_id=KEY.access_key_id)
    fleet.service.emulator.add_fault(rule)


def _split(fleet: Fleet, act: Act) -> None:
    fleet.service.emulator.split(SOURCE, TABLE)


def _merge(fleet: Fleet, act: Act) -> None:
    fleet.service.emulator.merge(SOURCE, TABLE)


# Users


def _scale(fleet: Fleet, act: Act) -> None:
    fleet.edit({"replicas": act.target % 5})


def _suspend(fleet: Fleet, act: Act) -> None:
    fleet.edit({"suspend": True})
    fleet.loop.after(act.seconds, fleet.edit, {"suspend": False})


def _edit_workers(fleet: Fleet, act: Act) -> None:
    fleet.edit({"workers": {"lanesPerChannel": act.target % 8 + 1}})


def _node_selector(fleet: Fleet, act: Act) -> None:
    selector = {"disk": "ssd"} if act.value == "set" else None
    fleet.edit({"workers": {"podTemplate": {"spec": {"nodeSelector": selector}}}})


def _edit_deployment(fleet: Fleet, act: Act) -> None:
    fleet.strangers.edit_deployment(act.value)


def _rival(fleet: Fleet, act: Act) -> None:
    fleet.strangers.apply_rival(act.seconds)


def _reapply(fleet: Fleet, act: Act) -> None:
    fleet.reapply(act.seconds)


def _spoil_secret(fleet: Fleet, act: Act) -> None:
    fleet.write_secret("wrong")
    fleet.loop.after(act.seconds, fleet.write_secret, "")


def _remove_secret(fleet: Fleet, act: Act) -> None:
    fleet.remove_secret()
    fleet.loop.after(act.seconds, fleet.write_secret, "")


_CODES = ("OTSServerBusy", "OTSServerUnavailable", "OTSInternalServerError")
_OPERATIONS = ("DescribeTunnel", "CreateTunnel", "ListTunnel", "GetCheckpoint", "Heartbeat", "BatchWriteRow", "*")

#: Drawn apart from the others (`scenario`), so that these come in every plot.
APART: Final = ("a kind is not served", "watches are refused", "pages get lost")

KINDS: Final[Mapping[str, Kind]] = {
    "kill the operator": Kind(_kill_operator, 4, TAKE_OVER),
    "the operator stays away": Kind(_kill_operator, 0, (80, 250)),
    "a second operator": Kind(_second_operator, 0, (150, 500)),
    "crash at a write": Kind(_crash_at_write, 5, TAKE_OVER, ("before", "after")),
    "API refuses": Kind(_refuse, 3, (1, 90), ("403", "409", "429", "500")),
    "API refuses a kind": Kind(
        _refuse, 4, (80, 260), ("403 pods", "500 pods", "403 secrets", "500 secrets", "500 status")
    ),
    "a deletion is missed": Kind(_miss_deletion, 2, (12, 40)),
    "another operator claims": Kind(_claim_elsewhere, 2, (60, 200)),
    "API is slow": Kind(_slow_api, 2, (5, 60)),
    "API answers get lost": Kind(_lose_answers, 3),
    "API reads are stale": Kind(_stale_reads, 2, (5, 60)),
    "watches break": Kind(_break_watches, 2),
    "versions are compacted": Kind(_compact, 2),
    "events are late": Kind(_late_events, 2, (10, 90)),
    "kill a worker": Kind(_kill_worker, 4),
    "pause a worker": Kind(_pause_worker, 2, (5, 120)),
    "delete a pod": Kind(_delete_pod, 3),
    "pages are unreachable": Kind(_unreachable, 2, (5, 240)),
    "one page is unreachable": Kind(_hide_one, 3, (20, 200)),
    "the cluster is slow": Kind(_slow_cluster, 2, (20, 120)),
    "dark": Kind(_dark, 3, (5, 90)),
    "dark for the operator": Kind(_operator_dark, 3, (5, 260)),
    "errors": Kind(_errors, 3, (1, 60), tuple(f"{name} {code}" for name in _OPERATIONS for code in _CODES)),
    "split": Kind(_split, 2),
    "merge": Kind(_merge, 1),
    "scale": Kind(_scale, 3),
    "suspend": Kind(_suspend, 3, (5, 400)),
    "edit workers": Kind(_edit_workers, 2),
    "edit the node selector": Kind(_node_selector, 2, values=("set", "remove")),
    "somebody edits the Deployment": Kind(_edit_deployment, 2, values=("set", "remove", "replicas")),
    "another object on the tunnel": Kind(_rival, 4, (200, 400)),
    "delete and apply again": Kind(_reapply, 2, (0, 60)),
    "a kind is not served": Kind(_not_served, 0, (5, 150), ("tablestoretunnels", "deployments", "pods")),
    "watches are refused": Kind(_refuse_watches, 0, (60, 200), ("500", "503")),
    "pages get lost": Kind(_lossy_pages, 0, (20, 300), ("lost", "cut")),
    "spoil the secret": Kind(_spoil_secret, 1, (5, 120)),
    "remove the secret": Kind(_remove_secret, 1, (5, 120)),
}


def happen(fleet: Fleet, act: Act) -> None:
    """Apply an event; one that is not possible now, such as a merge of one partition, is left out."""
    fleet.story.tell("act", "%s", act)
    try:
        fleet.kinds[act.kind].apply(fleet, act)
    except (Refusal, ApiRefusal) as refusal:
        fleet.story.tell("act", "  not possible: %s", refusal)
