"""Asking for no worker, and no pod of Spark, any more. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from ots_tunnel_operator.assess.assessment import Assessment
from ots_tunnel_operator.assess.spark.application_state import Application
from ots_tunnel_operator.kube.kinds import Manifest
from ots_tunnel_operator.plan.actions import Action, ApplyObject, ApplyToExisting, ScaleDown
from ots_tunnel_operator.world.pod import SparkPod
from ots_tunnel_operator.world.world import World


def scale_down(world: World, assessment: Assessment) -> tuple[ScaleDown, ...]:
    """What ends the workers; nothing where none is asked for.

    Watches see the operator's labels only. A Deployment that has lost them to another client is in no copy, and its
    pods go on all the same: the action looks for it at the API server.
    """
    is_unseen = world.deployment is None and any(pod.is_alive for pod in world.pods)
    return (ScaleDown(),) if assessment.deployed_replicas or is_unseen else ()


def suspend_application(
    application: Application | None, pods: Iterable[SparkPod], render: Callable[[], Manifest]
) -> tuple[Action, ...] | None:
    """The actions that suspend a running application; None where no application runs.

    Watches see the operator's labels only. An application that has lost them to another client is in no copy, and its
    pods go on all the same: the action looks for it at the API server, as for a Deployment.

    Args:
        application: as it was observed.
        pods: of the application.
        render: makes the manifest of the application as it runs.
    """
    if application is None and any(pod.is_alive and not pod.terminated for pod in pods):
        return (ApplyToExisting(_suspended(render())),)
    if application is None or application.state.terminal or application.is_suspended:
        return None
    if application.suspend:
        return ()
    return (ApplyObject(_suspended(render())),)


def _suspended(manifest: Manifest) -> Manifest:
    return manifest | {"spec": manifest["spec"] | {"suspend": True}}
