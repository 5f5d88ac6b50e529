"""The demo's programs: what only the copy by Spark needs is built for it alone."""

from __future__ import annotations

import hashlib
import os
import re
import subprocess
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[2] / "cluster" / "build.sh"
#: Notes which packages it builds, and brings an empty chart.
GO = """#!/bin/bash
case $1 in
  env) echo go1.99 ;;
  version) echo go version go1.99 ;;
  build) echo "${@: -1}" >>"$BUILT"; while [[ $1 != -o ]]; do shift; done; touch "$2"; chmod +x "$2" ;;
  mod) mkdir -p "$CHART/charts/spark-operator-chart"; printf '{\\n\\t"Dir": "%s",\\n}\\n' "$CHART" ;;
esac
"""


@pytest.fixture
def cache(tmp_path: Path) -> Path:
    """A cache that has helm, which would be fetched."""
    (helm,) = re.findall(r"^HELM=(\S+)", SCRIPT.read_text(), re.MULTILINE)
    recipe = hashlib.sha256(f"{helm}\n".encode()).hexdigest()[:16]
    tools = tmp_path / "programs" / f"tools-{recipe}"
    (tools / "bin").mkdir(parents=True)
    (tools / "complete").touch()
    (tools / "bin" / "helm").touch(0o755)
    go = tmp_path / "go" / "go"
    go.parent.mkdir()
    go.write_text(GO)
    go.chmod(0o755)
    return tmp_path


def run(cache: Path, *arguments: str) -> tuple[int, list[str], str]:
    """Exit code, the packages that were built, and what was said."""
    built = cache / "built"
    environment = {"PATH": f"{cache / 'go'}:{os.environ['PATH']}", "HOME": str(cache), "OTS_TUNNEL_CACHE": str(cache)}
    environment |= {"BUILT": str(built), "CHART": str(cache / "module")}
    found = subprocess.run(
        [SCRIPT, *arguments], env=environment, capture_output=True, text=True, timeout=60, check=False
    )
    return found.returncode, built.read_text().splitlines() if built.exists() else [], found.stderr


def test_a_cluster_without_spark_builds_nothing_of_it(cache: Path) -> None:
    code, built, said = run(cache, "cluster")

    assert code == 0, said
    assert built == [".", ".", "."], "kubeone, coredns and pause"
    assert not (cache / "spark-operator-chart").exists()


def test_a_cluster_with_spark_has_its_operator_and_the_chart(cache: Path) -> None:
    code, built, said = run(cache, "cluster", "spark")

    assert code == 0, said
    assert built[3:] == ["github.com/kubeflow/spark-operator/v2/cmd/operator"]
    assert (cache / "spark-operator-chart").exists()


def test_without_a_name_every_part_is_built(cache: Path) -> None:
    code, built, said = run(cache)

    assert code == 0, said
    assert len(built) == 6
    assert run(cache, "--check")[0] == 0
    assert run(cache)[1] == built, "once"


def test_an_unknown_part_is_refused(cache: Path) -> None:
    code, built, said = run(cache, "cluster", "other")

    assert (code, built) == (1, [])
    assert "usage" in said
