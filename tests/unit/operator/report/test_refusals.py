"""Records that were left out: counted once over looks, restarts and silences, and told until a person accepts them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ots_tunnel_operator import names
from ots_tunnel_operator.api.status import MAX_WORKERS
from ots_tunnel_operator.report.refusals import find_refusals
from ots_tunnel_operator.times import timestamp
from ots_tunnel_operator.world.pod import Pod
from ots_tunnel_operator.world.report import RefusedCount
from ots_tunnel_operator.world.world import World
from tests.support.operator.worlds import (
    NOW,
    pod,
    recorded,
    report_channel,
    reported,
    resource,
    world,
)


def telling(
    records: int | None, keys: int = 0, name: str = "pod-1", *, since: float | None = None, **changes: Any
) -> Pod:
    """A worker that tells how much was refused, and since when; None tells nothing, as one of an earlier release."""
    found = pod(name, report_channel("c1"), **changes)
    assert found.report is not None
    refused = None if records is None else RefusedCount(records, keys, since)
    return replace(found, report=replace(found.report, refused=refused))


def silent(name: str = "pod-1") -> Pod:
    return replace(pod(name), report=None)


def looks(*each: tuple[Pod, ...], accepted: str = "") -> dict[str, Any]:
    """The status after some looks a minute apart, each of which starts from the status of the one before."""
    status = recorded()
    for number, pods in enumerate(each):
        found = world(resource(status), pods=pods, now=NOW + 60 * number)
        status = reported(with_accepted(found, accepted))
    return status


def with_accepted(found: World, accepted: str) -> World:
    metadata = found.resource.object.metadata.model_copy(
        update={"annotations": {names.ANNOTATION_ACCEPT_REFUSED: accepted}}
    )
    changed = found.resource.object.model_copy(update={"metadata": metadata})
    return replace(found, resource=replace(found.resource, object=changed))


def condition(status: dict[str, Any], kind: str) -> tuple[str, str]:
    (found,) = [item for item in status["conditions"] if item["type"] == kind]
    return found["status"], found["reason"]


def test_nothing_refused_is_nothing_told() -> None:
    status = looks((telling(0),), (telling(None),))

    assert "refused" not in status
    assert "refusedRecords" not in status["workers"][0]
    assert condition(status, "Degraded") == ("False", "AsExpected")


def test_what_a_worker_tells_is_counted_once() -> None:
    status = looks((telling(5, 2),), (telling(5, 2),), (telling(5, 2),))

    assert status["refused"] == {"records": 5, "keys": 2, "lastTime": timestamp(NOW)}
    assert (status["workers"][0]["refusedRecords"], status["workers"][0]["refusedKeys"]) == (5, 2)


def test_what_it_refuses_later_is_added() -> None:
    status = looks((telling(5, 2),), (telling(9, 3),))

    assert status["refused"] == {"records": 9, "keys": 3, "lastTime": timestamp(NOW + 60)}


def test_another_process_that_has_refused_as_many_has_refused_others() -> None:
    first, second = NOW - 100.4, NOW + 30.6
    before = looks((telling(5, 5, since=first),), accepted="5")
    status = looks(*((telling(5, 5, since=time),) for time in (first, first, second, second)), accepted="5")

    assert condition(before, "Degraded")[0] == "False"
    assert (status["refused"]["records"], status["refused"]["keys"]) == (10, 10)
    assert status["workers"][0]["refusedSince"] == timestamp(second)
    assert condition(status, "Degraded") == ("True", "RecordsRefused")


@pytest.mark.parametrize(("before", "after"), [(None, NOW), (NOW, None)], ids=["since now", "no longer"])
def test_a_process_that_does_not_tell_its_start_is_the_same_one(before: float | None, after: float | None) -> None:
    status = looks((telling(5, 2, since=before),), (telling(6, 2, since=after),))

    assert status["refused"]["records"] == 6


def test_a_process_that_starts_again_counts_from_the_beginning() -> None:
    status = looks((telling(5, 2),), (telling(4, 3),), (telling(0),), (telling(1, 1),))

    assert (status["refused"]["records"], status["refused"]["keys"]) == (10, 6)


def test_a_worker_that_does_not_answer_for_a_while_is_not_counted_again() -> None:
    status = looks((telling(5, 2),), (silent(),), (telling(None),), (telling(6, 2),))

    assert (status["refused"]["records"], status["refused"]["keys"]) == (6, 2)


def test_what_workers_that_are_gone_refused_stays() -> None:
    status = looks((telling(5, 2),), (telling(3, 3, "pod-2"),), ())

    assert (status["refused"]["records"], status["refused"]["keys"]) == (8, 5)
    assert status["workers"] == []


def test_a_pod_without_a_place_in_the_status_is_not_counted_in_every_look() -> None:
    pods = tuple(telling(1, 1, f"pod-{number:03}") for number in range(MAX_WORKERS + 3))

    assert looks(pods, pods)["refused"]["records"] == MAX_WORKERS


def test_a_pod_that_loses_its_place_in_the_status_for_a_while_is_not_counted_again() -> None:
    """A rollout of as many workers as the status lists has one more pod, whose name may come first."""
    full = tuple(telling(1, 1, f"pod-{number:03}") for number in range(MAX_WORKERS))
    surge = telling(0, name="new-000")

    assert looks(full, (surge, *full), full)["refused"]["records"] == MAX_WORKERS


def test_a_pod_that_has_refused_records_has_a_place_before_one_that_has_not() -> None:
    pods = tuple(telling(0, name=f"pod-{number:03}") for number in range(MAX_WORKERS))

    assert looks((*pods, telling(7, 2, "pod-999")))["refused"]["records"] == 7


def test_a_pod_that_has_ended_is_not_in_the_status_and_not_counted() -> None:
    ended = telling(5, 2, phase="Succeeded")

    assert find_refusals(world(pods=(ended,))).document() is None


@pytest.mark.parametrize(
    ("accepted", "degraded"),
    [
        ("", ("True", "RecordsRefused")),
        ("4", ("True", "RecordsRefused")),
        ("many", ("True", "RecordsRefused")),
        ("-5", ("True", "RecordsRefused")),
        ("5", ("False", "AsExpected")),
        # that of an earlier object of this name, which GitOps applies again
        ("6", ("True", "RecordsRefused")),
        ("9" * 5000, ("True", "RecordsRefused")),
    ],
)
def test_it_is_told_until_a_person_accepts_the_number(accepted: str, degraded: tuple[str, str]) -> None:
    status = looks((telling(5, 2),), accepted=accepted)

    assert condition(status, "Degraded") == degraded
    # records flow as the policy says
    assert condition(status, "Ready") == ("True", "Consuming")
    # the record stays
    assert status["refused"]["records"] == 5


def test_a_number_of_an_earlier_object_is_no_degradation_by_itself() -> None:
    assert condition(looks((telling(0),), accepted="17"), "Degraded") == ("False", "AsExpected")


def test_the_message_has_no_figure_that_changes_by_itself() -> None:
    messages = {
        item["message"]
        for count in (5, 6)
        for item in looks((telling(count, 2),))["conditions"]
        if item["type"] == "Degraded"
    }

    (message,) = messages
    assert "ots-tunnel.dev/accept-refused" in message


def test_another_degradation_goes_first() -> None:
    late = replace(telling(5, 2), report=replace(telling(5, 2).report, error="cannot connect"))

    assert condition(looks((late,)), "Degraded") == ("True", "ChannelErrors")


#: What happens to one of two pods: its worker refuses some records, its process starts again, it does not answer.
STEPS = st.lists(
    st.tuples(st.sampled_from(("refuse", "restart", "silence", "look", "lost write")), st.integers(0, 1)), max_size=25
)


@given(STEPS)
def test_nothing_is_counted_twice_and_what_grows_is_counted(steps: list[tuple[str, int]]) -> None:
    counts, silent_pods, restarted = [0, 0], set[int](), False
    status, least = recorded(), 0

    def look(*, is_stored: bool = True) -> None:
        nonlocal status
        pods = tuple(
            silent(f"pod-{number}")
            if number in silent_pods
            else telling(counts[number], counts[number], f"pod-{number}")
            for number in (0, 1)
        )
        after = reported(world(resource(status), pods=pods))
        if is_stored:
            status = after

    total = 0
    for step, number in steps:
        match step:
            case "refuse":
                counts[number] += 1
                total += 1
            case "restart":
                counts[number], restarted = 0, True
            case "silence":
                silent_pods ^= {number}
            case "look":
                look()
            case _:
                look(is_stored=False)
        found = (status.get("refused") or {}).get("records", 0)
        assert least <= found <= total
        least = found
    silent_pods.clear()
    look()
    found = (status.get("refused") or {}).get("records", 0)
    assert found <= total
    if not restarted:
        # a process that goes on tells everything in the end
        assert found == total
