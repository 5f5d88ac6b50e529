"""The Grafana dashboard: what it asks for exists, and promtool reads it."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from enum import Enum
from itertools import pairwise
from pathlib import Path
from typing import Any, get_type_hints

import pytest
import yaml
from grafana_foundation_sdk.cog.encoder import JSONEncoder
from grafana_foundation_sdk.cog.plugins import register_default_plugins
from grafana_foundation_sdk.models.dashboard import Dashboard
from pydantic import ConfigDict, TypeAdapter, ValidationError

from tests.chart.conftest import CHART, Promtool
from tests.support.metric_pages import OPERATOR, WORKER, unknown_names

DASHBOARD: dict[str, Any] = json.loads((CHART / "files" / "dashboard.json").read_text())
PANELS: list[dict[str, Any]] = [panel for panel in DASHBOARD["panels"] if panel["type"] != "row"]
VARIABLES = {variable["name"]: variable for variable in DASHBOARD["templating"]["list"]}
#: A field may have one of Grafana's classes, in which only the other types of the field are looked at.
ANY_TYPE = ConfigDict(arbitrary_types_allowed=True, strict=True)
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


def wrong(kept: Any, path: str = "") -> Iterator[str]:
    """Paths of the values in Grafana's models that do not have the type of their field; the models do not look."""
    if isinstance(kept, list | dict):
        for key, value in kept.items() if isinstance(kept, dict) else enumerate(kept):
            yield from wrong(value, f"{path}.{key}")
    elif type(kept).__module__.startswith("grafana_foundation_sdk") and not isinstance(kept, Enum):
        hints = get_type_hints(type(kept))
        for name, value in vars(kept).items():
            if isinstance(value, str | int | float | Enum):
                text = json.dumps(value.value if isinstance(value, Enum) else value)
                try:
                    TypeAdapter(hints[name], config=ANY_TYPE).validate_json(text)
                except ValidationError:
                    yield f"{path}.{name}"
            yield from wrong(value, f"{path}.{name}")


def set_at(path: str, value: Any) -> Dashboard:
    """The models of a dashboard in which one value is another one."""
    bad: Any = json.loads(json.dumps(DASHBOARD))
    *parts, last = path.split(".")
    part = bad
    for step in parts:
        part = part[int(step) if isinstance(part, list) else step]
    part[last] = value
    return Dashboard.from_json(bad)


def test_every_value_has_the_type_that_grafana_gives_it() -> None:
    register_default_plugins()

    assert list(wrong(Dashboard.from_json(DASHBOARD))) == []


@pytest.mark.parametrize(
    ("path", "value", "found"),
    [
        ("refresh", 30, ".refresh"),
        ("graphTooltip", 9, ".graph_tooltip"),
        ("panels.1.gridPos.w", "12", ".panels.1.grid_pos.w"),
        ("panels.1.type", 5, ".panels.1.type_val"),
        ("panels.1.targets.0.expr", 5, ".panels.1.targets.0.expr"),
        ("panels.1.options.textMode", "loud", ".panels.1.options.text_mode"),
        ("panels.1.fieldConfig.defaults.unit", 5, ".panels.1.field_config.defaults.unit"),
    ],
)
def test_a_value_of_another_type_is_noticed(path: str, value: Any, found: str) -> None:
    register_default_plugins()

    assert list(wrong(set_at(path, value))) == [found]


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
