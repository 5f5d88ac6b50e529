"""What a worker of another tunnel tells is not believed: its possible gaps would be recorded for good."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from ots_tunnel_operator.names import ANNOTATION_CONFIG_HASH, deployment_name
from ots_tunnel_operator.observe.belonging import with_own_reports, with_own_terminations
from ots_tunnel_operator.world.absence import Missing, Unread
from ots_tunnel_operator.world.pod import Origin, Pod
from ots_tunnel_operator.world.report import ReportedGap
from tests.support.operator.stream_worlds import stream_world
from tests.support.operator.worlds import NOW, TUNNEL_ID, pod, recorded, report_channel, reported, resource, world

OTHER = "22222222-2222-3333-4444-555555555555"
GAP = ReportedGap("c1", NOW - 900_000, NOW - 800_000)


def telling(tunnel_id: str, client_id: str = "01234567-pod-1-x") -> Pod:
    """A worker that reports a channel and a possible gap of it."""
    found = pod("pod-1", report_channel("c1"), created=NOW)
    assert found.report is not None
    report = replace(found.report, tunnel_id=tunnel_id, client_id=client_id, completed=True, error="no", gaps=(GAP,))
    return replace(found, report=report)


def believed(found: Pod, status: dict[str, Any] | None = None) -> Pod:
    (kept,) = with_own_reports((found,), resource(recorded() if status is None else status))
    return kept


@pytest.mark.parametrize(
    "own",
    [telling(TUNNEL_ID), telling(""), telling(TUNNEL_ID, "89abcdef-pod-1-x"), pod("pod-1", ready=False)],
    ids=["named", "unnamed", "of the predecessor, on the same tunnel", "silent"],
)
def test_a_report_about_the_recorded_tunnel_is_believed(own: Pod) -> None:
    assert believed(own) is own


@pytest.mark.parametrize(
    ("found", "status"),
    [(telling(OTHER), None), (telling("", "89abcdef-pod-1-x"), None), (telling(OTHER), {})],
    ids=["named", "unnamed", "nothing is recorded"],
)
def test_a_report_about_another_tunnel_only_says_that_the_worker_answers(
    found: Pod, status: dict[str, Any] | None
) -> None:
    kept = believed(found, status)

    assert kept.report is not None
    assert (kept.report.channels, kept.report.gaps) == ((), ())
    assert not kept.report.completed
    assert kept.report.rows_per_second is kept.report.error is None
    assert kept.is_alive


def ended(created: float, gap: ReportedGap = GAP) -> Pod:
    return pod("pod-1", created=created, gaps=(gap,))


@pytest.mark.parametrize("created", [0.0, NOW - 1000, NOW])
def test_a_termination_of_an_own_pod_about_a_listed_channel_is_believed(created: float) -> None:
    status = reported(with_own_terminations(world(pods=(ended(created),))))

    assert [gap["channel"] for gap in status["possibleGaps"]] == ["c1"]


@pytest.mark.parametrize(
    ("found", "seen"),
    [
        (ended(NOW - 1001), {}),
        (ended(NOW, replace(GAP, channel_id="of-another-tunnel")), {}),
        (ended(NOW), {"tunnel": Unread()}),
        (ended(NOW), {"tunnel": Missing()}),
    ],
    ids=["older than the object", "unlisted", "unread", "missing"],
)
def test_a_termination_that_may_be_about_another_tunnel_is_not_recorded(found: Pod, seen: dict[str, Any]) -> None:
    status = reported(with_own_terminations(world(pods=(found,), **seen)))

    assert "possibleGaps" not in status


@pytest.mark.parametrize(
    ("created", "config", "is_believed"),
    [(NOW, "present", True), (NOW, "former", False), (NOW - 1001, "present", False)],
)
def test_a_worker_of_shards_is_believed_about_one_that_is_gone(created: float, config: str, is_believed: bool) -> None:
    """The stream has dropped the shard unread, and another program has deleted its lease: that is the loss."""
    found = stream_world(pods=(replace(ended(created, replace(GAP, channel_id="s3")), origin=Origin("i", config)),))
    template = {"metadata": {"annotations": {ANNOTATION_CONFIG_HASH: "present"}}}
    name = ("Deployment", deployment_name(found.resource.name))
    children = {name: {**found.children[name], "spec": {**found.children[name]["spec"], "template": template}}}
    status = reported(with_own_terminations(replace(found, children=children)))

    assert [gap["channel"] for gap in status.get("possibleGaps", ())] == (["s3"] if is_believed else [])
