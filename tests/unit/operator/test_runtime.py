"""Which events wake a loop, and which of two objects on one tunnel is older."""

from __future__ import annotations

from typing import Any

import pytest

from ots_tunnel_operator.metrics import OperatorMetrics
from ots_tunnel_operator.runtime import Runtime, competitor, eldest
from ots_tunnel_operator.times import timestamp
from ots_tunnel_operator.world import Competitor
from tests.support.operator.worlds import NOW, SETTINGS, UID, resource

OLDER = Competitor("older", "shop", NOW - 2000, "f")
OLDEST = Competitor("oldest", "shop", NOW - 3000, "f")
YOUNGER = Competitor("younger", "shop", NOW, "0")
SAME_SECOND = Competitor("same-second", "shop", NOW - 1000, "0")
OURSELVES = Competitor("flights-copy", "default", NOW - 1000, UID)


@pytest.mark.parametrize(
    ("others", "elder"),
    [
        ([], None),
        ([OURSELVES], None),
        ([YOUNGER], None),
        ([YOUNGER, OLDER, OLDEST], OLDEST),
        # of two objects of one second the one with the smaller uid
        ([SAME_SECOND], SAME_SECOND),
    ],
)
def test_the_elder_of_two_objects_keeps_the_tunnel(others: list[Competitor], elder: Competitor | None) -> None:
    assert eldest(resource(), others) == elder


def test_a_competitor_is_read_from_any_body() -> None:
    metadata = {"name": "a", "namespace": "b", "uid": "c", "creationTimestamp": timestamp(NOW)}

    assert competitor({"metadata": metadata}) == Competitor("a", "b", NOW, "c")
    assert competitor({"metadata": metadata | {"creationTimestamp": None}}).created == 0.0


def body(**metadata: Any) -> dict[str, Any]:
    return {"metadata": {"uid": UID, "generation": 1, **metadata}}


def test_only_a_change_of_the_user_wakes_the_loop() -> None:
    runtime = Runtime(SETTINGS, OperatorMetrics())
    events = [
        body(),
        body() | {"status": {"phase": "Streaming"}},
        body(annotations={"ots-tunnel.dev/last-handled": "x"}),
        body(generation=2),
        body(generation=2, annotations={"note": "x"}),
        body(generation=2, annotations={"note": "x"}, deletionTimestamp="t"),
    ]

    assert [runtime.has_changed(event) for event in events] == [True, False, False, True, True, True]


def test_a_wake_reaches_the_loop_of_the_name_alone() -> None:
    runtime = Runtime(SETTINGS, OperatorMetrics())
    ours, other = runtime.cache(UID, "default", "flights-copy"), runtime.cache("1", "default", "other")

    runtime.wake("default", "flights-copy")

    assert (ours.wake.is_set(), other.wake.is_set()) == (True, False)
    runtime.wake_all()
    assert other.wake.is_set()


def test_handlers_need_a_connection() -> None:
    with pytest.raises(RuntimeError, match="not connected"):
        Runtime(SETTINGS, OperatorMetrics()).deleter()
