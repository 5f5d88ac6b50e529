"""What happens while no worker runs; each ends with rows that have to be copied, or with a worker that has to come.

To add one: a row in `NIGHTS`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any, Final

from ots_emulator.refusal import Refusal
from ots_emulator.server.faults import FaultRule
from tests.simulation.fleet.acts import KINDS, Act, happen
from tests.simulation.service import KEY, SOURCE, TABLE

if TYPE_CHECKING:
    from tests.simulation.sleeping.fleet import SleepingFleet

Night = Callable[["SleepingFleet"], Awaitable[None]]


async def _a_row(fleet: SleepingFleet) -> None:
    await fleet.doze()
    await fleet.wake_by_rows()


async def _nothing(fleet: SleepingFleet) -> None:
    """A worker runs after a quarter of the retention, and nothing is written before."""
    await fleet.be_quiet()
    await fleet.wait_for_worker("a quarter of the retention", fleet.quarter + fleet.slack)


async def _an_edit(fleet: SleepingFleet) -> None:
    await fleet.doze()
    fleet.edit({"workers": {"lanesPerChannel": 1 + fleet.nights}})
    await fleet.wait_for_worker("an edit", fleet.slack)


async def _suspended(fleet: SleepingFleet) -> None:
    await fleet.doze()
    fleet.edit({"suspend": True})
    await asyncio.sleep(fleet.chance.uniform(1, 200))
    fleet.write_rows()
    fleet.edit({"suspend": False})
    await fleet.wait_for_rows(fleet.slack)


async def _without_auto(fleet: SleepingFleet) -> None:
    """Only Auto looks for what ends the sleep: without it spec.replicas counts."""
    await fleet.doze()
    fleet.edit({"autoscaling": {"mode": fleet.chance.choice(("Disabled", "Advise"))}})
    await fleet.wait_for_worker("an edit of the mode", fleet.slack)
    await fleet.wait_for_rows(fleet.slack)
    fleet.edit({"autoscaling": {"mode": "Auto"}})


async def _without_operator(fleet: SleepingFleet) -> None:
    await fleet.doze()
    away = fleet.chance.uniform(2, 400)
    fleet.operator.end(away, fleet.chance.random() < 0.5)
    await asyncio.sleep(away * fleet.chance.random())
    await fleet.wake_by_rows(away)


async def _dies_at_the_decision(fleet: SleepingFleet) -> None:
    """The operator dies at one of the writes with which it wakes the object."""
    await fleet.doze()
    before, writes = fleet.chance.random() < 0.5, fleet.chance.randint(0, 3)
    fleet.fates.crash(writes, before=before, away=fleet.chance.uniform(2, 60), orderly=False)
    await fleet.wake_by_rows(60.0)


async def _split(fleet: SleepingFleet) -> None:
    """Partitions end, or begin, while nobody reads them."""
    await fleet.doze()
    for _ in range(fleet.chance.randint(1, 3)):
        kind = fleet.chance.choice(("split", "split", "merge"))
        happen(fleet, Act(fleet.loop.now, kind))
        await asyncio.sleep(fleet.chance.uniform(0, 40))
    await fleet.wake_by_rows()


async def _split_alone(fleet: SleepingFleet) -> None:
    """A partition that has ended needs a worker, although no row is written."""
    await fleet.doze()
    try:
        fleet.service.emulator.split(SOURCE, TABLE)
    except Refusal:
        return
    await fleet.wait_for_worker("a split", fleet.slack)


async def _refused_looks(fleet: SleepingFleet) -> None:
    """The looks fail, for a moment or for so long that a worker has to come."""
    await fleet.doze()
    seconds = fleet.chance.uniform(10, 600)
    operation = fleet.chance.choice(("ReadRecords", "GetCheckpoint", "*"))
    code = fleet.chance.choice(("OTSServerUnavailable", "OTSInternalServerError", "OTSNoPermissionAccess"))
    until = fleet.service.clock.now() + seconds
    fleet.service.emulator.add_fault(
        FaultRule(operation=operation, code=code, until=until, access_key_id=KEY.access_key_id)
    )
    await asyncio.sleep(seconds * fleet.chance.random())
    await fleet.wake_by_rows(seconds)


async def _refused_looks_of_another(fleet: SleepingFleet) -> None:
    """The looks fail, and an operator starts that has never seen anything of the channels."""
    await fleet.doze()
    seconds = 5.0 * fleet.scenario.peek
    until = fleet.service.clock.now() + seconds
    operation, code = "ReadRecords", "OTSInternalServerError"
    rule = FaultRule(operation=operation, code=code, until=until, access_key_id=KEY.access_key_id)
    fleet.service.emulator.add_fault(rule)
    await asyncio.sleep(fleet.scenario.peek * fleet.chance.uniform(1.0, 1.6))
    fleet.operator.end(fleet.chance.uniform(2, 10), fleet.chance.random() < 0.5)
    await fleet.wake_by_rows(seconds)


async def _dark(fleet: SleepingFleet) -> None:
    await fleet.doze()
    act = KINDS["dark for the operator"].draw(fleet.chance, "dark for the operator", fleet.loop.now)
    happen(fleet, act)
    await asyncio.sleep(act.seconds * fleet.chance.random())
    await fleet.wake_by_rows(act.seconds)


async def _api_fails(fleet: SleepingFleet) -> None:
    await fleet.doze()
    kind = fleet.chance.choice(
        ("API refuses", "API is slow", "API answers get lost", "watches break", "events are late")
    )
    act = KINDS[kind].draw(fleet.chance, kind, fleet.loop.now)
    happen(fleet, act)
    await fleet.wake_by_rows(act.seconds)
    fleet.fates.clear()


async def _while_it_goes(fleet: SleepingFleet) -> None:
    """Rows are written while the last worker is told to go, and it may be killed instead of draining."""
    fleet.write_rows()
    await fleet.wait_for_rows(fleet.slack)
    await fleet.wait_for_decision()
    await asyncio.sleep(fleet.chance.uniform(0, 2))
    fleet.write_rows()
    if fleet.chance.random() < 0.5:
        for program in fleet.programs():
            program.kill()
    await fleet.wait_for_rows(fleet.slack)


async def _empty_pages(fleet: SleepingFleet) -> None:
    """The service answers with an empty page although records follow."""
    await fleet.doze()
    fleet.service.empty_reads = 1
    fleet.write_rows()
    await fleet.wait_for_worker("an empty page that announces more", fleet.slack)
    fleet.service.empty_reads = 0
    await fleet.wait_for_rows(fleet.slack)


#: Name -> what happens.
NIGHTS: Final[dict[str, Night]] = {
    "a row": _a_row,
    "nothing": _nothing,
    "an edit": _an_edit,
    "suspended": _suspended,
    "without Auto": _without_auto,
    "without operator": _without_operator,
    "the operator dies at the decision": _dies_at_the_decision,
    "split": _split,
    "split alone": _split_alone,
    "looks are refused": _refused_looks,
    "looks are refused to a new operator": _refused_looks_of_another,
    "dark for the operator": _dark,
    "API fails": _api_fails,
    "while it goes": _while_it_goes,
    "empty pages": _empty_pages,
}


def asleep(status: Any) -> bool:
    """Whether a status says that no worker runs because nothing is to be read."""
    conditions = status.get("conditions") or ()
    return any((one["type"], one["status"], one["reason"]) == ("Ready", "True", "Asleep") for one in conditions)
