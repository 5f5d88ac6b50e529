"""From the chart of the last release to the present one and back, with objects alive, and what `helm test` runs."""

from __future__ import annotations

import json
import shlex
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from ots_tunnel_operator.plugin.why.advice import steps_for
from ots_tunnel_operator.reasons import Reason
from tests.chart.conftest import CHART, Helm
from tests.support.kube.api_server import ROOT, ApiServer, missing_program, running_api_server
from tests.support.lacking import lack
from tests.support.operator import released
from tests.support.operator.objects import tunnel_object
from tests.support.operator.plugin_objects import healthy
from tests.support.operator.released import OBJECTS, released_object
from tests.support.programs.processes import inherited_environment, module
from tests.support.waiting import wait_until

pytestmark = [pytest.mark.api, pytest.mark.timeout(300), pytest.mark.xdist_group("upgrade")]

HOME = "ots"
NAME = "ott-ots-tunnel-operator"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ApiServer]:
    """A real API server of its own: releases and definition change."""
    if reason := missing_program("kubeone", "kubectl"):
        lack("kubernetes", reason)
    with running_api_server(tmp_path_factory.mktemp("upgrade") / "server") as found:
        yield found


@pytest.fixture(scope="module")
def released_chart(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The chart of the last release."""
    return released.released_chart(tmp_path_factory.mktemp("released"))


class Release:
    """One release of the chart on an API server, with objects that it serves."""

    def __init__(self, helm: Helm, server: ApiServer) -> None:
        self._helm = helm
        self.server = server

    def helm(self, *arguments: str) -> str:
        done = self._helm.run(*arguments, "--namespace", HOME, kubeconfig=self.server.kubeconfig)
        assert done.returncode == 0, done.stderr
        self.server.must("wait", "--for=condition=Established", "crd", "--all", "--timeout=30s")
        return done.stdout

    def objects(self) -> dict[str, dict[str, Any]]:
        """The objects by name, with what Helm must not change of them."""
        listed = json.loads(self.server.must("get", "ott", "-A", "-o", "json"))
        kept = ("uid", "generation", "creationTimestamp")
        return {
            item["metadata"]["name"]: {key: item["metadata"][key] for key in kept} | {"status": item.get("status")}
            for item in listed["items"]
        }

    def spec(self, name: str) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self.server.must("get", "ott", name, "-o", "json"))["spec"]
        return found

    def one(self, kind: str, name: str = NAME) -> dict[str, Any] | None:
        found = self.server.kubectl("-n", HOME, "get", kind, name, "-o", "json")
        return dict(json.loads(found.stdout)) if found.returncode == 0 else None

    def awaits(self, accepted: bool, **changes: Any) -> None:
        """Wait until the API server accepts, or refuses, an object: a changed definition is in use a moment later."""
        sample = tunnel_object("sample", **changes)
        create = ("create", "--dry-run=server", "--validate=strict", "-f", "-")
        wait_until(
            lambda: (self.server.kubectl(*create, document=sample).returncode == 0) == accepted,
            60,
            f"accepted is {accepted} with {changes}",
        )


@pytest.mark.lasts(20)
def test_upgrade_and_rollback_leave_the_objects_alone(helm: Helm, server: ApiServer, released_chart: Path) -> None:
    release = Release(helm, server)
    release.helm("install", "ott", str(released_chart), "--create-namespace")
    for name in OBJECTS:
        server.must("create", "-f", "-", document=released_object(name))
        phase = json.dumps({"status": {"phase": "Streaming", "observedGeneration": 1}})
        server.must("patch", "ott", name, "--subresource=status", "--type=merge", "-p", phase)
    before, specs = release.objects(), {name: release.spec(name) for name in OBJECTS}
    deployment = release.one("deployment")
    assert deployment is not None
    new_field = {"source__rateLimit": {"rowsPerSecondPerWorker": 10}}
    release.awaits(False, **new_field)

    release.helm("upgrade", "ott", str(CHART))

    assert release.objects() == before
    for name, spec in specs.items():
        # defaults of new fields may join
        assert release.spec(name).items() >= spec.items(), name
    release.awaits(True, **new_field)
    upgraded = release.one("deployment")
    # changed in place: a new one would run beside the former
    assert upgraded is not None
    assert upgraded["metadata"]["uid"] == deployment["metadata"]["uid"]
    assert release.one("poddisruptionbudget") is not None

    release.helm("rollback", "ott", "1")

    assert release.objects() == before
    assert {name: release.spec(name) for name in OBJECTS} == specs
    release.awaits(False, **new_field)
    release.awaits(True)
    assert release.one("poddisruptionbudget") is None
    returned = release.one("deployment")
    assert returned is not None
    assert returned["spec"] == deployment["spec"]

    release.helm("upgrade", "ott", str(CHART))

    assert release.objects() == before
    release.awaits(True, **new_field)

    release.helm("uninstall", "ott")

    assert release.objects() == before  # crds.keep is true
    release.helm("install", "ott", str(CHART))
    assert release.objects() == before


@pytest.mark.lasts(10)
def test_a_definition_of_the_chart_is_brought_up_to_date_by_the_command_that_is_shown(
    helm: Helm, server: ApiServer, released_chart: Path
) -> None:
    """Helm manages its fields; after the command the chart can be upgraded as before."""
    release = Release(helm, server)
    release.helm("upgrade", "--install", "ott", str(released_chart), "--create-namespace")
    new_field = {"source__rateLimit": {"rowsPerSecondPerWorker": 10}}
    release.awaits(False, **new_field)
    (step,) = steps_for(healthy(), Reason.CRD_OUTDATED)

    program, *words = shlex.split(step.commands[0])
    server.must(*[word.replace("crds/", str(ROOT / "crds")) for word in words])

    assert program == "kubectl"
    release.awaits(True, **new_field)
    release.helm("upgrade", "ott", str(CHART))
    release.awaits(True, **new_field)


def checked(helm: Helm, server: ApiServer, folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run the command of the chart's test under its account, with the rights that its hooks grant."""
    hooks = [item for item in helm.template(tests=True) if item["metadata"]["name"].startswith(f"{NAME}-test")]
    job = next(item for item in hooks if item["kind"] == "Job")
    server.must("apply", "--server-side", "-f", "-", document={"apiVersion": "v1", "kind": "List", "items": hooks})
    account = yaml.safe_load(server.kubeconfig.read_text())
    account["users"][0]["user"] = {"token": server.must("-n", HOME, "create", "token", f"{NAME}-test").strip()}
    path = folder / "kubeconfig"
    path.write_text(yaml.safe_dump(account))
    _, command, *options = job["spec"]["template"]["spec"]["containers"][0]["args"]
    options = [option for option in options if not option.startswith("--url")]
    return subprocess.run(
        module("ots_tunnel_operator", command, *options, *arguments),
        env=inherited_environment(KUBECONFIG=str(path)),
        capture_output=True,
        text=True,
        timeout=150,
        check=False,
    )


def test_the_chart_s_test_finds_an_installation_in_order_and_stores_nothing(
    helm: Helm, server: ApiServer, tmp_path: Path
) -> None:
    release = Release(helm, server)
    release.helm("upgrade", "--install", "ott", str(CHART), "--create-namespace")
    before = release.objects()

    done = checked(helm, server, tmp_path)

    assert (done.returncode, done.stdout.splitlines()) == (
        0,
        [
            "ok      the definition is established",
            "ok      an object is accepted",
            "ok      an object with two sinks is refused",
        ],
    ), done.stderr
    assert release.objects() == before


def test_the_chart_s_test_says_what_is_wrong(helm: Helm, server: ApiServer, tmp_path: Path) -> None:
    release = Release(helm, server)
    release.helm("upgrade", "--install", "ott", str(CHART), "--create-namespace")
    rules = "/spec/versions/0/schema/openAPIV3Schema/properties/spec/properties/sink/x-kubernetes-validations"
    server.must("patch", "crd", "tablestoretunnels.ots-tunnel.dev", "--type=json", "-p", json.dumps([_remove(rules)]))
    release.awaits(True, sink={"stdout": {}, "http": {"url": "https://check.example"}})

    done = checked(helm, server, tmp_path, "--url", "http://127.0.0.1:9")

    assert done.returncode == 1
    assert "FAILED  an object with two sinks is refused: it was accepted: apply the definition" in done.stdout
    assert "FAILED  the operator answers /readyz: http://127.0.0.1:9/readyz: " in done.stdout
    assert "look at the operator's pods, and at network policies" in done.stdout


def _remove(path: str) -> dict[str, str]:
    return {"op": "remove", "path": path}
