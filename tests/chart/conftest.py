"""Fixtures of the chart's tests: Helm, and a separate API server."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.support.kube.api_server import ROOT, ApiServer, cache, missing_program, running_api_server
from tests.support.lacking import lack

#: API group, resource and verb.
Right = tuple[str, str, str]
CHART = ROOT / "charts" / "ots-tunnel-operator"
#: Values that render everything.
EVERYTHING = Path(__file__).parent / "everything.yaml"
#: Runs promtool with arguments.
Promtool = Callable[..., subprocess.CompletedProcess[str]]


@dataclass(frozen=True)
class Helm:
    """The program `helm` and our chart."""

    program: Path

    def run(self, *arguments: str, kubeconfig: Path | None = None) -> subprocess.CompletedProcess[str]:
        """Run helm; a command on a cluster needs `kubeconfig`."""
        environment = os.environ | ({"KUBECONFIG": str(kubeconfig)} if kubeconfig else {})
        command = [str(self.program), *arguments]
        return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60, check=False)

    def template(
        self,
        *settings: str,
        values: Path | None = None,
        kinds: str = "",
        tests: bool = False,
        release: str = "ott",
        namespace: str = "ots",
    ) -> list[dict[str, Any]]:
        """Render the chart and return its objects.

        Args:
            settings: values as `key=json`.
            values: a file with values.
            kinds: an API version that the cluster has besides its own.
            tests: with what `helm test` runs.
            release: its name.
            namespace: that it is installed in.
        """
        options = [part for setting in settings for part in ("--set-json", setting)]
        options += ["--values", str(values)] if values else []
        options += ["--api-versions", kinds] if kinds else []
        options += [] if tests else ["--skip-tests"]
        done = self.run("template", release, str(CHART), "--namespace", namespace, "--kube-version", "1.34", *options)
        assert done.returncode == 0, done.stderr
        return [document for document in yaml.safe_load_all(done.stdout) if document]


def _program() -> Path | None:
    named = os.environ.get("HELM") or shutil.which("helm")
    built = cache() / "bin" / "helm"
    return Path(named) if named else built if os.access(built, os.X_OK) else None


@pytest.fixture(scope="session")
def helm() -> Helm:
    """Find helm in the variable HELM, on PATH or in the cache."""
    program = _program()
    if program is None:
        lack("kubernetes", "no helm in HELM, on the PATH or in the cache (tests/cluster/build.sh installs it)")
    return Helm(program)


@pytest.fixture(scope="session")
def promtool() -> Promtool:
    """Find promtool in the variable PROMTOOL, on PATH or in the cache."""
    named = os.environ.get("PROMTOOL") or shutil.which("promtool")
    program = Path(named) if named else cache() / "bin" / "promtool"
    if not os.access(program, os.X_OK):
        lack("kubernetes", "no promtool in PROMTOOL, on the PATH or in the cache (tests/cluster/build.sh builds it)")

    def run(*arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run([program, *arguments], capture_output=True, text=True, timeout=60, check=False)

    return run


@pytest.fixture(scope="session")
def empty_api_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ApiServer]:
    """Start a real API server without our CRD."""
    if reason := missing_program("kubeone", "kubectl"):
        lack("kubernetes", reason)
    with running_api_server(tmp_path_factory.mktemp("chart") / "server") as server:
        yield server


def rights(rules: list[dict[str, Any]]) -> set[Right]:
    """Every right that the rules of a role grant."""
    return {
        (group, resource, verb)
        for rule in rules
        for group in rule["apiGroups"]
        for resource in rule["resources"]
        for verb in rule["verbs"]
    }
