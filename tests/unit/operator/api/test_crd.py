"""The generated CustomResourceDefinition."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest
import yaml
from kubernetes_validate import validate

from ots_tunnel_operator.api import crd

Schema = dict[str, Any]


def schema() -> Schema:
    result: Schema = crd.custom_resource_definition()["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    return result


def nodes(node: Schema, path: str = "") -> Iterator[tuple[str, Schema]]:
    yield path, node
    for name, child in node.get("properties", {}).items():
        yield from nodes(child, f"{path}.{name}")
    for key in ("items", "additionalProperties"):
        if key in node:
            yield from nodes(node[key], f"{path}[]")


def fields() -> list[tuple[str, Schema]]:
    return [(path, node) for path, node in nodes(schema()) if path.startswith((".spec", ".status"))]


def test_committed_files_match_the_models(capsys: pytest.CaptureFixture[str]) -> None:
    assert crd.main(["--check"]) == 0, capsys.readouterr().err


def test_check_names_a_file_that_differs(
    tmp_path: Any, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    stale = tmp_path / "crd.yaml"
    stale.write_text("old")
    monkeypatch.setattr(crd, "OUTPUTS", (stale,))

    assert crd.main(["--check"]) == 1
    assert str(stale) in capsys.readouterr().err
    assert crd.main([]) == 0
    assert crd.main(["--check"]) == 0


def test_without_a_source_tree_it_is_printed(
    tmp_path: Any, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(crd, "_ROOT", tmp_path)

    assert crd.main([]) == 0
    assert capsys.readouterr().out == crd.render()


def test_it_is_a_valid_object() -> None:
    validate(yaml.safe_load(crd.render()), "1.34", strict=True)


def test_every_field_is_explained() -> None:
    assert [path for path, node in fields() if not node.get("description") and not path.endswith("[]")] == []


def test_everything_is_bounded() -> None:
    unbounded = []
    for path, node in fields():
        kind = node.get("type")
        if kind == "string" and not ({"maxLength", "enum"} & node.keys() or node.get("format") == "date-time"):
            unbounded.append(path)
        if kind == "array" and "maxItems" not in node:
            unbounded.append(path)
        if kind == "object" and "additionalProperties" in node and "maxProperties" not in node:
            unbounded.append(path)
        if kind == "integer" and path.startswith(".spec") and not {"minimum", "maximum"} <= node.keys():
            unbounded.append(path)

    assert unbounded == []


def test_it_is_structural() -> None:
    for path, node in fields():
        assert node["type"] in {"object", "array", "string", "integer", "boolean"}, path
        assert not {"$ref", "anyOf", "allOf", "oneOf", "const", "title", "exclusiveMinimum"} & node.keys(), path
        assert not ("properties" in node and "additionalProperties" in node), path


def test_lists_of_named_items_are_maps() -> None:
    keys = {path: node.get("x-kubernetes-list-map-keys") for path, node in fields() if node["type"] == "array"}

    assert {path: key for path, key in keys.items() if path.startswith(".status")} == {
        ".status.conditions": ["type"],
        ".status.workers": ["name"],
        ".status.lag.slowest": None,
        ".status.possibleGaps": None,
        ".status.reset.earlierTokens": None,
    }


def test_fields_that_may_be_unknown_are_optional() -> None:
    required = {path: node["required"] for path, node in fields() if "required" in node and path.startswith(".status")}

    assert required == {
        ".status.autoscaling.lastDecision": ["time", "from", "to", "reason"],
        ".status.autoscaling.sleep": ["since", "generation"],
        ".status.conditions[]": ["type", "status", "reason", "lastTransitionTime"],
        ".status.lag.slowest[]": ["id", "type"],
        ".status.possibleGaps[]": ["channel", "from", "to", "foundBy"],
        ".status.readUntil": ["tunnelId", "time"],
        ".status.refused": ["records", "keys", "lastTime"],
        ".status.verdict": ["reason"],
        ".status.workers[]": ["name"],
    }


def test_default_of_a_ruled_block_is_written_out() -> None:
    spec = schema()["properties"]["spec"]["properties"]

    retry = {"backoffSeconds": 1, "backoffMaxSeconds": 60}
    assert spec["delivery"]["properties"]["retry"]["default"] == retry
    assert spec["delivery"]["default"] == {
        "batchMaxRows": 200,
        "batchMaxBytes": 4_000_000,
        "retry": retry,
        "onPermanentError": "Fail",
    }
    assert spec["monitoring"]["default"] == {}


def test_what_fail_does_is_told_as_the_operator_does_it() -> None:
    """The first such end stops all workers for good (`assess.worker_pods.final_end`)."""
    text = schema()["properties"]["spec"]["properties"]["delivery"]["properties"]["onPermanentError"]["description"]

    assert "Fail: all workers are stopped before it, until the spec changes or you restart them" in " ".join(
        text.split()
    )


def test_columns() -> None:
    shown = " ".join(name for name, _, _, wide in crd.COLUMNS if not wide)

    assert shown == "Ready Phase Workers Desired Channels Unowned Lag(s) Base(%) Rows/s Age"
    assert [name for name, *_, wide in crd.COLUMNS if wide] == ["Table", "Stage", "Tunnel-ID", "Reason", "Observed"]


def test_columns_point_at_fields() -> None:
    known = {path for path, _ in nodes(schema())} | {".metadata.creationTimestamp"}

    for name, _, path, _ in crd.COLUMNS:
        assert path in known or path.startswith(".status.conditions[?"), name


def test_patterns_mean_the_same_to_the_api_server_and_the_model() -> None:
    """Classes such as that of all spaces are ASCII in Go and Unicode in the model."""
    patterns = {path: node["pattern"] for path, node in fields() if "pattern" in node}

    assert patterns
    assert {path for path, pattern in patterns.items() if re.search(r"\\[sSwWdDbB]", pattern)} == set()
