"""Property of the Deployment controller's model: a rolling update never has too few pods, and ends."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from tests.simulation.cluster.rollout import PodState, next_step, status_of, template_hash

SETTLE = 30


def deployment(replicas: int, image: str) -> dict[str, Any]:
    template = {"metadata": {"labels": {}}, "spec": {"containers": [{"name": "worker", "image": image}]}}
    spec = {"replicas": replicas, "minReadySeconds": SETTLE, "template": template}
    return {"metadata": {"generation": 1}, "spec": spec}


def pods(of: dict[str, Any], count: int, *, since: float) -> list[PodState]:
    current = template_hash(of)
    return [PodState(f"{current}-{number}", current, since, leaving=False, created=since) for number in range(count)]


def step(of: dict[str, Any], found: list[PodState], now: float) -> list[PodState]:
    """One step: new pods are ready at once, deleted ones gone at once."""
    decided = next_step(of, found, now)
    current = template_hash(of)
    kept = [pod for pod in found if pod.name not in decided.delete]
    born = [PodState(f"{current}-{now}-{n}", current, now, leaving=False, created=now) for n in range(decided.create)]
    return kept + born


@given(before=st.integers(0, 6), after=st.integers(0, 6), is_new_template=st.booleans())
def test_rollout_and_scaling(before: int, after: int, is_new_template: bool) -> None:
    old, new = deployment(before, "worker:1"), deployment(after, "worker:2" if is_new_template else "worker:1")
    found = pods(old, before, since=0.0)
    floor = min(before, after)
    for round_number in range(200):
        now = 100.0 + round_number * 10
        found = step(new, found, now)
        available = status_of(new, found, now).get("availableReplicas", 0)
        assert available >= floor
        assert len(found) <= max(before, after + 1)
    assert {pod.template for pod in found} <= {template_hash(new)}
    assert len(found) == after


def test_a_pod_that_is_not_ready_is_deleted_first() -> None:
    of = deployment(2, "worker:1")
    ready = pods(of, 2, since=0.0)
    broken = PodState("broken", template_hash(of), None, leaving=False, created=50.0)
    assert next_step(of, [*ready, broken], 100.0).delete == ("broken",)


def test_the_cheapest_pod_is_deleted_first() -> None:
    of = deployment(1, "worker:1")
    dear, cheap = pods(of, 2, since=0.0)
    cheap = PodState(cheap.name, cheap.template, 0.0, leaving=False, created=0.0, deletion_cost=-5)
    assert next_step(of, [dear, cheap], 100.0).delete == (cheap.name,)
