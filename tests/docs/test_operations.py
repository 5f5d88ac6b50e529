"""The operations page explains everything that an operator can meet."""

from __future__ import annotations

import re
from typing import Any

import pytest
import yaml

from ots_tunnel_operator.plugin.why.remedies import REMEDIES
from ots_tunnel_operator.reasons import STALLED, Reason, anchor
from tests.docs.object_fields import columns, schema
from tests.docs.pages import ROOT, page
from tests.docs.tables import operator_metrics, worker_metrics

OPERATIONS = page("docs/operations.md")
ALERTS: dict[str, dict[str, Any]] = {
    rule["alert"]: rule
    for group in yaml.safe_load((ROOT / "charts/ots-tunnel-operator/files/alerts.yaml").read_text())["groups"]
    for rule in group["rules"]
}
FIRST_CELLS = {name.strip() for line in re.findall(r"^\| ([^|]+)\|", OPERATIONS.text, re.M) for name in line.split(",")}


@pytest.mark.parametrize("reason", Reason)
def test_every_reason_is_explained(reason: Reason) -> None:
    # a paragraph, not a sentence: what it means, where to look, what to do
    assert len(OPERATIONS.section(reason).strip()) > 20
    assert anchor(reason).removeprefix(f"{OPERATIONS}#") in OPERATIONS.anchors


@pytest.mark.parametrize("reason", sorted(STALLED))
def test_what_waits_for_a_person_is_listed_as_such(reason: Reason) -> None:
    assert f"#### {reason}\n" in OPERATIONS.section("Problems that wait for you")


def test_no_other_reason_is_said_to_wait_for_a_person() -> None:
    listed = re.findall(r"^#### (\w+)$", OPERATIONS.section("Problems that wait for you"), re.MULTILINE)

    assert set(listed) == STALLED


def test_every_reason_on_the_page_exists() -> None:
    listed = set(re.findall(r"^#### (\w+)$", OPERATIONS.text, re.MULTILINE))

    assert {name for name in listed if not name.startswith("OtsTunnel")} == set(Reason)


def test_every_paragraph_about_a_problem_has_commands_in_the_plugin() -> None:
    problems = OPERATIONS.section("What does each problem mean, and what do I do?")
    listed = re.findall(r"^#### (\w+)$", problems, re.MULTILINE)

    # a figure that is not known yet is no problem, and still shows what to do
    assert set(REMEDIES) == {*listed, Reason.UNKNOWN}


@pytest.mark.parametrize("reason", [Reason.CONSUMING, Reason.ASLEEP, Reason.COMPLETED])
def test_each_event_about_an_object_that_gets_ready_is_listed(reason: Reason) -> None:
    listed = re.findall(r"^\| ([^|]+) \|", OPERATIONS.section("Which events are there?"), re.MULTILINE)

    assert reason in listed


def test_an_alert_about_ready_leads_to_the_condition_which_every_cause_has() -> None:
    """ChannelsUnowned, ChannelsMoving, StartingWorkers and Scaling are no events (`report.notices`)."""
    alert = ALERTS["OtsTunnelNotReady"]

    assert "condition Ready" in alert["annotations"]["description"]
    assert "`kubectl ott why NAME`" in OPERATIONS.section("OtsTunnelNotReady")


@pytest.mark.parametrize("column", columns())
def test_every_column_is_explained(column: str) -> None:
    assert column in FIRST_CELLS


def test_every_condition_is_explained() -> None:
    types = schema("status")["properties"]["conditions"]["items"]["properties"]["type"]["enum"]

    assert set(types) <= FIRST_CELLS


def test_every_phase_is_named() -> None:
    for phase in schema("status")["properties"]["phase"]["enum"]:
        assert phase in OPERATIONS.section("How do I read `kubectl get ott`?")


def test_metrics_of_alerts_exist() -> None:
    known = worker_metrics() + operator_metrics()
    for name in re.findall(r"ots_tunnel_\w+", OPERATIONS.prose + page("docs/performance.md").prose):
        base = re.sub(r"_(total|count|sum|bucket)$", "", name)
        assert f"`{name}`" in known or f"`{base}`" in known, name


@pytest.mark.parametrize("alert", ALERTS)
def test_an_alert_has_its_paragraph(alert: str) -> None:
    assert f"#### {alert}\n" in OPERATIONS.section("What does each alert mean, and what do I do?")


@pytest.mark.parametrize("alert", ALERTS)
def test_a_runbook_link_leads_somewhere(alert: str) -> None:
    _, place = ALERTS[alert]["annotations"]["runbook_url"].split("#")

    # an alert about a reason leads to the paragraph of the reason, which another test asks for
    assert place == "{{ $labels.reason | toLower }}" or place in OPERATIONS.anchors


def test_every_alert_on_the_page_exists() -> None:
    listed = re.findall(r"^#### (OtsTunnel\w+)$", OPERATIONS.text, re.MULTILINE)

    assert listed == list(ALERTS)
