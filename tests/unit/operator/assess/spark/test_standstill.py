"""Copies and queries by Spark that stand still: a table of cases."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from ots_tunnel_operator.assess.spark.query_state import QueryState
from ots_tunnel_operator.assess.spark.standstill import BATCH_SECONDS, COPYING_SECONDS, STARTING_SECONDS
from ots_tunnel_operator.loop_cache import LoopCache
from ots_tunnel_operator.observe.stillness import observe_spark
from ots_tunnel_operator.reasons import Problem, Reason
from ots_tunnel_operator.times import timestamp
from ots_tunnel_operator.world.pod import SparkPod
from ots_tunnel_operator.world.world import World
from tests.support.operator.query_worlds import (
    DRIVER,
    FREE,
    NAME,
    Children,
    query_app,
    query_record,
    query_resource,
    query_status,
    query_world,
)
from tests.support.operator.spark_worlds import progress_record, spark_application, spark_world
from tests.support.operator.worlds import NOW, TUNNEL_ID, assessed, recorded, reported, resource


def since_ever(found: World) -> World:
    """The world whose pods have always been as they are."""
    return replace(observe_spark(replace(found, now=0.0), LoopCache()), now=found.now)


def copying(state: str, *pods: SparkPod, done: int = 1, age: float = COPYING_SECONDS, **changes: Any) -> World:
    """A copy by Spark whose application was submitted, and has recorded its last split, so many seconds ago."""
    children = progress_record(done, 2, age=age) | spark_application(state, age=age)
    return since_ever(spark_world(children, recorded(snapshot={"tunnelId": TUNNEL_ID}), spark_pods=pods, **changes))


def told(found: World, cache: LoopCache, seconds: float = 0.0) -> Problem | None:
    """What is told of a world so many seconds later."""
    return assessed(observe_spark(replace(found, now=NOW + seconds), cache)).degradation


RUNS = SparkPod("driver", "Running", terminated=False)
COPIES = SparkPod("exec-1", "Running", terminated=False, is_executor=True)
FULL = SparkPod("exec-2", "Pending", terminated=False, is_executor=True, message="Unschedulable: no room")


@pytest.mark.parametrize(
    ("found", "says"),
    [
        (copying("SUBMITTED", SparkPod("driver", "Pending", False), age=STARTING_SECONDS), "pod driver is Pending"),
        (copying("SUBMITTED", SparkPod("driver", "Pending", False), age=STARTING_SECONDS - 1), ""),
        (copying("RUNNING", RUNS, FULL, age=STARTING_SECONDS), "pod exec-2 is Pending (Unschedulable: no room)"),
        # it is slower than it could be, and copies
        (copying("RUNNING", RUNS, COPIES, FULL, age=STARTING_SECONDS), ""),
        (copying("RUNNING", RUNS, COPIES, age=COPYING_SECONDS - 1), ""),
        (copying("RUNNING", RUNS, COPIES), "1 of 2 splits are done"),
        (copying("PENDING_RERUN"), "PENDING_RERUN"),
        (copying("RUNNING", RUNS, done=2, age=STARTING_SECONDS), "the SparkApplication has not ended (RUNNING)"),
        (copying("RUNNING", RUNS, done=2, age=STARTING_SECONDS - 1), ""),
        (copying("FAILED", RUNS, done=2, age=STARTING_SECONDS), "pod driver has not ended"),
        # a write that was sent may take effect: the gate is a time
        (copying("FAILED", COPIES, done=2, age=STARTING_SECONDS), ""),
        (copying("RUNNING", RUNS, COPIES, resource=resource(recorded(), suspend=True, engine__baseData="Spark")), ""),
    ],
)
def test_a_copy_by_spark_that_stands_still_says_why(found: World, says: str) -> None:
    status = reported(found)
    degraded = next(item for item in status["conditions"] if item["type"] == "Degraded")

    assert degraded["reason"] == ("NotProgressing" if says else "AsExpected")
    assert says in degraded.get("message", "")


def test_pods_that_do_not_start_are_told() -> None:
    executor = SparkPod(f"{NAME}-exec-1", "Pending", terminated=False, is_executor=True, message="Insufficient cpu")
    old = query_app("RUNNING", age=301) | query_record()
    found = query_world(old, query_pods=(DRIVER, executor))
    problem = assessed(since_ever(found)).degradation

    assert problem is not None
    assert problem.reason is Reason.NOT_PROGRESSING
    assert f"pod {NAME}-exec-1 is Pending (Insufficient cpu): let it start" in problem.message
    young = query_app("RUNNING", age=299) | query_record()
    assert assessed(since_ever(replace(found, children=young))).degradation is None
    runs = replace(executor, name="other", phase="Running")
    assert assessed(since_ever(replace(found, query_pods=(DRIVER, executor, runs)))).degradation is None


@pytest.mark.parametrize(("seconds", "is_told"), [(604, False), (605, True)])
def test_a_driver_that_runs_and_records_nothing_is_told(seconds: float, is_told: bool) -> None:
    """The driver before it has written last, and a trigger begins every five seconds."""
    resource = query_resource(spark={"triggerIntervalSeconds": 5})
    children = query_app("RUNNING", of=resource, age=7200) | query_record(age=3000)
    driver = replace(DRIVER, started=NOW - seconds)
    found = assessed(since_ever(query_world(children, of=resource, query_pods=(driver,))))

    assert found.query.state is QueryState.STARTING
    assert (found.degradation is not None) == is_told
    if found.degradation is not None:
        assert found.degradation.reason is Reason.NOT_PROGRESSING
        assert "its driver runs, and has recorded no batch for 605 s" in found.degradation.message


RAN_OLD = replace(DRIVER, started=NOW - 7000)
EXECUTOR = SparkPod(f"{NAME}-exec-9", "Running", terminated=False, is_executor=True, started=NOW - 60)


@pytest.mark.parametrize(
    ("children", "pods", "told"),
    [
        (query_app("RUNNING", age=7200), (RAN_OLD, EXECUTOR), "its driver runs, and has recorded no batch"),
        (query_app("SUBMITTED", age=7200), (RAN_OLD,), "its driver runs, and has recorded no batch"),
        (query_app("SUBMITTED", age=7200), (), "the SparkApplication is SUBMITTED, and has no driver"),
        (query_app("RUNNING", age=7200), (), "the SparkApplication is RUNNING, and has no driver"),
        (query_app("RUNNING", age=7200) | query_record(age=10), (), "the SparkApplication is RUNNING, and has no"),
        (query_app("SUBMITTED", age=299), (), ""),
        (query_app("", age=7200), (replace(DRIVER, phase="Failed"),), "the SparkApplication is new, and has no driver"),
        (query_app("PENDING_RERUN", age=599), (), ""),
        (query_app("PENDING_RERUN", age=599), (replace(EXECUTOR, phase="Pending"),), ""),
        (query_app("PENDING_RERUN", age=601), (), "the SparkApplication is PENDING_RERUN, and has no driver"),
        (query_app("UNKNOWN", age=601), (), "the SparkApplication is UNKNOWN, and has no driver"),
        (query_app("SUSPENDED", age=599), (), ""),
        (query_app("SUSPENDED", age=601), (), "the SparkApplication is SUSPENDED, and has no driver"),
        (query_app("SUSPENDED", age=7200, suspend=True), (), ""),
        (query_app("RESUMING", age=601), (), "the SparkApplication is RESUMING, and has no driver"),
        (query_app("INVALIDATING", age=601), (), "the SparkApplication is INVALIDATING, and has no driver"),
        (query_app("SUBMITTED", age=7200) | query_record(age=2000), (RAN_OLD,), "has recorded no batch"),
        (query_app("SUBMITTED", age=7200) | query_record(age=10), (RAN_OLD,), ""),
    ],
)
def test_a_query_without_a_driver_or_with_one_that_hangs_is_told(
    children: Children, pods: tuple[SparkPod, ...], told: str
) -> None:
    """Whatever the state says that a Spark operator has set, which may be gone; an executor may be a new one."""
    problem = assessed(since_ever(query_world(children, query_pods=pods))).degradation

    message = problem.message if problem is not None and problem.reason is Reason.NOT_PROGRESSING else ""
    assert told in message if told else not message


@pytest.mark.parametrize(
    ("found", "name"),
    [
        (query_world({}), DRIVER.name),
        (query_world({}, query_pods=(replace(EXECUTOR, phase="Unknown"),)), EXECUTOR.name),
        (spark_world(progress_record(2, 2), spark_pods=(RUNS,)), RUNS.name),
    ],
    ids=["query", "executor of a query", "copy that is done"],
)
def test_a_pod_that_outlives_its_application_is_told(found: World, name: str) -> None:
    """Its node is lost: the API server keeps the pod, and what follows waits for its end."""
    cache = LoopCache()
    told(found, cache)
    cache.observed_time = NOW

    assert told(found, cache, STARTING_SECONDS - 1) is None
    late = told(found, cache, STARTING_SECONDS)
    assert late is not None
    assert late.reason is Reason.NOT_PROGRESSING
    assert f"and pod {name} of it is" in late.message
    ended = replace(found, spark_pods=(), query_pods=())
    assert told(ended, cache, STARTING_SECONDS) is None
    assert told(found, cache, STARTING_SECONDS) is None, "another pod's time counts from its own first sight"


def test_a_new_operator_advises_nobody_to_delete_the_pod_of_an_application_that_has_just_gone() -> None:
    """The status has NotProgressing for another reason."""
    degraded = {"type": "Degraded", "status": "True", "reason": "NotProgressing", "lastTransitionTime": timestamp(0.0)}
    found = query_world({}, of=query_resource(query_status(conditions=[degraded])))

    assert told(found, LoopCache()) is None


@pytest.mark.parametrize("state", ["SUSPENDED", "RESUMING"])
def test_an_application_that_goes_on_after_a_long_suspension_has_its_time(state: str) -> None:
    cache, record = LoopCache(), query_record(age=90_000)
    suspended = query_app("SUSPENDED", age=90_000, suspend=True) | record
    resumed = query_world(query_app(state, age=90_000) | record, query_pods=(), tunnel=FREE)
    for seconds in (0, 7200):
        told(replace(resumed, children=suspended), cache, seconds)
        cache.observed_time = NOW + seconds

    assert told(resumed, cache, 7202) is None
    late = told(resumed, cache, 7200 + BATCH_SECONDS)
    assert late is not None
    assert late.reason is Reason.NOT_PROGRESSING


def test_a_copy_that_goes_on_after_a_long_suspension_has_its_time() -> None:
    cache = LoopCache()
    resumed = copying("RESUMING", age=COPYING_SECONDS)
    suspended = replace(resumed, resource=resource(recorded(), suspend=True, engine__baseData="Spark"))
    told(suspended, cache)
    cache.observed_time = NOW

    assert told(resumed, cache, 2) is None
    assert told(resumed, cache, COPYING_SECONDS) is not None


@pytest.mark.parametrize(("phase", "is_told"), [("Running", False), ("Failed", True)])
def test_a_mirror_that_brings_its_existing_rows_in_one_commit_is_none_that_hangs(phase: str, is_told: bool) -> None:
    files = {"url": "file:///lake/t", "format": "Delta", "mode": "Mirror"}
    of = query_resource(sink={"files": files})
    pods = (replace(DRIVER, started=NOW - 1250), replace(EXECUTOR, phase=phase))
    found = assessed(since_ever(query_world(query_app("RUNNING", of=of, age=1300), of=of, query_pods=pods)))

    assert (found.degradation is not None) == is_told


MIRROR = query_resource(sink={"files": {"url": "file:///lake/t", "format": "Delta", "mode": "Mirror"}})
#: The driver runs for longer than any patience, and its first commit is under way.
COPYING_MIRROR = query_world(query_app("RUNNING", of=MIRROR, age=7200), of=MIRROR, query_pods=(RAN_OLD, EXECUTOR))
FOLLOWING = query_world(query_app("RUNNING", age=7200) | query_record(age=0), query_pods=(RAN_OLD, EXECUTOR))
REPLACED = replace(EXECUTOR, name=f"{NAME}-exec-10", phase="Pending", started=None)


@pytest.mark.parametrize(
    ("found", "pods", "says"),
    [
        (COPYING_MIRROR, (RAN_OLD,), "its driver runs, and has recorded no batch"),
        (COPYING_MIRROR, (RAN_OLD, REPLACED), f"pod {REPLACED.name} is Pending"),
        (COPYING_MIRROR, (EXECUTOR,), "has no driver"),
        (COPYING_MIRROR, (), "has no driver"),
        (FOLLOWING, (RAN_OLD, REPLACED), f"pod {REPLACED.name} is Pending"),
        (FOLLOWING, (), "has no driver"),
        (FOLLOWING, (replace(DRIVER, phase="Pending"),), f"pod {DRIVER.name} is Pending"),
    ],
)
def test_pods_are_replaced_within_their_time(found: World, pods: tuple[SparkPod, ...], says: str) -> None:
    cache = LoopCache()
    assert told(found, cache) is None
    gone = replace(found, query_pods=pods)

    assert told(gone, cache, 15) is None
    assert told(gone, cache, 14 + STARTING_SECONDS) is None
    problem = told(gone, cache, 15 + STARTING_SECONDS)
    assert problem is not None
    assert problem.reason is Reason.NOT_PROGRESSING
    assert says in problem.message
    assert told(found, cache, 16 + STARTING_SECONDS) is None
    assert told(gone, cache, 31 + STARTING_SECONDS) is None


def test_an_executor_that_comes_after_a_time_without_work_has_its_time() -> None:
    """With dynamic allocation an idle query has none."""
    cache = LoopCache()
    idle = replace(FOLLOWING, query_pods=(RAN_OLD,))
    assert told(idle, cache) is None
    assert told(idle, cache, 3000) is None
    waits = replace(FOLLOWING, query_pods=(RAN_OLD, replace(REPLACED, created=NOW + 3000)))

    assert told(waits, cache, 3001) is None
    assert told(waits, cache, 3300) is not None


def test_an_executor_of_a_copy_is_replaced_within_its_time() -> None:
    """Splits take long, so the last one was recorded a while ago."""
    cache = LoopCache()
    found = copying("RUNNING", RUNS, COPIES, age=STARTING_SECONDS)
    assert told(found, cache) is None
    gone = replace(found, spark_pods=(RUNS, FULL))

    assert told(gone, cache, 15) is None
    problem = told(gone, cache, 15 + STARTING_SECONDS)
    assert problem is not None
    assert "pod exec-2 is Pending" in problem.message


def test_a_new_operator_goes_on_with_what_the_status_tells() -> None:
    gone = replace(FOLLOWING, query_pods=())
    assert told(gone, LoopCache()) is None
    conditions = [{"type": "Degraded", "status": "True", "reason": "NotProgressing"}]
    body = gone.resource.status | {"conditions": conditions}
    told_before = replace(gone, resource=replace(gone.resource, status=body))

    assert told(told_before, LoopCache()) is not None
