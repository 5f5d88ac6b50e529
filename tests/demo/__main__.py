"""`make demo`: copy a real table on a real Kubernetes by one object, and compare both tables.

`make demo-spark` (`--engine lake`) keeps a mirror of it in Delta, and compares that.
"""

from __future__ import annotations

import argparse
import sys
from dataclasses import replace

from rich.table import Table

from ots_tunnel.errors import TunnelError
from tests.cluster import local_cluster
from tests.demo.kube import DemoError
from tests.demo.lake.lake_object import DRIVER, NAME
from tests.demo.lake.run import Result as LakeResult
from tests.demo.lake.run import run as run_lake
from tests.demo.lake.summary import lake_summary
from tests.demo.progress import Story
from tests.demo.run import Result, run
from tests.demo.scenario import Scenario
from tests.demo.summary import summary, work_of

#: Changes per second beside Spark on the same two cores, and the longest time of every wait of it in seconds.
LAKE_CHANGES, LAKE_PATIENCE = 100, 900


def main() -> int:
    """Run the demo; 0 when both tables are equal, 1 on a difference or failure, 2 where the machine cannot run it."""
    parser = argparse.ArgumentParser(prog="make demo", description="copy a real table on a local Kubernetes")
    parser.add_argument(
        "--engine",
        choices=("workers", "spark", "lake"),
        default="workers",
        help="spark: existing rows by Spark; lake: a mirror in Delta by Spark alone",
    )
    parser.add_argument("--context", default="", help="use the cluster of this kubeconfig context")
    parser.add_argument("--rows", type=int, help="number of rows to load; all of the table by default")
    parser.add_argument("--cluster", choices=("ott-demo", "ott-test"), default="ott-demo", help="local cluster to use")
    options = parser.parse_args()
    scenario = Scenario(cluster=options.cluster, engine=options.engine, rows=options.rows)
    if scenario.engine == "lake":
        if options.context:
            parser.error("--context: the mirror is read from a folder of the local cluster's node")
        scenario = replace(scenario, changes_per_second=LAKE_CHANGES, patience=LAKE_PATIENCE, name=NAME)
    story = Story()
    try:
        result = run_lake(scenario, story) if scenario.engine == "lake" else run(scenario, story, options.context)
    except local_cluster.ClusterUnavailable as error:
        print(
            f"{error}\n`.venv/bin/ots-tunnel demo` shows the same in one process; "
            "CONTEXT=name uses an existing cluster."
        )
        return 2
    except (DemoError, TunnelError, local_cluster.ClusterError) as error:
        story.console.print(f"\n[red]failed:[/red] {error}")
        _what_next(scenario, story, options.context)
        return 1
    table = lake_summary(scenario, result) if isinstance(result, LakeResult) else _summary(scenario, result)
    story.console.print("\n", table, story.times())
    _what_next(scenario, story, options.context)
    return int(result.comparison.differences > 0)


def _summary(scenario: Scenario, result: Result) -> Table:
    comparison = result.comparison
    lines = (
        *work_of(result.rows, result.changes, "while copying"),
        ("existing rows/s", f"{result.rows / max(result.base_seconds, 0.001):,.0f}"),
        ("recovery after the kill", f"{result.recovery_seconds:.0f} s"),
        ("lag gone after the writer stopped", f"{result.catch_up_seconds:.0f} s"),
        ("hand-overs of channels", f"{result.hand_overs}"),
        ("rows compared", f"{comparison.rows:,}"),
        ("cell versions compared", f"{comparison.versions:,}"),
    )
    return summary(f"{scenario.table} and {scenario.destination}", lines, comparison.differences, comparison.first)


def _what_next(scenario: Scenario, story: Story, context: str) -> None:
    cluster = local_cluster.Cluster(scenario.cluster)
    if not context:
        story.console.print(f"\nexport PATH={local_cluster.BIN}:$PATH KUBECONFIG={cluster.kubeconfig}", markup=False)
    for command in (
        f"kubectl -n {scenario.namespace} get ott -o wide",
        f"kubectl -n {scenario.namespace} describe ott {scenario.name}",
        f"kubectl -n {scenario.namespace} logs {_program(scenario)}",
        f"kubectl -n {scenario.operator_namespace} logs deployment/ots-tunnel-operator",
        "make demo-down",
    ):
        story.console.print(command, markup=False)


def _program(scenario: Scenario) -> str:
    return f"pod/{DRIVER}" if scenario.engine == "lake" else f"deployment/{scenario.name}"


if __name__ == "__main__":
    sys.exit(main())
