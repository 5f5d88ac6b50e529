"""What befalls a fleet: workers killed and frozen, the operator killed, the API server away, the service down."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager

from tests.cluster_scenarios.fleet.fleet import Fleet
from tests.cluster_scenarios.fleet.named_tunnel import PAUSE
from tests.demo.environment import RELEASE
from tests.demo.kube import DemoError
from tests.support.waiting import wait_until

#: Seconds within which a replaced operator has the work: the life of its Lease, and a start on a busy machine.
TAKE_OVER = 90
#: How kubectl says that a command was killed (128 + SIGKILL).
KILLED = "exit code 137"


def kill_worker(fleet: Fleet, pod: str) -> None:
    """Kill every process of a worker's container; the kubelet starts it again in the same pod."""
    _signal(fleet, fleet.scenario.namespace, pod, "KILL")


@contextmanager
def frozen_worker(fleet: Fleet, pod: str) -> Iterator[None]:
    """Stop a worker's process, as a machine does that stands still, and continue it at the end of the block."""
    _signal(fleet, fleet.scenario.namespace, pod, "STOP")
    try:
        yield
    finally:
        _signal(fleet, fleet.scenario.namespace, pod, "CONT")


def kill_operator(fleet: Fleet) -> None:
    """Kill the operator's process, then its pod, so that no back-off delays the next one; wait until that one leads."""
    former, pod = _leader(fleet), _operator_pods(fleet)[-1]
    _signal(fleet, fleet.scenario.operator_namespace, pod, "KILL")
    home = ("-n", fleet.scenario.operator_namespace)
    fleet.kube.kubectl(*home, "delete", "pod", pod, "--force", "--grace-period=0", "--ignore-not-found")
    until_operator_leads(fleet, former)


def until_operator_leads(fleet: Fleet, former: str = "") -> None:
    """Wait until the newest of the operator's pods holds the Lease.

    Args:
        former: the holder that it must have been taken from.
    """

    def look() -> bool:
        pods, holder = _operator_pods(fleet), _leader(fleet)
        return bool(pods) and holder != former and pods[-1] in holder

    wait_until(look, TAKE_OVER, "the new operator leads", pause=PAUSE, explain=lambda: _leader(fleet))


def _leader(fleet: Fleet) -> str:
    lease = fleet.kube.get("-n", fleet.scenario.operator_namespace, "lease", RELEASE)
    return str(lease["spec"].get("holderIdentity") or "")


def _operator_pods(fleet: Fleet) -> list[str]:
    """Return the names of the operator's pods, the newest last; that of `helm test` is not of the Deployment."""
    selector = f"app.kubernetes.io/instance={RELEASE},pod-template-hash"
    words = ("pod", "-l", selector, "--sort-by=.metadata.creationTimestamp")
    items = fleet.kube.get("-n", fleet.scenario.operator_namespace, *words)["items"]
    return [item["metadata"]["name"] for item in items]


@contextmanager
def api_server_away(fleet: Fleet) -> Iterator[None]:
    """Kill the API server, and start it again at the end of the block."""
    os.kill(int((fleet.cluster.state / "run" / "kube-apiserver.pid").read_text().split()[0]), signal.SIGKILL)
    try:
        yield
    finally:
        fleet.cluster.up()


@contextmanager
def silent_service(fleet: Fleet) -> Iterator[None]:
    """Stop the emulator's process: connections stay open and get no answer; new ones find no pod that is ready."""
    space = ("-n", fleet.scenario.namespace)
    (pod,) = fleet.kube.get(*space, "pod", "-l", "app=ots-emulator")["items"]
    _signal(fleet, fleet.scenario.namespace, pod["metadata"]["name"], "STOP")
    try:
        yield
    finally:
        _signal(fleet, fleet.scenario.namespace, pod["metadata"]["name"], "CONT")


@contextmanager
def refused_key(fleet: Fleet, access_key_id: str) -> Iterator[None]:
    """Let the service refuse an AccessKey, as one that was disabled."""
    fleet.admin.post("/faults", access_key_id=access_key_id, code="OTSAuthFailed", message="the AccessKey is disabled")
    try:
        yield
    finally:
        fleet.admin.post("/faults", clear=True)


def _signal(fleet: Fleet, namespace: str, pod: str, name: str) -> None:
    """Send a signal to every process of a pod's container but the first, which is tini."""
    try:
        fleet.kube.kubectl("-n", namespace, "exec", pod, "--", "sh", "-c", f"kill -{name} -1")
    except DemoError as error:
        if name != "KILL" or KILLED not in str(error):  # the container ends under the command that kills it
            raise
