"""What the stages of the test command have done, and the summary that it ends with."""

from __future__ import annotations

import xml.etree.ElementTree as ElementTree
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from tests.support.suite.left_over import LeftOver

#: Longest first line of an error that the summary shows, in characters.
_LONGEST = 300


@dataclass
class Outcome:
    """Result of a stage: duration, exit status, counts of tests, and what explains them."""

    stage: str
    seconds: float = 0.0
    status: int = 0
    counts: Counter[str] = field(default_factory=Counter)
    #: How many tests were skipped, by reason.
    skipped: Counter[str] = field(default_factory=Counter)
    #: Tests, each with the first line of its error.
    failed: list[str] = field(default_factory=list)
    left_over: list[LeftOver] = field(default_factory=list)
    #: What programs waited for, as `Pressure.since` says it.
    pressure: str = ""

    def read(self, report: Path) -> None:
        """Count the tests of a report in JUnit's format."""
        for case in ElementTree.parse(report).iter("testcase"):
            failures = [child for child in case if child.tag in {"failure", "error"}]
            skip = case.find("skipped")
            if failures:
                self.counts["failed"] += 1
                message = failures[0].get("message", "").partition("\n")[0]
                self.failed.append(f"{case.get('classname')}::{case.get('name')}: {message[:_LONGEST]}")
            elif skip is not None:
                self.counts["skipped"] += 1
                self.skipped[skip.get("message", "no reason given")] += 1
            else:
                self.counts["passed"] += 1

    def explanations(self) -> Iterator[str]:
        """Lines below the counts."""
        yield from (f"skipped {times} x: {reason}" for reason, times in sorted(self.skipped.items()))
        yield from (f"failed: {failure}" for failure in self.failed)
        yield from (f"left behind, {each.cpu_seconds:.0f} CPU s: {each.command}" for each in self.left_over)
        if self.pressure:
            yield self.pressure
        if self.status:
            yield f"ended with status {self.status}"


def summary(outcomes: list[Outcome]) -> str:
    """A table with a line for each stage, what explains it below, and the totals."""
    total: Counter[str] = Counter()
    lines = ["", "stage        seconds  passed  failed  skipped"]
    for outcome in outcomes:
        counts = outcome.counts
        total += counts
        row = (counts["passed"], counts["failed"], counts["skipped"])
        lines.append(f"{outcome.stage:<12} {outcome.seconds:7.0f}  {row[0]:6}  {row[1]:6}  {row[2]:7}")
        lines += [f"             {line}" for line in outcome.explanations()]
    lines += ["", f"total: {total['passed']} passed, {total['failed']} failed, {total['skipped']} skipped"]
    return "\n".join(lines)
