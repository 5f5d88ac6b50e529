"""How a Deployment moves to the wanted number of workers. Pure.

Theory of operation
-------------------
`course` takes the first case that applies:

    no Deployment, more wanted, none     the wanted number at once: nothing waits for a worker that is to come, and
                                         with none left there is nobody to hand a channel to
    pods that do no work                 as many fewer at once: they do not exist, or are not ready and own no channel;
                                         a ReplicaSet removes pods that are not ready before all others
    at rest for a heartbeat, or stuck    one worker fewer, in two passes: the first one names the worker with the fewest
                                         channels, by pod-deletion-cost; the next one, which sees that on the pod,
                                         lowers the number
    otherwise                            as it is

So each channel moves at most once for each worker that leaves, and at most one worker's channels are on their way.

Only the next worker to go carries a cost, and takes it along. Where the number rises again in between, or another
worker has fewer channels by then, it is taken away; an object that is as wanted costs no write. The cost counts only
where a ReplicaSet removes some of its pods, so one that an ended operator has left does nothing by itself.

Stuck means that something has moved for `longest_seconds` without any pod coming or going: a node that is lost, or a
rollout that does not go on. Then the next step is made nevertheless, with the event ChannelsUnsettled.

Everything follows from what is observed: a new operator goes on where the Deployment stands.
"""

from __future__ import annotations

from dataclasses import dataclass

from ots_tunnel_operator import names
from ots_tunnel_operator.api.spec import TunnelSpec
from ots_tunnel_operator.assess.lag import consumable
from ots_tunnel_operator.assess.reported import HELD
from ots_tunnel_operator.assess.scaling.foreign import rival_of_object
from ots_tunnel_operator.plan.actions import MarkPod, Warn
from ots_tunnel_operator.reasons import Reason
from ots_tunnel_operator.world.pod import Pod
from ots_tunnel_operator.world.service import Tunnel
from ots_tunnel_operator.world.world import World

#: Seconds by which a look may be late: two polls.
LATE_SECONDS = 30


@dataclass(frozen=True, slots=True)
class Course:
    """The next step: workers that the Deployment is to ask for now, costs to set before, and what it waits for."""

    replicas: int
    marks: tuple[MarkPod, ...] = ()
    waits: str = ""
    warning: Warn | None = None


def longest_seconds(spec: TunnelSpec) -> int:
    """Seconds after which a step does not wait any more: a worker drains in its grace period, the channels of one that
    was killed are free after the timeout, and given to the others within three heartbeats."""
    workers = spec.worker_settings
    settling = workers.heartbeat_timeout_seconds + 3 * workers.heartbeat_interval_seconds
    return workers.termination_grace_period_seconds + settling + LATE_SECONDS


def course(world: World, wanted: int) -> Course:
    """The next step to the wanted number of workers."""
    found = world.deployment
    asked = wanted if found is None else int(found["spec"].get("replicas", 1))
    if wanted >= asked or not wanted:
        # the last worker takes its cost along
        return Course(wanted, _marks(world, None) if wanted else ())
    living = [pod for pod in world.pods if pod.is_alive and not pod.deleting]
    working = [pod for pod in living if pod.ready or _channels(world, pod) != 0]
    if len(working) < asked:
        return Course(max(wanted, len(working)))
    spec, settling = world.resource.spec, world.settling
    is_calm = settling.calm_seconds >= spec.worker_settings.heartbeat_interval_seconds
    is_stuck = settling.stuck_seconds >= longest_seconds(spec)
    if not is_calm and not is_stuck:
        return Course(asked, waits=settling.moves or f"{spec.source.part}s have to rest for a heartbeat")
    next_to_go = min(working, key=lambda pod: (pod.ready, _channels(world, pod) or 0, -pod.created, pod.name))
    marks = _marks(world, next_to_go)
    if marks:
        return Course(asked, marks, f"{next_to_go.name} is the next to go")
    return Course(asked - 1, warning=None if is_calm else _unsettled(world))


def rival(world: World, wanted: int) -> Warn | None:
    """The event about another client that sets the Deployment, which is set back each time; None without one."""
    text = rival_of_object(world, wanted)
    return Warn(Reason.REPLICAS_MANAGED, text) if text else None


def _unsettled(world: World) -> Warn:
    seconds = longest_seconds(world.resource.spec)
    message = f"one worker fewer, although this has not ended within {seconds} s: {world.settling.moves}"
    return Warn("ChannelsUnsettled", message)


def _channels(world: World, pod: Pod) -> int | None:
    """Number of channels that a worker owns; None where nobody knows."""
    if isinstance(world.tunnel, Tunnel):
        # a client's id contains the name of its pod
        return sum(pod.name in str(channel.client_id or "") for channel in consumable(world.tunnel.description))
    return None if pod.report is None else sum(channel.state in HELD for channel in pod.report.channels)


def _marks(world: World, next_to_go: Pod | None) -> tuple[MarkPod, ...]:
    """What makes this pod, and no other, the next one to go; nothing where it is already."""
    living = [pod for pod in world.pods if pod.is_alive and not pod.deleting]
    former = [pod for pod in living if pod.deletion_cost == names.LEAVES_NEXT and pod is not next_to_go]
    marks = tuple(MarkPod(pod.name, _own_cost(world)) for pod in former)
    if next_to_go is None or next_to_go.deletion_cost == names.LEAVES_NEXT:
        return marks
    return (*marks, MarkPod(next_to_go.name, names.LEAVES_NEXT))


def _own_cost(world: World) -> str | None:
    """The cost that a pod has by workers.podTemplate; None without one."""
    template = (world.deployment or {}).get("spec", {}).get("template") or {}
    annotations = (template.get("metadata") or {}).get("annotations") or {}
    cost = annotations.get(names.ANNOTATION_DELETION_COST)
    return None if cost is None else str(cost)
