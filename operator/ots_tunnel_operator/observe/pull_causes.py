"""Why an image could not be fetched, kept over the pause before the next try. Changes nothing but the loop's cache.

A kubelet says in turn that it failed, with the cause, and that it pauses, in many releases without one. A status that
followed it would change with each try.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ots_tunnel_operator.loop_cache import LoopCache
from ots_tunnel_operator.observe.containers import PULL, why_not_running
from ots_tunnel_operator.world.pod import Pod


def with_known_causes(pods: Sequence[Pod], cache: LoopCache) -> list[Pod]:
    """The pods; one whose image could not be fetched with the cause that was told last for it."""
    waiting = [pod.container for pod in pods if pod.container.waiting == PULL]
    told = {container.image: container.cause for container in waiting if container.cause}
    images = {container.image for container in waiting}
    cache.pull_causes = {image: cause for image, cause in (cache.pull_causes | told).items() if image in images}
    return [_with_cause(pod, cache.pull_causes.get(pod.container.image, "")) for pod in pods]


def _with_cause(pod: Pod, cause: str) -> Pod:
    if pod.container.waiting != PULL or not cause:
        return pod
    container = replace(pod.container, cause=cause)
    return replace(pod, container=container, message=why_not_running(container))
