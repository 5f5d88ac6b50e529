"""What the plugin says of an object whose changes a query of Spark follows."""

from __future__ import annotations

import pytest

from ots_tunnel.model import Stage
from ots_tunnel_operator.plugin import edits
from ots_tunnel_operator.plugin.events.belonging import own_events
from ots_tunnel_operator.plugin.ott import Ott
from ots_tunnel_operator.plugin.reset_edit import reset
from ots_tunnel_operator.plugin.why.advice import steps_for
from ots_tunnel_operator.plugin.why.state import now_sentences
from ots_tunnel_operator.plugin.why.waits import waits_sentences
from ots_tunnel_operator.reasons import Reason
from ots_tunnel_operator.reset.request import Form, Request
from ots_tunnel_operator.world.service import Tunnel
from tests.support.operator.objects import tunnel_object
from tests.support.operator.query_worlds import (
    ALL_BY_QUERY,
    BY_QUERY,
    CLIENT,
    query_app,
    query_record,
    query_resource,
    query_world,
)
from tests.support.operator.worlds import NOW, UID, base, description, reported


def followed(**changes: object) -> Ott:
    body = tunnel_object(**BY_QUERY | changes)
    body["metadata"] |= {"uid": UID, "generation": 3}
    return Ott(body | {"status": reported(query_world())})


def test_no_worker_is_expected_and_nothing_is_waited_for() -> None:
    ott = followed()

    assert ott.expected_workers == 0
    assert waits_sentences(ott, NOW, None) == ["Nothing."]
    said = " ".join(now_sentences(ott, NOW))
    assert "It follows the changes of the table with a query of Spark, whose SparkApplication is RUNNING." in said


def test_existing_rows_are_said_to_come_first() -> None:
    of = query_resource(**ALL_BY_QUERY)
    bringing = Tunnel(description(base("b1", client=CLIENT), stage=Stage.BASE))
    body = tunnel_object(**BY_QUERY | ALL_BY_QUERY)
    body["metadata"] |= {"uid": UID, "generation": 3}
    found = query_world(query_app("RUNNING", of=of) | query_record(), of=of, tunnel=bringing)

    said = " ".join(now_sentences(Ott(body | {"status": reported(found)}), NOW))

    assert "It copies existing rows with a query of Spark, whose SparkApplication is RUNNING, and is not Ready" in said


def test_pause_and_resume_speak_of_the_query() -> None:
    assert "its query of Spark is stopped" in edits.pause(followed()).words[0]
    assert "its query of Spark resumes behind its last batch" in edits.resume(followed(suspend=True)).words[0]


def test_a_query_that_is_being_paused_has_no_workers_that_finish() -> None:
    pausing = query_world(of=query_resource(suspend=True))
    body = tunnel_object(**BY_QUERY, suspend=True)
    body["metadata"] |= {"uid": UID, "generation": 3}

    said = " ".join(now_sentences(Ott(body | {"status": reported(pausing)}), NOW))

    assert "It is being paused: its query of Spark is stopped, and the service frees its channels." in said


def test_a_restart_names_the_application() -> None:
    with pytest.raises(edits.Refused, match="kubectl delete sparkapplication flights-copy-stream -n default"):
        edits.restart(followed(), None, NOW)


def test_a_reset_is_refused_with_the_way_to_start_over() -> None:
    with pytest.raises(edits.Refused, match=r"another spec\.source\.tunnel\.name and another spec\.sink\.files\.url"):
        reset(followed(suspend=True), Request("a", Form.NEW_TUNNEL), NOW)


@pytest.mark.parametrize(
    ("reason", "told"),
    [
        (Reason.QUERY_FAILED, "delete sparkapplication flights-copy-stream"),
        (Reason.QUERY_RETRYING, "ots-tunnel.dev/role=stream"),
        (Reason.NOT_PROGRESSING, "ots-tunnel.dev/role=stream"),
        (Reason.LAG_HIGH, "kubectl -n default edit ott flights-copy"),
        (Reason.TUNNEL_NOT_FOUND, "kubectl -n default delete ott flights-copy"),
    ],
)
def test_remedies_are_about_the_query(reason: Reason, told: str) -> None:
    commands = [command for step in steps_for(followed(), reason) for command in step.commands]

    assert any(told in command for command in commands), commands
    assert not any("restart" in command or "scale" in command or "reset" in command for command in commands)


@pytest.mark.parametrize(
    ("kind", "name"),
    [
        ("SparkApplication", "flights-copy-stream"),
        ("ConfigMap", "flights-copy-stream-config"),
        ("Pod", "flights-copy-stream-driver"),
        ("Pod", "flights-copy-stream-1a2b-exec-3"),
    ],
)
def test_events_of_the_query_are_the_objects(kind: str, name: str) -> None:
    event = {"involvedObject": {"kind": kind, "name": name}}

    assert list(own_events(followed(), [event])) == [event]


def test_a_possible_gap_is_accepted_until_the_query_runs() -> None:
    text = steps_for(followed(), Reason.POSSIBLE_GAP)[0].text

    assert text.endswith("set it back to Stop once its query runs:")
