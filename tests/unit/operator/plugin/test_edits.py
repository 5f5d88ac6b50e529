from __future__ import annotations

from typing import Any

import pytest

from ots_tunnel_operator.names import ANNOTATION_RESTARTED_AT
from ots_tunnel_operator.plugin.edits import Refused, pause, restart, resume
from ots_tunnel_operator.plugin.ott import Ott
from tests.support.operator.plugin_objects import (
    NOW,
    UID,
    body,
    conditions,
    deleting,
    expired,
    healthy,
    paused,
    refused,
    unseen,
)

UNKNOWN = conditions(Ready=("Unknown", "EndpointUnreachable", "nothing answers"))


def deployment(owner: str = UID, replicas: int = 3) -> dict[str, Any]:
    return {"metadata": {"uid": "d1", "ownerReferences": [{"uid": owner}]}, "spec": {"replicas": replicas}}


def test_a_pause_sets_suspend_of_exactly_this_object_and_says_how_long_it_may_last() -> None:
    edit = pause(healthy())

    assert edit.patch == {"metadata": {"uid": UID}, "spec": {"suspend": True}}
    assert edit.words == (
        "shop/orders-copy pauses: its 3 workers finish what they hold and end; checkpoints are kept.",
        "Changes wait in the stream, which keeps them for 7 d: resume it within 7 d, or changes are lost.",
    )


def test_a_pause_counts_what_is_used_of_the_retention_already() -> None:
    found = body()
    found["status"]["lag"]["retentionUsedPercent"] = 50

    assert "resume it within 3 d 12 h" in pause(Ott(found)).words[1]


@pytest.mark.parametrize("unknown", [{"lag": {"seconds": 3}}, {"conditions": UNKNOWN}])
def test_a_pause_promises_no_time_while_it_is_not_known_what_is_used_already(unknown: dict[str, Any]) -> None:
    found = body()
    found["status"] |= unknown

    assert pause(Ott(found)).words[1] == (
        "Changes wait in the stream, which keeps them for 7 d. How much of that is used already is not known: "
        "resume it soon, or changes are lost."
    )


def test_a_pause_of_what_was_never_looked_at_promises_no_time() -> None:
    assert pause(unseen()).words == ("shop/orders-copy pauses: it starts no worker; checkpoints are kept.",)


def test_a_second_pause_changes_nothing() -> None:
    assert pause(paused()).patch is None


def test_a_field_that_another_client_applies_is_named() -> None:
    found = body()
    found["metadata"]["managedFields"] = [
        {"manager": "argocd", "operation": "Apply", "fieldsV1": {"f:spec": {"f:suspend": {}}}},
        {"manager": "helm", "operation": "Apply", "fieldsV1": {"f:spec": {"f:replicas": {}}}},
        {"manager": "kubectl-ott", "operation": "Update", "fieldsV1": {"f:spec": {"f:suspend": {}}}},
    ]

    assert "spec.suspend is applied by argocd, which may set it back" in pause(Ott(found)).words[-1]


def test_a_resume_takes_suspend_back() -> None:
    edit = resume(paused())

    assert edit.patch == {"metadata": {"uid": UID}, "spec": {"suspend": False}}
    assert edit.words == ("shop/orders-copy resumes at its checkpoints with 3 workers.",)
    assert resume(healthy()).patch is None


def test_a_resume_says_what_will_keep_it_from_running() -> None:
    stalled = Ott({**expired().body, "spec": expired().spec | {"suspend": True, "replicas": 0}})

    said = " ".join(resume(stalled).words)

    assert "TunnelExpired keeps it from starting: kubectl ott why orders-copy -n shop" in said
    assert "spec.replicas is 0" in said


def test_a_restart_patches_the_template_of_exactly_this_deployment() -> None:
    edit = restart(healthy(), deployment(), NOW)

    assert edit.patch == {
        "metadata": {"uid": "d1"},
        "spec": {"template": {"metadata": {"annotations": {ANNOTATION_RESTARTED_AT: "2026-11-20T08:15:30Z"}}}},
    }


def test_a_restart_starts_workers_again_that_a_finding_has_stopped() -> None:
    edit = restart(refused(), deployment(replicas=0), NOW)

    assert edit.patch == restart(healthy(), deployment(), NOW).patch
    assert edit.words[0] == "shop/orders-copy starts its 3 workers again, which SinkRejected has stopped."


@pytest.mark.parametrize(
    ("ott", "found", "why"),
    [
        (paused(), deployment(replicas=0), "is paused, so no worker runs: kubectl ott resume orders-copy -n shop"),
        (healthy(), None, "has no workers"),
        (healthy(), deployment(owner="another"), "does not belong to shop/orders-copy"),
        (expired(), deployment(replicas=0), "wants no worker now"),
        (deleting(), deployment(), "is being deleted"),
    ],
)
def test_a_restart_that_would_do_nothing_or_harm_is_refused(ott: Ott, found: dict[str, Any] | None, why: str) -> None:
    with pytest.raises(Refused, match=why):
        restart(ott, found, NOW)


def test_nothing_is_changed_about_an_object_that_is_being_deleted() -> None:
    for edit in (pause, resume):
        with pytest.raises(Refused, match="is being deleted"):
            edit(deleting())
