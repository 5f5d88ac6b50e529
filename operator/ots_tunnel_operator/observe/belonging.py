"""What workers tell about another tunnel is left out, before anything relies on it. Pure.

Pods are found by the object's name. After an object was deleted and applied again, pods of its predecessor may still
run, or may have left a termination message. They count as pods: they have to end like any other. But what they tell is
about their tunnel, and a possible gap that were taken over would be recorded for good.

    a report       is about this tunnel if it names the recorded one; where it names none, if its client has the
                   object's tag. Under Retain a predecessor's worker reads the same tunnel, and is believed
    a termination  names no tunnel. It is about this one if the pod is not older than the object, and the description
                   lists the channel. While the tunnel is not seen it waits: the pod still has it in the next look. Of a
                   shard that the stream has dropped, and whose lease is deleted, nothing is listed any more, and that
                   is the loss: there a pod with the document of the present workers is
                   believed
"""

from __future__ import annotations

from dataclasses import replace

from ots_tunnel_operator import names
from ots_tunnel_operator.world.pod import Origin, Pod
from ots_tunnel_operator.world.report import WorkerReport
from ots_tunnel_operator.world.resource import Resource
from ots_tunnel_operator.world.service import Tunnel
from ots_tunnel_operator.world.world import World


def with_own_reports(pods: tuple[Pod, ...], resource: Resource) -> tuple[Pod, ...]:
    """The pods; a report about another tunnel tells nothing but that the worker answers."""
    return tuple(
        pod if pod.report is None or _is_own(pod.report, resource) else replace(pod, report=_emptied(pod.report))
        for pod in pods
    )


def with_own_terminations(world: World) -> World:
    """The world without what workers of another tunnel ended with."""
    if not any(pod.gaps for pod in world.pods):
        return world
    channels = world.tunnel.description.channels if isinstance(world.tunnel, Tunnel) else ()
    listed = {str(channel.channel_id) for channel in channels}
    believed = _present_of_stream(world) if channels else frozenset()
    pods = (
        replace(pod, gaps=tuple(gap for gap in pod.gaps if gap.channel_id in listed or pod.name in believed))
        if _is_younger(pod, world)
        else replace(pod, gaps=())
        for pod in world.pods
    )
    return replace(world, pods=tuple(pods))


def _present_of_stream(world: World) -> frozenset[str]:
    """Names of the pods that read the present stream and table of leases; none of an object with a tunnel."""
    if world.resource.spec.source.stream is None or world.deployment is None:
        return frozenset()
    config = Origin.of(world.deployment["spec"].get("template") or {}).config
    return frozenset(pod.name for pod in world.pods if config and pod.origin.config == config)


def _is_own(report: WorkerReport, resource: Resource) -> bool:
    if report.tunnel_id:
        # a worker of a stream names the table of leases, which is the same whatever stream its leases are of
        leases = resource.spec.source.stream
        return report.tunnel_id == (resource.recorded_tunnel.get("id") if leases is None else leases.lease_table)
    return report.client_id.startswith(names.client_tag_prefix(resource.uid))


def _emptied(report: WorkerReport) -> WorkerReport:
    known = replace(report, rows_per_second=None, busy_percent=None, error=None, completed=False, refused=None)
    return replace(known, channels=(), gaps=())


def _is_younger(pod: Pod, world: World) -> bool:
    """Whether a pod may be one of this object; both times are whole seconds of the API server, 0 is unknown."""
    return not pod.created or pod.created >= world.resource.created
