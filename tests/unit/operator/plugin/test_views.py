"""What the views print, compared with files; OTS_GOLDEN=write writes new ones."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

import pytest

from ots_tunnel_operator.plugin.channels import channels_lines
from ots_tunnel_operator.plugin.fleet import by_trouble, fleet_lines
from ots_tunnel_operator.plugin.live import Course, fleet_frame, object_frame
from ots_tunnel_operator.plugin.ott import Ott
from ots_tunnel_operator.plugin.report import Report
from ots_tunnel_operator.plugin.serving import Serving
from ots_tunnel_operator.plugin.text.screen import Screen
from ots_tunnel_operator.plugin.why.view import why_lines
from ots_tunnel_operator.reasons import Reason
from ots_tunnel_operator.report.conditions import ConditionValue, build
from tests.support.operator.plugin_objects import NOW, STATES, body, conditions, healthy, late, reports, unreachable

FOLDER = Path(__file__).parents[3] / "golden" / "plugin"
WIDE, NARROW = Screen(), Screen(width=60, blocks=False)
LEASE = "ots-tunnel-system/ots-tunnel-operator"
SERVED = Serving(LEASE, "operator-6f5d_1", NOW - 2)

EVENTS = [
    {"reason": "RollingWorkers", "message": "rolling out 1 of 3", "lastTimestamp": "2026-11-20T08:10:30Z", "count": 1},
    {"reason": "LagHigh", "message": "more than 60 behind", "lastTimestamp": "2026-11-20T07:55:30Z", "count": 3},
    {"reason": "RollingWorkers", "message": "an older one", "lastTimestamp": "2026-11-20T07:00:30Z", "count": 1},
    {"reason": "NoTime", "message": "is left out"},
]


def matches(name: str, lines: Sequence[str]) -> None:
    text = "".join(f"{line}\n" for line in lines)
    path = FOLDER / f"{name}.txt"
    if os.environ.get("OTS_GOLDEN") == "write":
        path.write_text(text)
    assert text == path.read_text()


def fleet() -> list[Ott]:
    found = []
    for state, make in STATES.items():
        ott = make()
        ott.body["metadata"]["name"] = f"{state}-copy"
        found.append(ott)
    return found


def test_a_fleet() -> None:
    matches("list-wide", fleet_lines(fleet(), WIDE, NOW, with_namespace=True))


def test_a_fleet_in_a_narrow_terminal() -> None:
    lines = fleet_lines(fleet(), NARROW, NOW)

    # the sum is a sentence with a command, which is not cut
    assert max(map(len, lines[:-1])) <= 60
    matches("list-narrow", lines)


def test_a_live_fleet_begins_with_what_needs_a_person() -> None:
    course = Course()
    for objects in ([healthy()], [late()], [unreachable(), healthy()]):
        course.add(objects)

    matches("top-fleet", fleet_frame(fleet(), course, Screen(width=100, height=14), NOW, everywhere=False))
    assert min(fleet(), key=by_trouble).name == "expired-copy"


def test_a_live_object() -> None:
    course = Course()
    course.add([late()])

    matches("top-object", object_frame(late(), reports(), course, Screen(width=100), NOW))


def test_channels_over_workers() -> None:
    matches("channels-wide", channels_lines(late(), reports(), WIDE, NOW, full_ids=True))


def test_channels_in_a_narrow_terminal() -> None:
    lines = channels_lines(late(), reports(), NARROW, NOW)

    assert max(map(len, lines[1:])) <= 60
    matches("channels-narrow", lines)


def test_channels_of_workers_that_cannot_be_asked() -> None:
    failure = '(Forbidden): pods "the pod" is forbidden: User "jane" cannot get resource "pods/proxy"'
    silent = [Report(str(item["name"]), failure=failure) for item in healthy().entries("workers")]

    matches("channels-by-status", channels_lines(healthy(), silent, WIDE, NOW))


def test_channels_before_there_are_any() -> None:
    assert channels_lines(STATES["unseen"](), [], WIDE, NOW) == ["shop/orders-copy: the status has no channels (-)"]


@pytest.mark.parametrize("state", STATES)
def test_why(state: str) -> None:
    events = EVENTS if state == "late" else ()

    matches(f"why-{state}", why_lines(STATES[state](), WIDE, NOW, events=events, serving=SERVED))


def test_why_tells_the_rate_limit_of_all_workers_together() -> None:
    found = body()
    found["status"]["throughput"]["limitRowsPerSecond"] = 6000
    text = " ".join(" ".join(why_lines(Ott(found), WIDE, NOW, serving=SERVED)).split())

    assert "5,300 rows/s; the rate limit of each worker allows at most 6,000 rows/s together" in text


def test_why_in_a_narrow_terminal() -> None:
    lines = why_lines(late(), NARROW, NOW, events=EVENTS, serving=SERVED)

    # a command is never broken: a terminal that breaks it keeps it whole for the clipboard
    assert max(len(line) for line in lines if not line.startswith("    ")) <= 60
    matches("why-narrow", lines)


def test_why_says_that_no_operator_runs() -> None:
    gone = why_lines(healthy(), WIDE, NOW, serving=Serving(LEASE, "operator-6f5d_1", NOW - 7200))
    never = why_lines(healthy(), WIDE, NOW, serving=Serving(LEASE))
    unread = why_lines(healthy(), WIDE, NOW, serving=Serving(LEASE, failure="forbidden"), notes=["not read"])

    assert any("last renewed Lease" in line and "2 h ago" in line for line in gone)
    assert any("no process holds Lease" in line for line in never)
    assert unread[-1] == "not read"
    assert not any("Lease" in line for line in unread)


@pytest.mark.parametrize(
    ("serving", "said"),
    [
        (Serving(LEASE, "operator-6f5d_1", NOW - 5), ""),
        (
            Serving(LEASE, "operator-6f5d_1", NOW - 7200),
            f"No operator looks at 2 objects: operator-6f5d_1 last renewed Lease {LEASE} 2 h ago, so what is shown is "
            "as old as that.",
        ),
        (
            Serving(LEASE),
            f"No operator looks at 2 objects: no process holds Lease {LEASE}, so what is shown may be old.",
        ),
        (
            Serving(LEASE, failure="forbidden"),
            f"Whether the operator of Lease {LEASE} runs could not be read: forbidden",
        ),
    ],
)
def test_a_list_says_that_no_operator_looks_at_its_objects(serving: Serving, said: str) -> None:
    # one that no operator has claimed says so itself
    objects = [healthy(), late(), STATES["unseen"]()]
    listed = fleet_lines(objects, WIDE, NOW, servings=[serving])
    live = fleet_frame(objects, Course(), WIDE, NOW, everywhere=True, servings=[serving])
    one = object_frame(healthy(), [], Course(), WIDE, NOW, servings=[serving])

    assert said in " ".join(listed)
    assert said in " ".join(live)
    assert said.replace("2 objects", "1 object") in " ".join(one)
    assert bool(said) == any("Lease" in line for line in (*listed, *live, *one))
    assert listed[-1].startswith("3 objects")


def test_why_names_a_spec_that_nobody_has_looked_at() -> None:
    found = body()
    found["metadata"]["generation"] = 8

    text = " ".join(why_lines(Ott(found), WIDE, NOW))

    assert "the spec is of generation 8, and the status describes 7" in " ".join(text.split())


def test_the_place_to_read_on_is_said_once() -> None:
    found = dict(body())
    expired_now = {
        kind: ConditionValue(kind == "Stalled", Reason.TUNNEL_EXPIRED, "it is over") for kind in ("Ready", "Stalled")
    }
    found["status"] = found["status"] | {"conditions": build(expired_now, (), generation=7, now=NOW)}

    text = " ".join(why_lines(Ott(found), WIDE, NOW))

    assert "it is over" in text
    assert text.count("docs/operations.md") == 1


def test_an_idle_object_is_caught_up_and_not_late() -> None:
    found = body()
    found["status"]["lag"] |= {"seconds": 0, "caughtUp": True, "slowest": []}

    assert any("Every change has reached the sink." in line for line in why_lines(Ott(found), WIDE, NOW))


def test_an_accepted_gap_is_named_where_everything_is_read() -> None:
    found = body()
    found["status"]["lag"] |= {"seconds": 0, "caughtUp": False, "slowest": []}
    gap = {"channel": "c1", "from": "2026-11-20T08:00:00Z", "to": "2026-11-20T08:05:00Z", "accepted": True}
    found["status"]["possibleGaps"] = [gap]

    said = " ".join(" ".join(why_lines(Ott(found), WIDE, NOW)).split())

    assert "Changes of channel c1 from 2026-11-20T08:00:00Z to 2026-11-20T08:05:00Z may be missing, which was" in said
    assert "has reached the sink" not in said


def test_what_completed_with_a_loss_is_to_be_repaired() -> None:
    found = body()
    message = "everything was read to its end, but changes may be missing (status.possibleGaps)"
    states = {"Ready": ("True", "CompletedWithLoss", message), "Completed": ("True", "CompletedWithLoss", message)}
    found["status"]["conditions"] = conditions(**states)

    said = " ".join(" ".join(why_lines(Ott(found), WIDE, NOW)).split())

    assert "ots-tunnel verify" in said
    assert "Nothing: delete it" not in said


@pytest.mark.parametrize(
    ("sink", "shown"),
    [
        ({"stdout": {}}, "-> stdout"),
        ({"kafka": {"topic": "orders"}}, "-> kafka orders"),
        ({"files": {"url": "s3://shop/orders"}}, "-> files s3://shop/orders"),
        ({}, "-> no sink"),
    ],
)
def test_why_names_every_sink(sink: dict[str, object], shown: str) -> None:
    assert why_lines(Ott(body(sink=sink)), WIDE, NOW)[0].endswith(shown)


def test_no_objects() -> None:
    assert fleet_lines([], WIDE, NOW) == ["no objects"]
    assert fleet_frame([], Course(), WIDE, NOW, everywhere=True) == ["no objects"]


def test_records_that_were_left_out_are_told_although_it_is_ready() -> None:
    message = "the sink refused records for good, and delivery.onPermanentError left them out"
    found = body()
    found["status"] |= {
        "refused": {"records": 17, "keys": 3, "lastTime": "2026-11-20T08:05:30Z"},
        "conditions": conditions(Degraded=("True", "RecordsRefused", message)),
    }
    ott = Ott(found)

    lines = why_lines(ott, WIDE, NOW)

    assert f"RecordsRefused: {message}" in fleet_lines([ott], WIDE, NOW)[1]
    assert by_trouble(late()) < by_trouble(ott) < by_trouble(healthy())
    said = " ".join(" ".join(lines).split())
    assert "Degraded is True (RecordsRefused for 5 min)" in said
    assert "The sink refused 17 records of 3 keys for good, the last 10 min ago; they were left out." in said
    assert "    kubectl -n shop annotate ott orders-copy --overwrite ots-tunnel.dev/accept-refused=17" in lines
