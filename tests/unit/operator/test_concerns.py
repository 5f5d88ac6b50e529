"""Whom a change of an object concerns: itself, those on its old tunnel, and nobody after a change of its status."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest

from ots_tunnel_operator.concerns import Concerns, competitor
from ots_tunnel_operator.names import FINALIZER
from ots_tunnel_operator.reasons import Problem, Reason
from ots_tunnel_operator.report.unobserved import unobserved_status
from ots_tunnel_operator.times import timestamp
from ots_tunnel_operator.world.world import Competitor
from tests.support.operator.objects import tunnel_object
from tests.support.operator.worlds import NOW


def body(name: str, uid: str, tunnel: str = "shared", **metadata: Any) -> dict[str, Any]:
    found = tunnel_object(name, source__tunnel__name=tunnel)
    found["metadata"] |= {"namespace": "shop", "uid": uid, "generation": 1, **metadata}
    return found


def test_only_a_change_of_the_user_concerns_an_object() -> None:
    concerns = Concerns()
    first = body("a", "1")
    changes = [
        first,
        first | {"status": {"phase": "Streaming"}},
        body("a", "1", annotations={"ots-tunnel.dev/last-handled": "x"}),
        body("a", "1", generation=2),
        body("a", "1", generation=2, annotations={"note": "x"}),
        body("a", "1", generation=2, annotations={"note": "x"}, deletionTimestamp="t"),
    ]

    assert [len(concerns.changed(change)) for change in changes] == [1, 0, 0, 1, 1, 1]
    assert len(concerns) == 1


def test_who_leaves_a_tunnel_wakes_the_others_on_it() -> None:
    concerns = Concerns()
    for name, uid in (("a", "1"), ("b", "2")):
        concerns.changed(body(name, uid))
    concerns.changed(body("c", "3", tunnel="other"))

    assert concerns.changed(body("a", "1", tunnel="other", generation=2)) == {("shop", "a"), ("shop", "b")}
    assert concerns.deleted(body("a", "1", tunnel="other")) == {("shop", "c")}
    assert concerns.places("shop") == concerns.places() == {("shop", "b"), ("shop", "c")}
    assert concerns.places("lake") == set()


def test_the_elder_object_of_a_tunnel_is_found_by_an_object_as_it_is_stored() -> None:
    concerns = Concerns()
    concerns.changed(body("a", "1"))
    concerns.changed(body("c", "3", tunnel="other"))

    found = [concerns.elder(one) for one in (body("b", "2"), body("a", "1"), body("d", "4", "third"))]

    assert [elder and elder.name for elder in found] == ["a", None, None]


def test_the_deletion_of_a_former_object_of_the_name_concerns_nobody() -> None:
    concerns = Concerns()
    concerns.changed(body("a", "2"))

    assert concerns.deleted(body("a", "1")) == set()
    assert concerns.deleted(body("unknown", "1")) == set()
    assert len(concerns) == 1


def test_a_secret_concerns_the_objects_that_name_it() -> None:
    concerns = Concerns()
    concerns.changed(body("a", "1"))

    assert concerns.users("shop", "ots-credentials") == {("shop", "a")}
    assert concerns.users("lake", "ots-credentials") == set()
    concerns.deleted(body("a", "1"))
    assert concerns.users("shop", "ots-credentials") == set()


@pytest.mark.parametrize("spec", [{"source": 1}, {"source": {"endpoint": "http://["}}, {"sink": [1]}, {}])
def test_a_spec_of_another_release_has_no_rivals(spec: dict[str, Any]) -> None:
    concerns = Concerns()

    assert concerns.changed(body("a", "1") | {"spec": spec}) == {("shop", "a")}


def test_an_object_that_needs_no_tunnel_has_no_rivals() -> None:
    assert Concerns().rivals(None) == ()


def test_a_competitor_is_read_from_any_body() -> None:
    metadata = {"name": "a", "namespace": "b", "uid": "c", "creationTimestamp": timestamp(NOW)}

    assert competitor({"metadata": metadata}) == Competitor("a", "b", NOW, "c")
    assert competitor({"metadata": metadata | {"creationTimestamp": None}}).created == 0.0


def copy(name: str, uid: str, source: str, destination: str, **changes: Any) -> dict[str, Any]:
    """An object that copies a table of one instance to another table of it; `uid` is its age as well."""
    tables = {"source__table": source, "source__tunnel__name": name, "sink__tablestore__table": destination}
    found = tunnel_object(name, **tables, sink__tablestore__instance="shop", source__instance="shop", **changes)
    found["metadata"] |= {"namespace": "shop", "uid": uid, "generation": 1}
    return found


def names(found: Iterable[Competitor]) -> list[str]:
    return [one.name for one in found]


def test_the_youngest_object_of_a_circle_sees_the_way_back() -> None:
    concerns = Concerns()
    for document in (copy("a", "1", "x", "y"), copy("b", "2", "y", "z"), copy("c", "3", "z", "x")):
        concerns.changed(document)

    assert names(concerns.way_back(("shop", "c"))) == ["a", "b"]
    assert concerns.way_back(("shop", "a")) == concerns.way_back(("shop", "b")) == ()


def test_the_shortest_way_back_counts() -> None:
    concerns = Concerns()
    steps = [("x", "y"), ("y", "z"), ("x", "z"), ("z", "w"), ("w", "z")]
    for number, (source, destination) in enumerate(steps):
        concerns.changed(copy(f"n{number}", str(number), source, destination))
    concerns.changed(copy("back", "9", "z", "x"))

    assert names(concerns.way_back(("shop", "back"))) == ["n2"]
    assert names(concerns.way_back(("shop", "n4"))) == ["n3"]
    assert concerns.way_back(("shop", "unknown")) == ()


@pytest.mark.parametrize(
    "elder",
    [
        copy("a", "1", "x", "y", delivery={"filter": {"actions": ["Put"]}}),
        copy("a", "1", "x", "y", source__tunnel__type="BaseData"),
        copy("a", "1", "x", "y", source__endpoint="http://elsewhere.example:8800"),
        copy("a", "1", "x", "elsewhere"),
        body("a", "1"),
    ],
    ids=["filtered", "existing rows only", "another endpoint", "another table", "unrelated"],
)
def test_what_leads_nothing_back_is_no_circle(elder: dict[str, Any]) -> None:
    concerns = Concerns()
    concerns.changed(elder)
    concerns.changed(copy("b", "2", "y", "x"))

    assert concerns.way_back(("shop", "b")) == ()


def with_condition(document: dict[str, Any], kind: str, reason: str) -> dict[str, Any]:
    return document | {"status": {"conditions": [{"type": kind, "status": "True", "reason": reason}]}}


def released(document: dict[str, Any]) -> dict[str, Any]:
    """The same while only another finalizer holds it: every worker has ended."""
    marks = {"deletionTimestamp": timestamp(NOW), "finalizers": ["foregroundDeletion"]}
    return document | {"metadata": document["metadata"] | marks}


@pytest.mark.parametrize(
    "elder",
    [
        copy("a", "1", "x", "y", suspend=True),
        with_condition(copy("a", "1", "x", "y"), "Completed", "EndTimeReached"),
        released(copy("a", "1", "x", "y")),
    ],
    ids=["suspended", "completed", "released by its deletion"],
)
def test_an_elder_that_copies_nothing_now_stops_no_copy_back(elder: dict[str, Any]) -> None:
    concerns = Concerns()
    concerns.changed(elder)
    concerns.changed(copy("b", "2", "y", "x"))
    stops_before = concerns.way_back(("shop", "b"))
    again = copy("a", "1", "x", "y")
    again["metadata"]["generation"] = 2

    woken = concerns.changed(again)

    assert stops_before == ()
    assert woken == {("shop", "a"), ("shop", "b")}
    assert names(concerns.way_back(("shop", "b"))) == ["a"]


@pytest.mark.parametrize(
    "younger",
    [
        copy("b", "2", "y", "x", suspend=True),
        with_condition(copy("b", "2", "y", "x"), "Completed", "EndTimeReached"),
    ],
    ids=["suspended", "completed"],
)
def test_an_object_that_copies_nothing_waits_for_nothing(younger: dict[str, Any]) -> None:
    concerns = Concerns()
    concerns.changed(copy("a", "1", "x", "y"))
    concerns.changed(younger)

    assert concerns.way_back(("shop", "b")) == ()


def test_an_elder_in_deletion_stops_a_copy_back_until_it_is_released() -> None:
    concerns = Concerns()
    elder = released(copy("a", "1", "x", "y"))
    held = elder | {"metadata": elder["metadata"] | {"finalizers": [FINALIZER, "foregroundDeletion"]}}
    concerns.changed(held)
    concerns.changed(copy("b", "2", "y", "x"))
    stops_before = names(concerns.way_back(("shop", "b")))

    woken = concerns.changed(elder)

    assert stops_before == ["a"]
    assert ("shop", "b") in woken
    assert concerns.way_back(("shop", "b")) == ()


def test_a_suspended_elder_stops_a_copy_back_until_its_workers_have_ended() -> None:
    concerns = Concerns()
    concerns.changed(copy("b", "2", "y", "x"))
    stops, woken = [], []
    # it runs, is suspended, drains, a pass fails, it has ended, a pass fails, it is resumed
    suspended = [(True, seen) for seen in ("", "False", "Unknown", "True", "Unknown")]
    for suspend, seen in [(False, ""), *suspended, (False, "Unknown")]:
        conditions = [{"type": "Suspended", "status": seen}] if seen else []
        elder = copy("a", "1", "x", "y", suspend=suspend) | {"status": {"conditions": conditions}}
        woken.append(("shop", "b") in concerns.changed(elder))
        stops.append(bool(concerns.way_back(("shop", "b"))))

    assert stops == [True, True, True, True, False, False, True]
    assert woken == [False, False, False, False, True, False, True]


@pytest.mark.parametrize(("seen", "stops"), [("False", True), ("Unknown", False), ("True", False)])
def test_of_a_suspended_elder_an_operator_that_starts_believes_what_was_observed(seen: str, stops: bool) -> None:
    concerns = Concerns()
    elder = copy("a", "1", "x", "y", suspend=True) | {"status": {"conditions": [{"type": "Suspended", "status": seen}]}}
    concerns.changed(elder)
    concerns.changed(copy("b", "2", "y", "x"))

    assert bool(concerns.way_back(("shop", "b"))) == stops


@pytest.mark.parametrize("seen", ["True", "Unknown", ""], ids=["stalled", "not observed", "new"])
def test_of_three_the_youngest_runs_while_the_second_waits_whatever_was_seen_of_that(seen: str) -> None:
    concerns = Concerns()
    elder, waiting = copy("a", "1", "x", "y"), copy("b", "2", "y", "x")
    conditions = [{"type": "Stalled", "status": seen, "reason": "CopyCircle"}] if seen else []
    for document in (copy("c", "3", "x", "y"), elder, waiting | {"status": {"conditions": conditions}}):
        concerns.changed(document)

    assert concerns.way_back(("shop", "a")) == concerns.way_back(("shop", "c")) == ()
    assert names(concerns.way_back(("shop", "b"))) == ["a"]
    assert concerns.deleted(elder) == {("shop", "b"), ("shop", "c")}
    assert concerns.way_back(("shop", "b")) == ()
    assert names(concerns.way_back(("shop", "c"))) == ["b"]


def test_that_a_pass_of_one_that_waits_fails_wakes_no_other() -> None:
    concerns = Concerns()
    waiting = with_condition(copy("b", "2", "y", "x"), "Stalled", "CopyCircle")
    for document in (copy("a", "1", "x", "y"), waiting, copy("c", "3", "x", "y")):
        concerns.changed(document)
    problem = Problem(Reason.API_SERVER_REFUSED, "403")
    status = unobserved_status(waiting["status"], problem, generation=1, observed=NOW, now=NOW)

    assert concerns.changed(waiting | {"status": status}) == set()
    assert concerns.way_back(("shop", "c")) == ()


def test_the_end_of_a_route_wakes_who_waited_for_it() -> None:
    concerns = Concerns()
    elder = copy("a", "1", "x", "y")
    for document in (elder, copy("b", "2", "y", "x"), copy("other", "3", "u", "v")):
        concerns.changed(document)
    filtered = copy("a", "1", "x", "y", delivery={"filter": {"actions": ["Put"]}})
    filtered["metadata"]["generation"] = 2

    assert concerns.changed(filtered) == {("shop", "a"), ("shop", "b")}
    assert concerns.way_back(("shop", "b")) == ()
    assert concerns.changed(elder) == {("shop", "a"), ("shop", "b")}
    assert names(concerns.way_back(("shop", "b"))) == ["a"]
    assert concerns.deleted(elder) == {("shop", "b")}
    assert concerns.way_back(("shop", "b")) == ()
