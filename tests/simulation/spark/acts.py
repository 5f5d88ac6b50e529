"""What happens to applications, drivers and executors."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from tests.simulation.fleet.acts import KINDS, Act, Kind

if TYPE_CHECKING:
    from tests.simulation.spark.fleet import SparkFleet

#: What befalls an executor right after it has sent rows: it is killed, or its node is lost.
KILL, VANISH = "kill", "vanish"
APPLICATION: Final = "/apis/sparkoperator.k8s.io/v1beta2/namespaces/shop/sparkapplications/orders-snapshot"


def _kill_driver(fleet: SparkFleet, act: Act) -> None:
    if (attempt := fleet.spark.attempt()) is not None:
        attempt.kill(attempt.driver)


def _executor(fleet: SparkFleet, act: Act) -> None:
    attempt = fleet.spark.attempt()
    if attempt is None or not attempt.executors:
        return
    pod = [*attempt.executors][act.target % len(attempt.executors)]
    if act.value == "kill":
        attempt.kill(pod)
    else:
        attempt.vanish(pod, shown=act.value == "stay")


def _strike(fleet: SparkFleet, act: Act) -> None:
    fleet.spark.strikes.append(act.value)


def _cut_off(fleet: SparkFleet, act: Act) -> None:
    fleet.spark.cut_off()


def _away(fleet: SparkFleet, act: Act) -> None:
    fleet.spark.away_until = fleet.loop.now + act.seconds


def _refuse(fleet: SparkFleet, act: Act) -> None:
    fleet.spark.refused += act.target + 1


def _no_record(fleet: SparkFleet, act: Act) -> None:
    fleet.spark.api_away_until = fleet.loop.now + act.seconds


def _slow(fleet: SparkFleet, act: Act) -> None:
    fleet.slow_until = fleet.loop.now + act.seconds


def _delete_application(fleet: SparkFleet, act: Act) -> None:
    fleet.user("DELETE", APPLICATION)


def _edit_spark(fleet: SparkFleet, act: Act) -> None:
    fleet.edit({"spark": {"executor": {"instances": act.target % 3 + 1}}})


_OWN: Final[Mapping[str, Kind]] = {
    "kill the driver": Kind(_kill_driver, 5),
    "lose an executor": Kind(_executor, 5, values=("kill", "vanish", "vanish", "stay")),
    "cut off the driver": Kind(_cut_off, 2),
    "the Spark operator is away": Kind(_away, 2, (20, 200)),
    "submissions fail": Kind(_refuse, 2),
    "the record cannot be written": Kind(_no_record, 2, (2, 40)),
    "tasks are slow": Kind(_slow, 3, (20, 150)),
    "delete the application": Kind(_delete_application, 2),
    "edit spark": Kind(_edit_spark, 2),
    "strike a sender": Kind(_strike, 0, values=(KILL, VANISH)),
}
SPARK_KINDS: Final[Mapping[str, Kind]] = {**KINDS, **_OWN}
#: What is drawn, besides what happens to the operator and its calls.
NAMES: Final = (
    *(name for name, kind in _OWN.items() for _ in range(kind.weight)),
    *("kill the operator", "crash at a write", "crash at a write", "suspend", "delete a pod", "split", "scale"),
    *("delete and apply again", "delete and apply again"),
    *("API refuses", "watches break", "versions are compacted", "API answers get lost", "kill a worker", "errors"),
)
