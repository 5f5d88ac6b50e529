"""The chart's values: a misspelt one is refused at every level, each is described, and two sets are compared whole."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.chart.conftest import CHART, EVERYTHING, Helm
from tests.chart.values_schema import SCHEMA, complete
from tests.docs.chart_values import described
from tests.support.kube.api_server import ROOT

# Helm is built together with the local cluster's programs
pytestmark = pytest.mark.api

GOLDEN = ROOT / "tests" / "golden" / "chart"
TYPO = "tpyo"
DOCUMENT: Mapping[str, Any] = json.loads(SCHEMA.read_text())
DEFAULTS: Mapping[str, Any] = yaml.safe_load((CHART / "values.yaml").read_text())
#: Open on purpose: charts above this one share it with their others.
OPEN = ("global",)


def levels(schema: Mapping[str, Any], path: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """Paths of the objects and lists of objects whose keys are fixed; a list's item is `0`."""
    if "$ref" in schema:
        name = schema["$ref"].rpartition("/")[2]
        schema = DOCUMENT["definitions"][name]
        if name.startswith("io.k8s."):
            # the types themselves are complete by `values_schema`
            yield path
            return
    if schema.get("type") == "array":
        yield from levels(schema["items"], (*path, "0"))
    if "properties" in schema:
        if path != OPEN:
            yield path
        for name, value in schema["properties"].items():
            yield from levels(value, (*path, name))


LEVELS = list(levels(DOCUMENT))
#: Values that are read into: an upgrade that reuses those of a former release alone may lack one.
NEEDED = [name for name, value in DEFAULTS.items() if isinstance(value, dict) and value and "Probe" not in name]
NEEDED = [name for name in NEEDED if name not in ("global", "podSecurityContext", "securityContext", "resources")]
NEEDED += [name for name, value in DEFAULTS.items() if isinstance(value, int)]


def test_what_templates_read_into_is_required() -> None:
    assert sorted(DOCUMENT["required"]) == sorted(NEEDED)


def test_a_value_that_an_older_release_lacks_is_named(helm: Helm) -> None:
    """`helm upgrade --reuse-values` takes the values of the former release alone."""
    done = helm.run("template", "ott", str(CHART), "--set-json", "sparkIcebergImage=null")

    assert done.returncode
    assert "sparkIcebergImage is required" in done.stderr or "missing property 'sparkIcebergImage'" in done.stderr


def misspelt(path: tuple[str, ...]) -> Any:
    """Values with a misspelt key at one level."""
    found: Any = {TYPO: 1}
    for part in reversed(path):
        found = [found] if part == "0" else {part: found}
    return found


def merged(first: Any, second: Any) -> Any:
    if not (isinstance(first, dict) and isinstance(second, dict)):
        return second
    return first | {key: merged(first[key], value) if key in first else value for key, value in second.items()}


@pytest.fixture(scope="module")
def refusals(helm: Helm, tmp_path_factory: pytest.TempPathFactory) -> str:
    """What Helm says of values with a misspelt key at every level."""
    values: Any = {}
    for path in LEVELS:
        values = merged(values, misspelt(path))
    file = tmp_path_factory.mktemp("values") / "misspelt.yaml"
    file.write_text(yaml.safe_dump(values))
    done = helm.run("template", "ott", str(CHART), "--values", str(file))
    assert done.returncode != 0
    return done.stderr


@pytest.mark.parametrize("path", LEVELS, ids=".".join)
def test_a_misspelt_value_is_refused(refusals: str, path: tuple[str, ...]) -> None:
    assert f"- {'.'.join(path) or '(root)'}: Additional property {TYPO} is not allowed" in refusals


def test_there_is_no_level_that_takes_anything() -> None:
    assert len(LEVELS) > 40
    free = [name for name, value in DOCUMENT["definitions"].items() if value.get("additionalProperties") is True]
    assert free == []


@pytest.mark.parametrize(
    ("setting", "refusal"),
    [
        ('image.pullPolicy="Sometimes"', "image.pullPolicy must be one of"),
        ('image.digest="abc"', "image.digest: Does not match pattern"),
        ('crds.enabled="yes"', "crds.enabled: Invalid type. Expected: boolean, given: string"),
        ('watch.namespaces=["Shop"]', "watch.namespaces.0: Does not match pattern"),
        ('fullnameOverride="Shop_Tunnels"', "fullnameOverride: Does not match pattern"),
        ('nameOverride="Tunnels"', "nameOverride: Does not match pattern"),
        ('serviceAccount.name="own account"', "serviceAccount.name: Does not match pattern"),
        ('operator.logLevel="loud"', "operator.logLevel must be one of"),
        ('podDisruptionBudget.minAvailable="half"', "podDisruptionBudget.minAvailable"),
        ('console.names=["https://tunnels.example"]', "console.names.0: Does not match pattern"),
        ("console.port=80", "console.port: Must be greater than or equal to 1024"),
        ("networkPolicy.egress.ports=[]", "networkPolicy.egress.ports: Array must have at least 1 items"),
        ('operator.env=[{"value":"nameless"}]', "operator.env.0: name is required"),
        ("livenessProbe.periodSeconds=0", "livenessProbe.periodSeconds: Must be greater than or equal to 1"),
    ],
)
def test_a_wrong_value_is_refused(helm: Helm, setting: str, refusal: str) -> None:
    done = helm.run("template", "ott", str(CHART), "--set-json", setting)

    assert done.returncode != 0
    assert refusal in done.stderr


@pytest.mark.parametrize(
    ("settings", "refusal"),
    [
        (["console.port=8080"], "console.port 8080 is that of probes and metrics"),
        (["console.exposed=true", "metrics.service.port=8081"], "console.port and metrics.service.port are both 8081"),
    ],
)
def test_ports_that_exclude_each_other_are_refused(helm: Helm, settings: list[str], refusal: str) -> None:
    sets = [part for setting in settings for part in ("--set-json", setting)]
    done = helm.run("template", "ott", str(CHART), *sets)

    assert done.returncode != 0
    assert refusal in done.stderr


def test_a_budget_without_a_figure_is_refused(helm: Helm) -> None:
    done = helm.run("template", "ott", str(CHART), "--set-json", 'podDisruptionBudget.maxUnavailable=""')

    assert done.returncode != 0
    assert "podDisruptionBudget needs minAvailable or maxUnavailable" in done.stderr


def test_what_other_charts_share_is_no_misspelling(helm: Helm) -> None:
    helm.template('global={"storageClass":"fast"}')


def test_the_schema_has_the_types_of_kubernetes() -> None:
    assert complete(SCHEMA.read_text()) == SCHEMA.read_text(), "run: make generate"


def keys(document: Any, path: str = "") -> Iterator[str]:
    """Paths of all values that are no maps, or are empty ones."""
    for name, value in document.items():
        here = f"{path}{name}"
        if isinstance(value, dict) and value:
            yield from keys(value, f"{here}.")
        else:
            yield here


def test_each_value_has_a_description_and_a_place_in_the_schema() -> None:
    found = described()

    assert set(keys(DEFAULTS)) == {value.path for value in found if not isinstance(value.default, dict)} | {
        path for value in found if isinstance(value.default, dict) for path in keys({value.path: value.default})
    }
    assert [value.path for value in found if len(value.text) < 10] == []


def test_the_set_of_everything_gives_every_value_another_one() -> None:
    everything = yaml.safe_load(EVERYTHING.read_text())
    booleans = {path for path in keys(DEFAULTS) if isinstance(_at(DEFAULTS, path), bool)}
    own = {value.path for value in described()}

    assert {path for path in own - booleans if _at(everything, path) == _at(DEFAULTS, path)} <= {
        "workerImage.digest",
        "sparkImage.digest",
        "sparkIcebergImage.digest",
    }


def _at(document: Any, path: str) -> Any:
    for part in path.split("."):
        document = document[part]
    return document


class _Summary(yaml.SafeDumper):
    """Writes long texts as their beginning: they are files of the chart with tests of their own."""


def _write_text(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    shown = f"{text[:60]} ..." if text.count("\n") > 3 else text
    return dumper.represent_scalar("tag:yaml.org,2002:str", shown)


_Summary.add_representer(str, _write_text)


@pytest.mark.parametrize(("name", "values"), [("defaults", None), ("everything", EVERYTHING)])
def test_the_objects_are_those_of_the_file(helm: Helm, name: str, values: Path | None) -> None:
    documents = helm.template(values=values, kinds="monitoring.coreos.com/v1", tests=True)
    for document in documents:
        if document["kind"] in ("CustomResourceDefinition", "PrometheusRule"):
            document["spec"] = "..."
    documents.sort(key=lambda item: (item["kind"], item["metadata"].get("namespace", ""), item["metadata"]["name"]))
    text = yaml.dump_all(documents, Dumper=_Summary, sort_keys=True, width=120)

    path = GOLDEN / f"{name}.yaml"
    if os.environ.get("OTS_GOLDEN") == "write":
        path.write_text(text)
    assert text == path.read_text()


def test_openshift_assigns_the_user_itself(helm: Helm) -> None:
    def contexts(*settings: str, kinds: str = "") -> list[dict[str, Any]]:
        found = helm.template(*settings, kinds=kinds, tests=True)
        pods = [item["spec"]["template"]["spec"] for item in found if item["kind"] in ("Deployment", "Job")]
        return [*(pod["securityContext"] for pod in pods), *(pod["containers"][0]["securityContext"] for pod in pods)]

    openshift = "security.openshift.io/v1"
    assert any("runAsUser" in context for context in contexts())
    for found in (contexts(kinds=openshift), contexts('clusterAssignsUser="always"')):
        assert not [context for context in found if {"runAsUser", "runAsGroup", "fsGroup"} & context.keys()]
        assert found[0]["runAsNonRoot"] is True
    assert contexts('clusterAssignsUser="never"', kinds=openshift) == contexts()


def test_the_operator_is_told_that_the_cluster_assigns_users(helm: Helm) -> None:
    found = helm.template(kinds="security.openshift.io/v1")

    deployment = next(item for item in found if item["kind"] == "Deployment")
    assert "--cluster-assigns-user" in deployment["spec"]["template"]["spec"]["containers"][0]["args"]
