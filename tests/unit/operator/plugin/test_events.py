"""Which events belong to an object, how they are told, and what to do about those that still hold."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from ots_tunnel_operator.plugin.events.belonging import own_events
from ots_tunnel_operator.plugin.events.folding import folded
from ots_tunnel_operator.plugin.events.view import events_lines
from ots_tunnel_operator.plugin.ott import Ott
from ots_tunnel_operator.plugin.text.screen import Screen
from ots_tunnel_operator.times import timestamp
from tests.support.operator.plugin_objects import NOW, UID, body, deleting, expired, healthy, late

FOLDER = Path(__file__).parents[3] / "golden" / "plugin"
WIDE = Screen()
PODS = ("orders-copy-7d4f8b9c-bbbbb", "orders-copy-7d4f8b9c-ccccc", "orders-copy-7d4f8b9c-ddddd")


def event(
    reason: str, message: str = "", *, kind: str = "TablestoreTunnel", name: str = "orders-copy", **values: Any
) -> dict[str, Any]:
    """An event of the object, a minute ago, unless `values` say otherwise; `ago` is in seconds."""
    of = {"kind": kind, "name": name} | ({"uid": UID} if kind == "TablestoreTunnel" else {"uid": f"uid of {name}"})
    last = timestamp(NOW - values.pop("ago", 60))
    found = {"involvedObject": of, "type": "Normal", "reason": reason, "message": message, "count": 1}
    return found | {"firstTimestamp": last, "lastTimestamp": last} | values


def warning(*words: str, **values: Any) -> dict[str, Any]:
    return event(*words, **values) | {"type": "Warning"}


def pod(reason: str, message: str, number: int = 0, **values: Any) -> dict[str, Any]:
    return event(reason, message, kind="Pod", name=PODS[number], **values)


def test_the_log_of_a_worker_is_found_whatever_the_object_is_called() -> None:
    copy = Ott(body("daily-snapshot-copy"))
    failing = event("BackOff", "restarting", kind="Pod", name="daily-snapshot-copy-7d4f8b9c-bbbbb", type="Warning")

    text = "\n".join(events_lines(copy, [failing], WIDE, NOW))

    assert "logs -l ots-tunnel.dev/name=daily-snapshot-copy,ots-tunnel.dev/role=worker" in text


EVENTS = [
    warning(
        "LagHigh",
        "the slowest channel is more than 60 s behind",
        ago=300,
        count=3,
        firstTimestamp=timestamp(NOW - 2400),
    ),
    event("TunnelCreated", "tunnel 1c6f4d32 was created", ago=3400),
    event("ScalingReplicaSet", "Scaled up replica set orders-copy-7d4f8b9c to 3", kind="Deployment", ago=3300),
    *(
        pod("Scheduled", f"Successfully assigned shop/{PODS[number]} to node-1", number, ago=3290 - number)
        for number in range(3)
    ),
    pod(
        "BackOff",
        f"Back-off restarting failed container worker in pod {PODS[1]}",
        1,
        ago=20,
        count=9,
        type="Warning",
        firstTimestamp=timestamp(NOW - 500),
    ),
    pod(
        "BackOff",
        f"Back-off restarting failed container worker in pod {PODS[2]}",
        2,
        ago=40,
        count=2,
        type="Warning",
        firstTimestamp=timestamp(NOW - 90),
    ),
    warning("SecretNotFound", "Secret 'ots-credentials' does not exist", ago=3395),
    event("Other", "of another object", name="other-copy")
    | {"involvedObject": {"kind": "TablestoreTunnel", "uid": "other"}},
]


def matches(name: str, lines: Sequence[str]) -> None:
    text = "".join(f"{line}\n" for line in lines)
    path = FOLDER / f"{name}.txt"
    if os.environ.get("OTS_GOLDEN") == "write":
        path.write_text(text)
    assert text == path.read_text()


def test_events_in_order_of_time_with_the_way_out() -> None:
    matches("events-late", events_lines(late(), EVENTS, WIDE, NOW))


def test_events_in_a_narrow_terminal() -> None:
    lines = events_lines(late(), EVENTS, Screen(width=60, blocks=False), NOW)

    assert max(len(line) for line in lines if not line.startswith("    kubectl")) <= 60
    matches("events-narrow", lines)


def test_an_object_without_events_says_how_long_they_are_kept() -> None:
    (first, *rest) = events_lines(healthy(), (), WIDE, NOW)

    text = " ".join([first, *(line.strip() for line in rest)])
    assert text.startswith("shop/orders-copy: no events of it and its children are kept")
    assert text.endswith("kubectl ott why orders-copy -n shop")


@pytest.mark.parametrize(
    ("kind", "name", "is_own"),
    [
        ("Deployment", "orders-copy", True),
        ("Deployment", "orders-copy-web", False),
        ("ReplicaSet", "orders-copy-7d4f8b9c", True),
        ("ReplicaSet", "orders-copy-web-7d4f8b9c", False),
        ("Pod", "orders-copy-7d4f8b9c-xk4bz", True),
        ("Pod", "orders-copy-7d4f8b9c", False),
        ("Pod", "orders-copy-0", False),
        # a pod of the Job orders-copy-hourly: generated names have no vowels
        ("Pod", "orders-copy-hourly-xk4bz", False),
        ("Pod", "other-orders-copy-7d4f8b9c-xk4bz", False),
        ("Pod", "orders-copy-snapshot-driver", True),
        ("Pod", "orders-copy-snapshot-4f1d-exec-12", True),
        ("Pod", "orders-copy-snapshot-web", False),
        ("SparkApplication", "orders-copy-snapshot", True),
        ("ConfigMap", "orders-copy-config", True),
        ("ConfigMap", "orders-copy-other", False),
        ("Job", "orders-copy", False),
    ],
)
def test_which_children_are_its_own(kind: str, name: str, is_own: bool) -> None:
    found = list(own_events(healthy(), [event("Any", kind=kind, name=name)]))

    assert bool(found) is is_own


def test_a_predecessor_of_its_name_had_other_events() -> None:
    before = {"ago": NOW - 1_700_000_000}
    events = [
        event("Any", **before) | {"involvedObject": {"kind": "TablestoreTunnel", "name": "orders-copy", "uid": "old"}},
        event("Any", kind="Deployment", **before),
        {"involvedObject": {}, "reason": "Any"},
    ]

    assert list(own_events(healthy(), events)) == []


def test_each_form_of_a_time_is_read() -> None:
    series = {"count": 7, "lastObservedTime": timestamp(NOW - 5)}
    new = event("New", eventTime=timestamp(NOW - 50), firstTimestamp=None, lastTimestamp=None, count=None)

    (once, again) = folded([new, new | {"reason": "Again", "series": series}])
    assert (once.reason, once.count, once.first, once.last) == ("New", 1, NOW - 50, NOW - 50)
    assert (again.reason, again.count, again.first, again.last) == ("Again", 7, NOW - 50, NOW - 5)
    assert folded([{"involvedObject": {}, "reason": "Never"}]) == []


def test_what_no_longer_holds_needs_nothing() -> None:
    text = "\n".join(events_lines(healthy(), EVENTS, WIDE, NOW))

    assert text.count("Nothing: no condition has this reason any more.") == 2
    assert "--replicas" not in text


def test_an_old_warning_of_a_child_needs_nothing() -> None:
    old = pod("FailedScheduling", "0/3 nodes are available", ago=3000, type="Warning")

    assert not any("About" in line for line in events_lines(healthy(), [old], WIDE, NOW))


@pytest.mark.parametrize(
    ("found", "command"),
    [
        (pod("FailedScheduling", "0/3 nodes"), f"kubectl -n shop describe pod {PODS[0]}"),
        (
            event("FailedCreate", kind="ReplicaSet", name="orders-copy-7d4f8b9c"),
            "describe replicaset orders-copy-7d4f8b9c",
        ),
        (pod("BackOff", "again"), "kubectl -n shop logs -l ots-tunnel.dev/name=orders-copy,ots-tunnel.dev/role=worker"),
        (event("BackOff", kind="Pod", name="orders-copy-snapshot-driver"), "role=snapshot"),
    ],
)
def test_a_warning_of_a_child_leads_to_what_tells_more(found: dict[str, Any], command: str) -> None:
    lines = events_lines(healthy(), [found | {"type": "Warning"}], WIDE, NOW)

    assert command in lines[-1]


def test_a_warning_without_a_known_way_out_is_only_told() -> None:
    lines = events_lines(
        expired(), [warning("DeletionDelayed", "the Secret is missing"), pod("Odd", "x", type="Warning")], WIDE, NOW
    )

    assert not any("About" in line for line in lines)


def test_a_deletion_that_is_delayed_shows_how_to_end_it() -> None:
    delayed = warning("DeletionDelayed", "the deletion waits, at most 600 s: no answer")

    told = events_lines(deleting(), [delayed], WIDE, NOW)
    after = events_lines(healthy(), [delayed], WIDE, NOW)

    (shown,) = (line for line in told if line.startswith("    kubectl"))
    assert shown.endswith("annotate ott orders-copy --overwrite ots-tunnel.dev/force-delete=true")
    # of a predecessor of the name, for example
    assert not [line for line in after if "kubectl" in line]


def test_a_message_cannot_type_into_the_terminal() -> None:
    lines = events_lines(late(), [warning("Evil", "\x1b]0;owned\x07\x1b[2J\u202eok\nnext")], Screen(colour=True), NOW)

    text = "".join(lines).replace("\x1b[33m", "").replace("\x1b[0m", "").replace("\x1b[1m", "")
    assert "\x1b" not in text
    assert "\x07" not in text
    assert "\u202e" not in text
    assert "next" in text
