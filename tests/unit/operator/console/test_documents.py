"""What the console says of a fleet and of one object: the words of `kubectl ott`, and how old they are."""

from __future__ import annotations

import json
from typing import Any

import pytest

from ots_tunnel_operator.console.channels import LISTED, channels_document
from ots_tunnel_operator.console.detail import object_document
from ots_tunnel_operator.console.fleet import CAUSE, Lines, age_of, line_of
from ots_tunnel_operator.console.sight import Sight
from ots_tunnel_operator.loop_cache import LoopCache
from ots_tunnel_operator.plugin.ott import Ott
from ots_tunnel_operator.plugin.why.advice import next_steps
from ots_tunnel_operator.plugin.why.state import now_sentences
from ots_tunnel_operator.world.report import KeptReport, WorkerReport
from tests.support.operator.console_fleet import WORKER, with_channels
from tests.support.operator.objects import tunnel_object
from tests.support.operator.plugin_objects import (
    CHANNELS,
    NOW,
    STATES,
    body,
    by_shards,
    conditions,
    deleting,
    expired,
    healthy,
    late,
    paused,
    unreachable,
    unseen,
)
from tests.support.operator.query_worlds import BY_QUERY, query_world
from tests.support.operator.worlds import UID, channel, report_channel, reported

LEASE = "ots-tunnel-system/ots-tunnel-operator"


def without_workers() -> Ott:
    found = body()
    found["status"]["workers"] = []
    return Ott(found)


def done() -> Ott:
    found = body()
    found["status"] |= {
        "phase": "Completed",
        "readyReplicas": 0,
        "conditions": conditions(Completed=("True", "AllChannelsTerminated", "")),
    }
    return Ott(found)


def sight(ott: Ott, cache: LoopCache | None = None) -> Sight:
    return Sight.look(ott.body, cache)


def document(ott: Ott, cache: LoopCache | None = None, lags: Any = (0, None, 12)) -> dict[str, Any]:
    return object_document(sight(ott, cache), lags, LEASE, NOW)


@pytest.mark.parametrize(
    ("ott", "state"),
    [
        (expired(), "stalled"),
        (late(), "problem"),
        (unreachable(), "problem"),
        (unseen(), "waiting"),
        (healthy(), "works"),
        (paused(), "idle"),
    ],
)
def test_a_line_says_what_state_an_object_is_in(ott: Ott, state: str) -> None:
    assert line_of(ott)["state"] == state


def test_a_line_of_a_late_object() -> None:
    line = line_of(late())

    assert (line["lag"], line["lagStyle"]) == (500, "bad")
    assert (line["retention"], line["retentionStyle"]) == (61, "bad")
    assert (line["readyWorkers"], line["wantedWorkers"], line["open"], line["unowned"]) == (2, 3, 4, 1)
    assert line["why"].startswith("LagHigh: the slowest channel is more than ")


@pytest.mark.parametrize("ott", [paused(), done()])
def test_an_object_that_is_paused_or_done_wants_no_worker(ott: Ott) -> None:
    assert line_of(ott)["wantedWorkers"] == 0


def test_what_is_unknown_is_null_in_a_line() -> None:
    line = line_of(unseen())

    figures = ("readyWorkers", "open", "unowned", "lag", "base", "rate", "retention")
    assert {name: line[name] for name in figures} == dict.fromkeys(figures)
    assert line["why"] == "no operator has looked at it yet"


def test_a_long_cause_is_cut_in_a_line() -> None:
    ott = expired()
    ready = next(item for item in ott.status["conditions"] if item["type"] == "Stalled")
    ready["message"] = "x" * 4000

    assert len(line_of(ott)["why"]) == CAUSE


def test_the_age_is_that_of_this_processs_last_look() -> None:
    looked = Sight.glance(healthy().body, LoopCache(observed_time=NOW - 3))

    assert age_of(looked, LEASE) == {"looked": True, "observed": NOW - 3, "elsewhere": "", "isDeleting": False}


def test_before_the_first_look_the_age_is_that_of_the_status() -> None:
    expected = {"looked": False, "observed": NOW - 8, "elsewhere": "", "isDeleting": False}

    assert age_of(Sight.glance(healthy().body, None), LEASE) == expected
    assert age_of(Sight.glance(healthy().body, LoopCache()), "") == expected
    assert age_of(Sight.glance(unseen().body, LoopCache()), LEASE)["observed"] is None
    assert age_of(Sight.glance(deleting().body, None), LEASE)["isDeleting"] is True


def test_an_object_of_another_operator_is_named_as_such() -> None:
    assert age_of(sight(healthy()), "lake/operator")["elsewhere"] == LEASE


def test_a_line_is_made_anew_only_for_a_changed_object() -> None:
    lines, one, other = Lines(), body(), body("other")
    first = lines.of([Sight.glance(one, None), Sight.glance(other, None)], LEASE)
    one["status"]["lag"]["seconds"] = 77  # the copy is never changed in place: this is not seen

    again = lines.of([Sight.glance(one, None), Sight.glance(dict(other, status={}), None)], LEASE)

    assert [line["lag"] for line in first] == [12, 12]
    assert [line["lag"] for line in again] == [12, None]
    assert [line["lag"] for line in lines.of([Sight.glance(dict(one), None)], LEASE)] == [77]


def test_every_state_has_a_document_in_json() -> None:
    for make in STATES.values():
        found = document(make())
        assert json.loads(json.dumps(found, allow_nan=False)) == found


def test_an_object_is_described_in_the_words_of_the_plugin() -> None:
    found = document(late())

    assert found["now"] == now_sentences(late(), NOW)
    assert found["next"] == [{"text": each.text, "commands": list(each.commands)} for each in next_steps(late())]
    assert found["title"].startswith("shop/orders-copy: existing rows and changes of table orders")
    assert any("RollingWorkers" in sentence for sentence in found["waits"])
    assert (found["lags"], found["lagSeconds"], found["lagLimit"]) == ([0, None, 12], 15.0, 60)


def test_the_limit_of_the_lag_is_that_from_which_the_object_is_degraded() -> None:
    found = body(sink={"files": {"url": "s3://lake/orders", "maxFileSeconds": 300}})

    assert document(Ott(found))["lagLimit"] == 1200 == Ott(found).lag_limit


def test_a_bad_condition_has_its_way_out_once() -> None:
    conditions = {each["type"]: each for each in document(expired())["conditions"]}

    commands = [command for step in conditions["Ready"]["steps"] for command in step["commands"]]
    assert "kubectl ott pause orders-copy -n shop --wait" in commands
    assert conditions["Ready"]["page"] == "docs/operations.md#tunnelexpired"
    assert [kind for kind, each in conditions.items() if each["steps"]] == ["Ready"]
    assert {kind: each["style"] for kind, each in conditions.items()} == {
        "Ready": "bad",
        "Progressing": "",
        "Degraded": "bad",
        "Stalled": "bad",
        "CredentialsValid": "good",
        "SinkReady": "good",
        "TunnelReady": "bad",
        "WorkersAvailable": "good",
        "Rebalancing": "",
        "ScalingActive": "",
        "ScalingLimited": "",
        "Suspended": "",
        "Completed": "",
    }


def test_an_unknown_condition_is_a_warning() -> None:
    conditions = {each["type"]: each for each in document(unreachable())["conditions"]}

    assert conditions["Ready"]["style"] == "warn"
    assert conditions["Ready"]["steps"][0]["text"].startswith("Correct the endpoint")
    bare = late()
    bare.status["conditions"][0] |= {"status": "Unknown", "reason": "", "message": ""}
    assert document(bare)["conditions"][0] | {"since": None} == {
        "type": "Ready",
        "status": "Unknown",
        "reason": "",
        "message": "",
        "since": None,
        "style": "",
        "steps": [],
        "page": "",
    }


def test_decisions_are_the_events_of_this_process_and_the_records_of_the_status() -> None:
    found = document(late(), with_channels(NOW))["decisions"]

    assert {"time": NOW - 300, "reason": "LagHigh", "text": "Ready became False"} in found
    assert {"time": NOW - 300, "reason": "RollingWorkers", "text": "rolling out 1 of 3"} in found
    assert [each["reason"] for each in found][-1] == "DestinationCreated"


def test_channels_over_workers() -> None:
    found = channels_document(sight(late(), with_channels(NOW)))

    held = {holder["name"]: [each["id"] for each in holder["channels"]] for holder in found["holders"]}
    assert held == {
        f"{WORKER}-aaaaa": [CHANNELS[0], CHANNELS[1]],
        f"{WORKER}-bbbbb": [CHANNELS[2]],
        f"{WORKER}-ccccc": [CHANNELS[3]],
        "visitor": [CHANNELS[4]],
    }
    first, second, silent, visitor = found["holders"]
    assert first["channels"][0] == {
        "id": CHANNELS[0],
        "type": "Stream",
        "state": "OPEN",
        "lag": 500,
        "lagStyle": "bad",
        "rows": 1000,
        "error": "OTSServerBusy: try again",
    }
    assert (first["rate"], first["busy"], first["reported"]) == (2650.4, 61, NOW - 2)
    assert (second["error"], second["rate"], second["reported"]) == ("cannot connect", None, NOW - 20)
    assert (silent["reported"], silent["isForeign"], silent["busy"]) == (None, False, 30)
    # the status has no lag of this channel among the slowest: it is unknown, not 0
    assert [each["lag"] for each in silent["channels"]] == [None]
    assert (visitor["isForeign"], visitor["channels"][0]["lag"]) == (True, 3)
    assert (found["full"], found["idWidth"], found["hidden"]) == (500, 8, 0)
    assert found["counts"] == {"total": 9, "open": 4, "closing": 0, "terminated": 4, "unowned": 1}
    assert found["part"] == "channel"


def test_the_client_of_the_objects_own_query_is_no_stranger() -> None:
    """It begins as the object's uid does."""
    own, stranger = (
        channels_document(Sight(followed(), channels=(channel("c1", client=client),)))["holders"]
        for client in ("01234567-spark-1a2b-1", "98765432-spark-1a2b-1")
    )

    assert [(holder["name"], holder["isForeign"]) for holder in (*own, *stranger)] == [
        ("01234567-spark-1a2b-1", False),
        ("98765432-spark-1a2b-1", True),
    ]


def followed() -> Ott:
    body = tunnel_object(**BY_QUERY)
    return Ott(body | {"metadata": body["metadata"] | {"uid": UID}, "status": reported(query_world())})


def test_the_parts_of_a_stream_are_shards() -> None:
    found = channels_document(sight(by_shards(), with_channels(NOW)))

    assert found["part"] == "shard"
    rows = {holder["name"]: holder["channels"][0]["rows"] for holder in found["holders"]}
    # the service counts none: only workers know
    assert rows == {f"{WORKER}-aaaaa": 1000, f"{WORKER}-bbbbb": 0, f"{WORKER}-ccccc": None, "visitor": None}


def test_a_channel_is_shown_with_the_worker_that_tells_of_it() -> None:
    """The description is older than the answers: its owner has handed the channel over since."""
    cache = with_channels(NOW)
    moved = WorkerReport("c", 1.0, 1, None, False, (report_channel(CHANNELS[4]), report_channel("x", state="CLOSE")))
    cache.reports[f"{WORKER}-ccccc"] = KeptReport(moved, NOW)

    found = channels_document(sight(late(), cache))

    assert [holder["name"] for holder in found["holders"]] == [
        f"{WORKER}-{end}" for end in ("aaaaa", "bbbbb", "ccccc")
    ] + ["ccccc"]
    assert [each["id"] for each in found["holders"][2]["channels"]] == [CHANNELS[4]]


def test_a_worker_of_an_unknown_channel_tells_what_it_knows() -> None:
    report = WorkerReport("c", None, None, None, False, (report_channel("new", lag_seconds=None, caught_up=False),))
    cache = LoopCache(observed_time=NOW, reports={"pod-9": KeptReport(report, NOW)})

    (holder,) = channels_document(sight(without_workers(), cache))["holders"]

    assert (holder["name"], holder["ready"]) == ("pod-9", None)
    assert (holder["channels"][0]["type"], holder["channels"][0]["lag"]) == ("", None)


def test_before_the_first_look_workers_are_those_of_the_status() -> None:
    found = channels_document(sight(healthy()))

    assert [holder["name"] for holder in found["holders"]] == [f"{WORKER}-{end}" for end in ("aaaaa", "bbbbb", "ccccc")]
    assert [holder["channels"] for holder in found["holders"]] == [[], [], []]


def test_of_very_many_channels_the_latest_are_listed() -> None:
    count = LISTED + 100
    reported = tuple(report_channel(f"c{number:04}", caught_up=False, lag_seconds=number) for number in range(count))
    cache = with_channels(NOW)
    cache.reports = {"pod-1": KeptReport(WorkerReport("c", 1.0, 1, None, False, reported), NOW)}
    cache.tunnel = None

    found = channels_document(sight(without_workers(), cache))

    (holder,) = found["holders"]
    assert (len(holder["channels"]), holder["total"], found["hidden"]) == (LISTED, count, 100)
    assert holder["channels"][-1]["lag"] == 100
