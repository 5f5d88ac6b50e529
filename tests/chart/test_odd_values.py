"""Values and names that YAML or a template takes for something else: numbers, words, nothing at all."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from subprocess import CompletedProcess
from typing import Any

import pytest
import yaml
from kubernetes_validate import validate

from tests.chart.conftest import CHART, Helm

# Helm is built together with the local cluster's programs
pytestmark = pytest.mark.api

#: Strings that are numbers or booleans where they stand without quotes.
WORDS = (
    'imagePullSecrets=["123"]',
    'workers.imagePullSecrets=["123"]',
    'watch.namespaces=["123"]',
    'serviceAccount.name="true"',
    'operator.leaderElection.leaseName="1.5"',
    'nameOverride="123"',
    'priorityClassName="1e5"',
    'runtimeClassName="0"',
)
DEFAULTS: Mapping[str, Any] = yaml.safe_load((CHART / "values.yaml").read_text())


def deployed(documents: list[dict[str, Any]]) -> dict[str, Any]:
    [found] = [item for item in documents if item["kind"] == "Deployment"]
    return found


def arguments(documents: list[dict[str, Any]]) -> list[str]:
    words: list[str] = deployed(documents)["spec"]["template"]["spec"]["containers"][0]["args"]
    return words


def paths(values: Mapping[str, Any], above: tuple[str, ...] = ()) -> Iterator[str]:
    """Every value of the chart, also those that hold others."""
    for name, value in values.items():
        yield ".".join((*above, name))
        if isinstance(value, Mapping):
            yield from paths(value, (*above, name))


@pytest.mark.parametrize("number", [3, 1_000_000, 12_345_678])
def test_large_numbers_are_written_out(helm: Helm, number: int) -> None:
    names = ("operator.rolloutBudget", "operator.replicas", "operator.revisionHistoryLimit")
    found = helm.template(*(f"{name}={number}" for name in names), f"terminationGracePeriodSeconds={number}")

    spec = deployed(found)["spec"]
    assert f"--rollout-budget={number}" in arguments(found)
    assert (spec["replicas"], spec["revisionHistoryLimit"]) == (number, number)
    assert spec["template"]["spec"]["terminationGracePeriodSeconds"] == number
    validate(deployed(found), "1.34", strict=True)


def test_a_large_budget_is_a_number(helm: Helm) -> None:
    found = helm.template("podDisruptionBudget.maxUnavailable=1000000")

    [budget] = [item for item in found if item["kind"] == "PodDisruptionBudget"]
    assert budget["spec"]["maxUnavailable"] == 1_000_000


@pytest.mark.parametrize("setting", WORDS)
def test_a_string_that_looks_like_something_else_stays_one(helm: Helm, setting: str) -> None:
    for document in helm.template(setting, tests=True):
        validate(document, "1.34", strict=True)


@pytest.mark.parametrize("name", ["123", "1e5", "0x1f"])
def test_names_of_release_and_namespace_may_look_like_numbers(helm: Helm, name: str) -> None:
    found = helm.template('fullnameOverride="ott"', release=name, namespace=name, tests=True)

    for document in found:
        validate(document, "1.34", strict=True)
    assert deployed(found)["metadata"]["namespace"] == name


@pytest.mark.parametrize(
    ("release", "setting", "name"),
    [
        ("123", "tests.enabled=true", "123-ots-tunnel-operator"),
        ("shop.tunnels", "tests.enabled=true", "shop.tunnels-ots-tunnel-operator"),
        ("ott", 'fullnameOverride="shop.tunnels"', "shop.tunnels"),
        ("ott", 'fullnameOverride="1tunnel"', "1tunnel"),
    ],
)
def test_a_name_that_no_service_may_have_is_refused(helm: Helm, release: str, setting: str, name: str) -> None:
    done = helm.run("template", release, str(CHART), "--set-json", setting)

    assert done.returncode
    assert f"found {name!r} as the name of all objects" in done.stderr.replace('"', "'")
    assert "fullnameOverride" in done.stderr
    # without the Service every name that Helm takes will do
    assert helm.template(setting, "metrics.service.enabled=false", release=release)


@pytest.mark.parametrize("name", ["b.c", "b-c"])
def test_a_name_that_is_cut_ends_with_a_letter(helm: Helm, name: str) -> None:
    release = "a" * 50
    found = helm.template(f'nameOverride="{name}"', release=release)

    assert deployed(found)["metadata"]["name"] == f"{release}-b"


@pytest.mark.lasts(30)
def test_a_value_that_is_null_is_refused_by_name_or_left_out(helm: Helm) -> None:
    """Helm takes it for one that is not given, default included."""

    def rendered(*settings: str) -> CompletedProcess[str]:
        return helm.run("template", "ott", str(CHART), *settings)

    before = rendered().stdout
    for path in paths(DEFAULTS):
        done = rendered("--set-json", f"{path}=null")
        if done.returncode:
            # by the schema, or in words of the templates
            is_said = "meet the specifications of the schema" in done.stderr or "execution error" in done.stderr
            assert is_said, f"{path}: {done.stderr}"
            assert path.split(".")[-1] in done.stderr
        elif done.stdout != before:
            for document in yaml.safe_load_all(done.stdout):
                if document:
                    validate(document, "1.34", strict=True)


def test_no_peers_and_no_further_rules_of_the_workers_are_empty_lists(helm: Helm) -> None:
    """What admits the operator, and name servers and ports, stays."""
    policy = {"enabled": True, "from": None, "egress": {"enabled": True, "extra": None}}
    found = helm.template(f"workers.networkPolicy={json.dumps(policy)}", "commonAnnotations=null", "commonLabels=null")

    [told] = [word.partition("=")[2] for word in arguments(found) if word.startswith("--worker-network=")]
    assert {name: len(rules) for name, rules in json.loads(told).items()} == {"from": 1, "egress": 2}


def test_a_probe_that_is_null_is_left_out(helm: Helm) -> None:
    container = deployed(helm.template("livenessProbe=null"))["spec"]["template"]["spec"]["containers"][0]

    assert "livenessProbe" not in container
    assert "readinessProbe" in container


def test_releases_of_one_name_in_two_namespaces_share_no_object(helm: Helm) -> None:
    def names(namespace: str) -> set[tuple[str, str, str]]:
        found = helm.template(
            f'watch.namespaces=["{namespace}"]', "crds.enabled=false", namespace=namespace, tests=True
        )
        return {(item["kind"], item["metadata"].get("namespace", ""), item["metadata"]["name"]) for item in found}

    assert not names("first") & names("second")
