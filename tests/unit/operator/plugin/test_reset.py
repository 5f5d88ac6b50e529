"""`kubectl ott reset`: the annotation, the words before it, and the answer after it."""

from __future__ import annotations

import io
import json
import sys
from collections.abc import Mapping
from typing import Any

import click
import pytest

from ots_tunnel_operator import names
from ots_tunnel_operator.plugin.command import cli, run
from ots_tunnel_operator.plugin.edits import Refused
from ots_tunnel_operator.plugin.kubectl import Kubectl
from ots_tunnel_operator.plugin.ott import Ott
from ots_tunnel_operator.plugin.reset_edit import outcome, refuse_while_consumed, reset
from ots_tunnel_operator.plugin.reset_facts import facts_of
from ots_tunnel_operator.plugin.why.state import now_sentences
from ots_tunnel_operator.reset.facts import Found
from ots_tunnel_operator.reset.request import Existing, Form, Request
from ots_tunnel_operator.times import parse_time
from tests.support.operator.plugin_objects import NOW, UID, body, deleting, expired, healthy, paused, status

NEW_BASE = Request("t", Form.NEW_BASE, existing=Existing.DELETE)


def stored(**changes: Any) -> Ott:
    """A paused object whose status has changes."""
    found = body(suspend=True)
    found["status"] = {**paused().status, **changes}
    return Ott(found)


def test_a_reset_writes_the_annotation_of_exactly_this_object_and_says_what_it_loses() -> None:
    edit = reset(paused(), NEW_BASE, NOW)

    assert edit.patch == {
        "metadata": {"uid": UID, "annotations": {names.ANNOTATION_RESET: NEW_BASE.annotation()}},
    }
    assert edit.words[0] == "shop/orders-copy: reset NewBase"
    assert edit.words[1] == f"  It deletes tunnel {UID}, and creates tunnel 'orders-copy' as the spec has it."
    assert "stay in the destination, unless you empty it first" in edit.words[3]
    assert "after 2026-11-20T08:15:18Z" in edit.words[3]
    assert edit.words[4].endswith(f"'{NEW_BASE.annotation()}'")


@pytest.mark.parametrize(
    ("ott", "request_", "why"),
    [
        (deleting(), NEW_BASE, "is being deleted"),
        (paused(), Request("t", Form.NEW_BASE), "ask with existingTunnel Delete"),
        (paused(), Request("t", Form.REWIND, "2026-01-01T00:00:00Z", Existing.DELETE), "may not keep changes that old"),
    ],
)
def test_what_the_operator_would_refuse_is_refused_at_once(ott: Ott, request_: Request, why: str) -> None:
    with pytest.raises(Refused, match=why):
        reset(ott, request_, NOW)


@pytest.mark.parametrize(
    "told", [{"token": "t", "state": "Done"}, {"token": "u", "state": "Done", "earlierTokens": ["t"]}]
)
def test_a_token_that_was_used_before_is_not_taken_for_a_reset_that_is_done(told: dict[str, Any]) -> None:
    with pytest.raises(Refused, match="token 't' was used for an earlier request"):
        reset(stored(reset=told), NEW_BASE, NOW)


def test_an_object_that_still_consumes_is_not_reset() -> None:
    draining = Ott({**healthy().body, "spec": {**healthy().spec, "suspend": True}})

    refuse_while_consumed(paused())
    for ott in (healthy(), draining):
        with pytest.raises(Refused, match="kubectl ott pause orders-copy -n shop --wait"):
            refuse_while_consumed(ott)


RESETS: dict[str, tuple[dict[str, Any], str, Any]] = {
    "there": ({}, "found", Found.RECORDED),
    "gone": ({"verdict": {"reason": "TunnelNotFound"}}, "found", Found.GONE),
    "replaced": ({"verdict": {"reason": "TunnelReplaced"}}, "found", Found.ANOTHER),
    "forgotten": ({"tunnel": {}}, "found", Found.GONE),
    "past the base phase": ({}, "base_copied", True),
    "in the base phase": ({"tunnel": {"id": "t", "stage": "ProcessBaseData"}}, "base_copied", False),
    "unknown phase": ({"tunnel": {"id": "t"}}, "base_copied", None),
    "rewound": ({"tunnel": {"id": "t", "startFrom": "Earliest"}}, "base_copied", True),
    "under way": (
        {"tunnel": {}, "reset": {"state": "Running", "token": "u", "form": "Rewind", "formerTunnelId": "t"}},
        "base_copied",
        True,
    ),
    "under way, its tunnel": (
        {"tunnel": {}, "reset": {"state": "Running", "token": "u", "form": "NewBase", "formerTunnelId": "t"}},
        "former",
        "t",
    ),
    "delivered": ({}, "delivered_until", parse_time("2026-11-20T08:15:18Z")),
    "kept": ({}, "kept_since", NOW + 900 - 604_800),
    "lost": ({"verdict": {"reason": "DestinationBehindTunnel"}}, "is_destination_lost", True),
    "used": ({}, "is_used", True),
    "unused": ({"tunnel": {}}, "is_used", False),
}


@pytest.mark.parametrize("name", RESETS)
def test_the_facts_are_those_of_the_status(name: str) -> None:
    changes, field, expected = RESETS[name]

    assert getattr(facts_of(stored(**changes), NOW), field) == expected


def test_a_copy_by_spark_is_over_when_the_status_says_so() -> None:
    found = body(engine={"baseData": "Spark"})
    alone = body(engine={"baseData": "Spark"}, source__tunnel__type="BaseData")
    found["status"] = status(snapshot={"state": "Completed"})
    alone["status"] = status(tunnel={}, snapshot={"state": "Completed"})

    assert facts_of(Ott(found), NOW).base_copied is True
    assert facts_of(Ott(alone), NOW).is_used
    assert not facts_of(Ott(alone), NOW).needs_tunnel


def test_an_object_that_follows_changes_has_no_existing_rows_to_miss() -> None:
    assert facts_of(Ott(body(source__tunnel__type="Stream")), NOW).base_copied is True


def test_the_outcome_is_that_of_this_token() -> None:
    refused = stored(reset={"token": "t", "state": "Refused", "message": "no"})

    assert (outcome(stored(), "t").is_over, outcome(refused, "u").is_over) == (False, False)
    assert not outcome(stored(reset={"token": "t", "state": "Running"}), "t").is_over
    assert (outcome(refused, "t").is_over, outcome(refused, "t").is_done) == (True, False)
    assert outcome(stored(reset={"token": "t", "state": "Done"}), "t").is_done


@pytest.mark.parametrize(
    ("lost", "said"),
    [
        (
            {"what": "Changes", "from": "2026-11-20T05:00:00Z", "to": "2026-11-20T06:00:00Z"},
            "Changes between 2026-11-20 05:00:00 UTC and 2026-11-20 06:00:00 UTC were given up by a reset",
        ),
        ({"what": "Deletions"}, "Deletions between a time that is not known and the creation of its tunnel were given"),
    ],
)
def test_why_says_what_was_given_up(lost: dict[str, str], said: str) -> None:
    assert any(said in sentence for sentence in now_sentences(stored(lost=lost), NOW))


# The command


class Cluster:
    """One object, and the operator's answer to the annotation."""

    def __init__(self, ott: Ott, state: str = "Done") -> None:
        self.ott = ott
        self.state = state
        self.patches: list[Mapping[str, Any]] = []

    def object(self, name: str) -> Ott:
        return self.ott

    def patch(self, resource: str, name: str, namespace: str, patch: Mapping[str, Any]) -> None:
        self.patches.append(patch)
        asked = json.loads(patch["metadata"]["annotations"][names.ANNOTATION_RESET])
        told = {"token": asked["token"], "state": self.state, "message": f"it is {self.state}"}
        self.ott = Ott({**self.ott.body, "status": {**self.ott.status, "reset": told}})


@pytest.fixture
def cluster(monkeypatch: pytest.MonkeyPatch) -> Cluster:
    found = Cluster(paused())
    monkeypatch.setattr(Kubectl, "object", lambda self, name: found.object(name))
    monkeypatch.setattr(Kubectl, "patch", lambda self, *arguments: found.patch(*arguments))
    monkeypatch.setattr(sys, "stdin", io.StringIO())
    return found


def typed(*arguments: str) -> int:
    """Run the command; its exit code."""
    words = ["reset", "orders-copy", "-n", "shop", *arguments]
    return run(lambda: cli.main(words, prog_name="kubectl ott", standalone_mode=False))


OLD = ("--new-base", "--delete-tunnel")


def test_a_dry_run_says_everything_and_changes_nothing(cluster: Cluster, capsys: pytest.CaptureFixture[str]) -> None:
    assert typed(*OLD, "--dry-run", "--token", "t") == 0

    assert cluster.patches == []
    assert NEW_BASE.annotation() in capsys.readouterr().out


def test_a_script_says_yes_and_waits(cluster: Cluster, capsys: pytest.CaptureFixture[str]) -> None:
    assert typed(*OLD, "--yes", "--wait") == 0

    assert len(cluster.patches) == 1
    assert capsys.readouterr().out.endswith("it is Done\n")


def test_without_a_terminal_nothing_is_assumed(cluster: Cluster, capsys: pytest.CaptureFixture[str]) -> None:
    assert typed(*OLD) == 1

    assert cluster.patches == []
    assert "add --yes" in capsys.readouterr().err


@pytest.mark.parametrize(("answer", "patches", "code"), [(True, 1, 0), (False, 0, 130)])
def test_a_person_is_asked(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch, answer: bool, patches: int, code: int
) -> None:
    def confirm(text: str, abort: bool) -> bool:
        if not answer:
            raise click.Abort
        return True

    monkeypatch.setattr(sys.stdin, "isatty", lambda: True, raising=False)
    monkeypatch.setattr(click, "confirm", confirm)

    assert typed(*OLD) == code
    assert len(cluster.patches) == patches


def test_a_refusal_of_the_operator_is_an_error(cluster: Cluster, capsys: pytest.CaptureFixture[str]) -> None:
    cluster.state = "Refused"

    assert typed(*OLD, "--yes", "--wait") == 1
    assert "error: it is Refused" in capsys.readouterr().err


def test_the_wait_has_an_end(
    cluster: Cluster, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    cluster.state = "Running"
    monkeypatch.setattr("ots_tunnel_operator.plugin.reset_command.LOOK_SECONDS", 0.3)

    assert typed(*OLD, "--yes", "--wait", "--timeout", "1") == 1
    assert "the reset is not over after 1 s" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ((), "one of --new-tunnel, --rewind TIME and --new-base is needed"),
        (("--new-base", "--new-tunnel"), "one of --new-tunnel, --rewind TIME and --new-base is needed"),
        (("--rewind", "yesterday"), "startTime: found 'yesterday', allowed is a time such as"),
        (("--new-base", "--adopt-tunnel"), "Adopt goes with form NewTunnel alone"),
        (("--new-base", "--token", "two words"), "found 'two words', allowed are 1 to 64"),
    ],
)
def test_wrong_options_say_what_is_allowed(
    cluster: Cluster, capsys: pytest.CaptureFixture[str], arguments: tuple[str, ...], said: str
) -> None:
    assert typed(*arguments) == 2
    assert said in " ".join(capsys.readouterr().err.split())


def test_earliest_is_a_rewind_without_a_time(cluster: Cluster, capsys: pytest.CaptureFixture[str]) -> None:
    assert typed("--rewind", "Earliest", "--delete-tunnel", "--dry-run") == 0
    assert "startTime" not in capsys.readouterr().out


def test_an_object_that_runs_is_shown_and_left_alone(cluster: Cluster, capsys: pytest.CaptureFixture[str]) -> None:
    cluster.ott = Ott({**expired().body, "spec": {**expired().spec, "suspend": False}})

    assert typed(*OLD, "--yes") == 1
    assert "is not suspended, or still drains" in capsys.readouterr().err
    assert cluster.patches == []
