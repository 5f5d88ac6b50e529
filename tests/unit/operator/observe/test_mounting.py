"""A pod whose node has it, and begins none of its containers: since when, and what its volumes need."""

from __future__ import annotations

from typing import Any

import pytest

from ots_tunnel_operator.observe.mounting import mounting
from ots_tunnel_operator.times import timestamp
from ots_tunnel_operator.world.pod import Mounting
from tests.support.operator.worlds import NOW

BOUND = {"type": "PodScheduled", "status": "True", "lastTransitionTime": timestamp(NOW)}
CREATING = {"name": "worker", "state": {"waiting": {"reason": "ContainerCreating"}}}
VOLUMES = [
    {"name": "config", "configMap": {"name": "flights-copy-config"}},
    {"name": "ca", "configMap": {"name": "authorities"}},
    {"name": "maybe", "configMap": {"name": "tuning", "optional": True}},
    {"name": "key", "secret": {"secretName": "signing"}},
    {"name": "data", "persistentVolumeClaim": {"claimName": "orders"}},
    {"name": "both", "projected": {"sources": [{"secret": {"name": "extra"}}, {"serviceAccountToken": {}}]}},
    {"name": "spool", "emptyDir": {}},
]


def pod(**status: Any) -> dict[str, Any]:
    found = {"phase": "Pending", "conditions": [BOUND], "containerStatuses": [CREATING]} | status
    return {"metadata": {"name": "pod-1"}, "spec": {"volumes": VOLUMES}, "status": found}


def test_what_the_volumes_of_a_pod_need_is_named() -> None:
    assert mounting(pod()) == Mounting(
        NOW,
        (
            "ConfigMap 'flights-copy-config'",
            "ConfigMap 'authorities'",
            "Secret 'signing'",
            "PersistentVolumeClaim 'orders'",
            "Secret 'extra'",
        ),
    )


def test_a_kubelet_says_itself_that_volumes_and_network_are_not_there() -> None:
    state = {"type": "PodReadyToStartContainers", "status": "False"}

    assert mounting(pod(conditions=[BOUND, state], podIP="10.0.0.1")) is not None


@pytest.mark.parametrize(
    "status",
    [
        {"phase": "Running"},
        # its image is being fetched
        {"podIP": "10.0.0.1"},
        {"conditions": [BOUND, {"type": "PodReadyToStartContainers", "status": "True"}]},
        # no node has it
        {"conditions": []},
        {"conditions": [{"type": "PodScheduled", "status": "False", "lastTransitionTime": timestamp(NOW)}]},
        {"conditions": [{"type": "PodScheduled", "status": "True"}]},
        {"phase": None},
    ],
)
def test_another_pod_waits_for_no_volume(status: dict[str, Any]) -> None:
    assert mounting(pod(**status)) is None


def test_a_pod_without_volumes_and_status() -> None:
    assert mounting({"metadata": {"name": "pod-1"}}) is None
    assert mounting(pod() | {"spec": {}}) == Mounting(NOW, ())
