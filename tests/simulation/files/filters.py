"""Users give the workers a filter, take it away, or change it: by a rollout of a new document.

A fault `filter` holds the way of the rollout and the section `delivery.filter` of the new document, as JSON: `kill
{"actions": ["PUT"]}`, or `terminate null` for a document without a filter. At 0 s, before the pods start, it is the
filter that the story begins with. The ways:

    terminate    every pod drains
    kill         every pod is killed
    file         the same when the next file has been published: it is ahead of its checkpoint
    checkpoint   the same when the next checkpoint has been stored

The last two happen one after the other, in their order. The section `"last"` lets only changes of the key pass that is
the last one in the file that was published last: a replay of that file begins with what is left out.

`passes` says what a filter means: the oracles do not ask the product.
"""

from __future__ import annotations

import json
import random
from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from tests.simulation.faults import Fault, Kind
from tests.simulation.files.faults import FILE_KINDS

if TYPE_CHECKING:
    from tests.simulation.files.region import FilesRegion
    from tests.simulation.worker import Pod

#: Seconds for which a pod that was killed is away.
AWAY: Final = 2.0
#: Ways that wait for something that the workers do.
WAITING: Final = ("file", "checkpoint")
LAST: Final = "last"
#: Sections of a document, as they are drawn; keys are `k00`, `k01` and so on.
FILTERS: Final[tuple[Mapping[str, Any] | None, ...]] = (
    None,
    {"actions": ["PUT", "DELETE"]},
    {"actions": ["UPDATE"]},
    {"actions": ["PUT", "UPDATE"]},
    {"keyPrefix": {"pk": "k00"}},
    {"keyRange": {"begin": ["k01"]}},
    {"keyRange": {"begin": ["k01"], "end": ["k03"]}, "actions": ["UPDATE", "DELETE"]},
)


def passes(section: Mapping[str, Any] | None, key: str, action: str) -> bool:
    """Whether a filter lets a change pass.

    Args:
        section: `delivery.filter` of a document; None without one.
        key: value of the only key column.
    """
    section = section or {}
    bounds = section.get("keyRange", {})
    return (
        action in section.get("actions", (action,))
        and key.startswith(section.get("keyPrefix", {}).get("pk", ""))
        and [key] >= bounds.get("begin", [])
        and ("end" not in bounds or [key] < bounds["end"])
    )


def _roll_out(region: FilesRegion, fault: Fault) -> None:
    way, _, text = fault.value.partition(" ")
    restart = partial(_restart_all, region, way, fault.seconds, json.loads(text))
    if way in WAITING:
        region.waiting.append((way, restart))
    else:
        restart()


def _restart_all(region: FilesRegion, way: str, pause: float, section: Mapping[str, Any] | str | None) -> None:
    """Give every pod the new document, and restart one after the other."""
    if isinstance(section, str):
        section = {"keyPrefix": {"pk": region.files.last_key}}
    region.story.tell("fault", "  the filter is %s", json.dumps(section))
    region.give_filter(section)
    for number, pod in enumerate(region.pods):
        region.loop.after(number * pause, _restart, pod, way)


def _restart(pod: Pod, way: str) -> None:
    if way == "terminate":
        pod.terminate()
    else:
        pod.kill(AWAY)


#: Kinds of faults that happen in these stories; rollouts are not drawn among the others.
KINDS_WITH_ROLLOUTS: Final[Mapping[str, Kind]] = {**FILE_KINDS, "filter": Kind(_roll_out)}


def draw_rollouts(seed: int, length: float, timeout: float) -> tuple[Fault, ...]:
    """The rollouts of a seed; half of the seeds have none.

    Many come in pairs: a file ahead of the checkpoint then meets one filter behind the other.
    """
    chance = random.Random(f"filter:{seed}")
    if chance.random() < 0.5:
        return ()
    found = []
    if chance.random() < 0.4:
        found.append(_rollout(0.0, "kill", 0.0, chance.choice(FILTERS[1:])))
    for _ in range(chance.choice((1, 1, 2, 3))):
        section = chance.choice(FILTERS)
        if chance.random() < 0.4:
            pause = round(chance.choice((0.0, 1.0)) * chance.uniform(0, 0.2 * timeout), 3)
            found.append(
                _rollout(chance.uniform(5, length), chance.choice(("terminate", "kill", "file")), pause, section)
            )
        else:
            # early: channels of killed pods come back after the heartbeat timeout
            at = chance.uniform(5, max(0.5 * length, length - 2 * timeout))
            found += [_rollout(at, "file", 0.0, LAST), _rollout(at, "checkpoint", 0.0, section)]
    return tuple(found)


def _rollout(at: float, way: str, pause: float, section: Mapping[str, Any] | str | None) -> Fault:
    return Fault(round(at, 3), "filter", seconds=pause, value=f"{way} {json.dumps(section)}")
