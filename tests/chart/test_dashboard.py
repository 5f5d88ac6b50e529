"""The Grafana dashboard: what it asks for exists, and promtool reads it."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
import yaml
from grafana_foundation_sdk.cog.encoder import JSONEncoder
from grafana_foundation_sdk.cog.plugins import register_default_plugins
from grafana_foundation_sdk.models.dashboard import Dashboard

from tests.chart.conftest import CHART, Promtool
from tests.support.metric_pages import OPERATOR, WORKER, unknown_names

DASHBOARD: dict[str, Any] = json.loads((CHART / "files" / "dashboard.json").read_text())
PANELS: list[dict[str, Any]] = [panel for panel in DASHBOARD["panels"] if panel["type"] != "row"]
VARIABLES = {variable["name"]: variable for variable in DASHBOARD["templating"]["list"]}
#: Grafana's own variables, with a value of the same kind.
BUILT_IN = {"__rate_interval": "5m"}


def lost(given: Any, kept: Any, path: str = "") -> Iterator[str]:
    """Paths of what a copy lacks or has differently; an empty value may be missing."""
    if isinstance(given, dict) and isinstance(kept, dict):
        for key, value in given.items():
            yield from lost(value, kept.get(key), f"{path}.{key}")
    elif isinstance(given, list) and isinstance(kept, list) and len(given) == len(kept):
        for number, (value, other) in enumerate(zip(given, kept, strict=True)):
            yield from lost(value, other, f"{path}[{number}]")
    elif given != kept and (kept is not None or given not in ({}, [])):
        yield path


def test_the_models_of_grafana_keep_every_part() -> None:
    register_default_plugins()

    kept = json.loads(json.dumps(Dashboard.from_json(DASHBOARD), cls=JSONEncoder))

    assert list(lost(DASHBOARD, kept)) == []
    # a part that the models do not have is noticed
    bad = json.loads(json.dumps(DASHBOARD))
    bad["panels"][1]["gridPosition"] = {"x": 1}
    assert list(lost(bad, kept)) == [".panels[1].gridPosition"]


def expressions() -> Iterator[tuple[str, str]]:
    """Every query: its panel, and what it asks Prometheus."""
    for panel in PANELS:
        for target in panel["targets"]:
            yield panel["title"], target["expr"]


def test_every_metric_and_label_is_served() -> None:
    unknown = {title: names for title, expression in expressions() if (names := unknown_names(expression))}

    assert unknown == {}


def test_every_metric_that_is_served_is_shown() -> None:
    shown = {name for _, expression in expressions() for name in re.findall(r"ots_tunnel_\w+", expression)}
    bases = shown | {re.sub(r"_(total|bucket)$", "", name) for name in shown}

    assert (WORKER.keys() | OPERATOR.keys()) - bases == set()


def test_every_variable_is_defined_and_asks_for_what_is_served() -> None:
    text = json.dumps(DASHBOARD)
    used = set(re.findall(r"\$\{?(\w+)\}?", text)) - set(BUILT_IN)

    assert used == set(VARIABLES)
    for variable in VARIABLES.values():
        if variable["type"] == "query":
            assert not unknown_names(variable["query"]["query"])


def test_a_legend_names_labels_that_its_query_keeps() -> None:
    for panel in PANELS:
        for target in panel["targets"]:
            kept = set(re.findall(r"\w+", " ".join(re.findall(r"\bby \(([^)]*)\)", target["expr"]))))
            assert set(re.findall(r"\{\{(\w+)\}\}", target["legendFormat"])) <= kept, panel["title"]


def test_panels_have_names_of_their_own_and_do_not_overlap() -> None:
    ids = [panel["id"] for panel in DASHBOARD["panels"]]
    cells = [
        (x, y)
        for panel in DASHBOARD["panels"]
        for x in range(panel["gridPos"]["x"], panel["gridPos"]["x"] + panel["gridPos"]["w"])
        for y in range(panel["gridPos"]["y"], panel["gridPos"]["y"] + panel["gridPos"]["h"])
    ]

    assert len(set(ids)) == len(ids)
    assert len({panel["title"] for panel in PANELS}) == len(PANELS)
    assert len(set(cells)) == len(cells)
    assert max(x for x, _ in cells) == 23
    assert all(after["gridPos"]["y"] >= before["gridPos"]["y"] for before, after in pairwise(DASHBOARD["panels"]))


@pytest.mark.api
def test_promtool_reads_every_query(promtool: Promtool, tmp_path: Path) -> None:
    rules = []
    for number, (_, expression) in enumerate(expressions()):
        for name, value in BUILT_IN.items():
            expression = expression.replace(f"${name}", value)
        rules.append({"record": f"dashboard:query:{number}", "expr": expression})
    path = tmp_path / "queries.yaml"
    path.write_text(yaml.safe_dump({"groups": [{"name": "dashboard", "rules": rules}]}))

    done = promtool("check", "rules", str(path))

    assert done.returncode == 0, done.stderr
