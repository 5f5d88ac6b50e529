"""The alerts of the chart: promtool reads them, each fires when it has to and is silent otherwise."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.chart.alert_cases import CASES, Case, Series, gauge
from tests.chart.alert_further_cases import FURTHER, OTHER
from tests.chart.conftest import CHART, Helm, Promtool
from tests.support.metric_pages import unknown_names

# promtool is built together with the local cluster's programs
pytestmark = pytest.mark.api

ALERTS = CHART / "files" / "alerts.yaml"
GROUPS: dict[str, list[dict[str, Any]]] = {
    group["name"]: group["rules"] for group in yaml.safe_load(ALERTS.read_text())["groups"]
}
RULES: dict[str, dict[str, Any]] = {rule["alert"]: rule for rules in GROUPS.values() for rule in rules}


EVERY = [
    pytest.param(alert, case, id=f"{alert}-{number}") for number, (alert, case) in enumerate((*CASES.items(), *FURTHER))
]


def expected(alert: str, case: Case) -> dict[str, Any]:
    """The alert as it is to be sent."""
    rule = RULES[alert]
    return {
        "exp_labels": {**case.labels, **rule["labels"]},
        "exp_annotations": {
            "summary": case.summary,
            "description": rule["annotations"]["description"],
            "runbook_url": f"docs/operations.md#{case.anchor or alert.lower()}",
        },
    }


def unit_test(alert: str, series: Series, at: str, alerts: list[dict[str, Any]]) -> dict[str, Any]:
    return {
        "interval": "1m",
        "input_series": [{"series": name, "values": values} for name, values in series.items()],
        "alert_rule_test": [{"eval_time": at, "alertname": alert, "exp_alerts": alerts}],
    }


def judged(
    promtool: Promtool, folder: Path, document: dict[str, Any], rules: Path = ALERTS
) -> subprocess.CompletedProcess[str]:
    path = folder / "tests.yaml"
    path.write_text(yaml.safe_dump({"rule_files": [str(rules)], "evaluation_interval": "1m", "tests": [document]}))
    return promtool("test", "rules", str(path))


def test_promtool_finds_nothing_wrong(promtool: Promtool) -> None:
    done = promtool("check", "rules", "--lint=all", "--lint-fatal", str(ALERTS))

    assert done.returncode == 0, done.stderr


def test_every_alert_has_a_case() -> None:
    assert list(RULES) == list(CASES)


@pytest.mark.parametrize(("alert", "case"), EVERY)
def test_an_alert_fires(promtool: Promtool, tmp_path: Path, alert: str, case: Case) -> None:
    done = judged(promtool, tmp_path, unit_test(alert, case.fires, case.at, [expected(alert, case)]))

    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize(("alert", "case"), EVERY)
def test_an_alert_stays_silent(promtool: Promtool, tmp_path: Path, alert: str, case: Case) -> None:
    done = judged(promtool, tmp_path, unit_test(alert, case.silent, case.at, []))

    assert done.returncode == 0, done.stdout + done.stderr


#: Alerts by what the leader tells of objects; the one that is left out looks back itself.
OF_OBJECTS = [rule["alert"] for rule in GROUPS["ots-tunnel.objects"] if rule["alert"] != "OtsTunnelNotReady"]


@pytest.mark.parametrize("alert", OF_OBJECTS)
@pytest.mark.parametrize(("minutes", "goes_on"), [(2, True), (6, False)])
def test_an_alert_about_an_object_outlasts_a_change_of_the_leader(
    promtool: Promtool, tmp_path: Path, alert: str, minutes: int, goes_on: bool
) -> None:
    """What the former leader served ends with it at once, and the next one begins with its first pass."""
    case = CASES[alert]
    before = {name: f"{_last(values)}x40 stale" for name, values in case.fires.items() if 'pod="b"' not in name}
    alerts = [expected(alert, case)] if goes_on else []

    done = judged(promtool, tmp_path, unit_test(alert, before, f"{40 + minutes}m", alerts))

    assert done.returncode == 0, done.stdout + done.stderr


def _last(values: str) -> str:
    """The last value of a series."""
    return [part.partition("x")[0] for part in values.split() if not part.startswith("_")][-1]


def test_an_absent_operator_leads_nothing(promtool: Promtool, tmp_path: Path) -> None:
    alert = "OtsTunnelNoLeader"
    alerts = [expected(alert, CASES[alert]) | {"exp_labels": RULES[alert]["labels"]}]

    done = judged(promtool, tmp_path, unit_test(alert, {"up": "1x10"}, "6m", alerts))

    assert done.returncode == 0, done.stdout + done.stderr


def test_the_operator_of_another_release_does_not_hide_that_this_one_is_absent(
    promtool: Promtool, helm: Helm, tmp_path: Path
) -> None:
    alert, process = "OtsTunnelNoLeader", {"namespace": "ots", "job": "ott-ots-tunnel-operator-metrics"}
    kinds = ("--api-versions", "monitoring.coreos.com/v1", "--kube-version", "1.34")
    done = helm.run("template", "ott", str(CHART), "--namespace", "ots", *kinds)
    objects = {item["kind"]: item for item in yaml.safe_load_all(done.stdout) if item}
    rules = tmp_path / "rules.yaml"
    rules.write_text(yaml.safe_dump(objects["PrometheusRule"]["spec"]))
    alerts = [expected(alert, CASES[alert]) | {"exp_labels": process | RULES[alert]["labels"]}]
    document = unit_test(alert, {gauge("operator_leader", OTHER): "1x10"}, "6m", alerts)

    # the Prometheus operator calls the job by the name of the Service
    assert objects["Service"]["metadata"]["name"] == process["job"]
    done = judged(promtool, tmp_path, document, rules)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("alert", RULES)
def test_an_alert_names_metrics_and_labels_that_are_served(alert: str) -> None:
    assert not unknown_names(RULES[alert]["expr"])


def series_names() -> Iterator[str]:
    for case in (*CASES.values(), *(case for _, case in FURTHER)):
        yield from (*case.fires, *case.silent)


def test_the_cases_name_metrics_and_labels_that_are_served() -> None:
    assert not [problem for name in series_names() for problem in unknown_names(name)]
