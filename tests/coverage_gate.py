"""The coverage gate: lines and branches of every package against the least share that its tests must reach.

    python -m tests.coverage_gate

Reads what `fast`, `reference`, `leases`, `api` and `spark` measured. A package that needs one of the last two has no
gate where its tests did not run, as without root or Java: the table says "not measured here". A line that no test can
reach has `# pragma: no cover - reason` beside it; a pragma without a reason excludes nothing.
"""

from __future__ import annotations

import json
import subprocess
import sys
import xml.etree.ElementTree as ElementTree
from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
REPORT = ROOT / "build" / "coverage" / "coverage.json"
SOURCES = ("operator", "worker")
#: Percent of lines and branches; packages without an entry of their own.
DEFAULT = 95.0
#: Of pure packages every line and branch.
GATES: Mapping[str, float] = {
    "ots_tunnel.protocol": 100,
    "ots_tunnel_operator.assess": 100,
    "ots_tunnel_operator.plan": 100,
    "ots_tunnel_operator.report": 100,
}
#: Reports of the stages that need more than Python, as far as they were measured.
STAGE_REPORTS = tuple(ROOT / "build" / "coverage" / f"{stage}.xml" for stage in ("api", "spark"))
#: Packages whose processes only these stages run, with the tests that run them.
NEEDS: Mapping[str, str] = {
    "ots_tunnel.spark": "tests.spark",
    "ots_tunnel_operator": "tests.operator",
    "ots_tunnel_operator.kube": "tests.operator",
    "ots_tunnel_operator.observe": "tests.operator",
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


def failures(packages: Mapping[str, Coverage], unmeasured: Collection[str] = ()) -> list[str]:
    """Packages below their gate, and gates of packages that were not measured.

    Args:
        unmeasured: packages whose tests did not run here; they have no gate.
    """
    found = [
        f"{name}: {package.percent:.2f} % of lines and branches, at least {gate_of(name):g} % are needed"
        for name, package in sorted(packages.items())
        if name not in unmeasured and package.percent < gate_of(name)
    ]
    return found + [f"{name}: not measured" for name in GATES if name not in packages]


def gate_of(package: str) -> float:
    """The least percentage of a package."""
    return GATES.get(package, DEFAULT)


def not_measured_here(*reports: Path) -> frozenset[str]:
    """Packages whose tests in the stages `api` and `spark` were all skipped or not started.

    Args:
        reports: JUnit files of the stages; missing where a stage did not run.
    """
    there = [report for report in reports if report.exists()]
    cases = [case for report in there for case in ElementTree.parse(report).iter("testcase")]
    ran = {case.get("classname", "") for case in cases if case.find("skipped") is None}
    return frozenset(name for name, tests in NEEDS.items() if not any(each.startswith(f"{tests}.") for each in ran))


def missing(report: Mapping[str, Any], package: str) -> list[str]:
    """Files of a package with the lines and branches that no test reaches; a branch out of a function leads to `exit`.

    >>> file = {"missing_lines": [3, 4, 5, 9], "missing_branches": [[2, 3], [9, -1]]}
    >>> missing({"files": {"worker/ots_tunnel/sinks/lanes.py": file}}, "ots_tunnel.sinks")
    ['  worker/ots_tunnel/sinks/lanes.py: lines 3-5, 9; branches 2->3, 9->exit']
    """
    found = []
    for path, file in report["files"].items():
        if package_of(path) == package and (file["missing_lines"] or file["missing_branches"]):
            branches = ", ".join(f"{start}->{'exit' if end < 0 else end}" for start, end in file["missing_branches"])
            parts = (("lines", _ranges(file["missing_lines"])), ("branches", branches))
            found.append(f"  {path}: " + "; ".join(f"{kind} {text}" for kind, text in parts if text))
    return found


def _ranges(lines: Sequence[int]) -> str:
    """Line numbers in rising order, neighbours as one range."""
    ranges: list[list[int]] = []
    for line in lines:
        if ranges and line == ranges[-1][1] + 1:
            ranges[-1][1] = line
        else:
            ranges.append([line, line])
    return ", ".join(str(first) if first == last else f"{first}-{last}" for first, last in ranges)


def main() -> int:
    """Print the table; 1 when a package is below its gate."""
    coverage = (sys.executable, "-m", "coverage")
    # status 1 where a run before has combined everything
    subprocess.run([*coverage, "combine", "--quiet", "--append"], cwd=ROOT, check=False)
    subprocess.run([*coverage, "json", "--quiet", "-o", str(REPORT)], cwd=ROOT, check=True)
    report = json.loads(REPORT.read_text())
    packages, unmeasured = measured(report), not_measured_here(*STAGE_REPORTS)
    print(f"{'package':<34} percent  gate")
    for name, package in sorted(packages.items()):
        gate = (
            "not measured here: its tests of the stages `api` and `spark` did not run"
            if name in unmeasured
            else gate_of(name)
        )
        print(f"{name:<34} {package.percent:7.2f}  {gate}")
    for name in packages:
        if name not in unmeasured and packages[name].percent < gate_of(name):
            print(f"{name} misses", *missing(report, name), sep="\n")
    wrong = failures(packages, unmeasured)
    print("\n".join(wrong))
    return int(bool(wrong))


if __name__ == "__main__":
    sys.exit(main())
