"""The coverage gate: lines and branches of every package against the least share that its tests must reach.

    python -m tests.coverage_gate

Reads what the stage `fast` measured. A line that no test can reach has `# pragma: no cover - reason` beside it; a
pragma without a reason excludes nothing.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
REPORT = ROOT / "build" / "coverage" / "coverage.json"
SOURCES = ("operator", "worker")
#: Percent of lines and branches; packages without an entry of their own.
DEFAULT = 95.0
#: Of pure packages every line and branch. A number below the default is a floor that was measured without the slowest
#: tests of the stage: raise it to what `make coverage` shows. What only the tiers `api` and `cluster` run (the
#: operator's process and calls, the demo, Spark in a session) is not measured there.
GATES: Mapping[str, float] = {
    "ots_tunnel.protocol": 100,
    "ots_tunnel_operator.assess": 100,
    "ots_tunnel_operator.plan": 100,
    "ots_tunnel_operator.report": 100,
    "ots_emulator": 92,
    "ots_emulator.admin": 76,
    "ots_emulator.server": 91,
    "ots_tunnel.client": 84,
    "ots_tunnel.commands": 88,
    "ots_tunnel.demo": 41,
    "ots_tunnel.replicate": 94,
    "ots_tunnel.sinks": 91,
    "ots_tunnel.spark": 59,
    "ots_tunnel.tables": 77,
    "ots_tunnel.transport": 80,
    "ots_tunnel.verify": 94,
    "ots_tunnel_operator": 47,
    "ots_tunnel_operator.kube": 60,
    "ots_tunnel_operator.observe": 69,
}


@dataclass
class Coverage:
    """Lines and branches of one package."""

    there: int = 0
    covered: int = 0

    @property
    def percent(self) -> float:
        """Share that was run, 0 to 100."""
        return 100.0 * self.covered / self.there if self.there else 100.0


def package_of(path: str) -> str:
    """The package a file counts for: the first below a distribution's root, or the root for its own modules.

    >>> package_of("worker/ots_tunnel/sinks/table/sink.py")
    'ots_tunnel.sinks'
    """
    parts = Path(path).parts[1:]
    return ".".join(parts[:2] if len(parts) > 2 else parts[:1])


def measured(report: Mapping[str, Any]) -> dict[str, Coverage]:
    """Coverage per package in a report of `coverage json`."""
    packages: dict[str, Coverage] = defaultdict(Coverage)
    for path, file in report["files"].items():
        if path.startswith(SOURCES):
            summary, package = file["summary"], packages[package_of(path)]
            package.there += summary["num_statements"] + summary["num_branches"]
            package.covered += summary["covered_lines"] + summary["covered_branches"]
    return dict(packages)


def failures(packages: Mapping[str, Coverage]) -> list[str]:
    """What is wrong: packages below their gate, and gates of packages that were not measured."""
    found = [
        f"{name}: {package.percent:.2f} % of lines and branches, at least {gate_of(name):g} % are needed"
        for name, package in sorted(packages.items())
        if package.percent < gate_of(name)
    ]
    return found + [f"{name}: not measured" for name in GATES if name not in packages]


def gate_of(package: str) -> float:
    """The least percentage of a package."""
    return GATES.get(package, DEFAULT)


def missing(report: Mapping[str, Any], package: str) -> list[str]:
    """Files of a package with the lines and branches that no test reaches."""
    return [
        f"  {path}: lines {file['missing_lines']}, branches {file['missing_branches']}"
        for path, file in report["files"].items()
        if package_of(path) == package and (file["missing_lines"] or file["missing_branches"])
    ]


def main() -> int:
    """Print the table; 1 when a package is below its gate."""
    coverage = (sys.executable, "-m", "coverage")
    # status 1 where a run before has combined everything
    subprocess.run([*coverage, "combine", "--quiet", "--append"], cwd=ROOT, check=False)
    subprocess.run([*coverage, "json", "--quiet", "-o", str(REPORT)], cwd=ROOT, check=True)
    report = json.loads(REPORT.read_text())
    packages = measured(report)
    print(f"{'package':<34} percent    gate")
    for name, package in sorted(packages.items()):
        print(f"{name:<34} {package.percent:7.2f} {gate_of(name):7g}")
    wrong = failures(packages)
    for name in packages:
        if packages[name].percent < gate_of(name):
            print("\n".join(missing(report, name)))
    print("\n".join(wrong))
    return int(bool(wrong))


if __name__ == "__main__":
    sys.exit(main())
