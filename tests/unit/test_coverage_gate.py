"""The coverage gate: what it counts, what fails, and what a machine cannot measure."""

from __future__ import annotations

import doctest
from pathlib import Path

from tests import coverage_gate
from tests.coverage_gate import GATES, NEEDS, Coverage, failures, not_measured_here

FULL = {name: Coverage(100, 100) for name in GATES}


def test_its_examples_hold() -> None:
    assert doctest.testmod(coverage_gate).failed == 0


def test_a_package_below_its_gate_fails() -> None:
    packages = {**FULL, "ots_tunnel.sinks": Coverage(100, 94), "ots_tunnel.plan": Coverage(100, 95)}

    assert failures(packages) == ["ots_tunnel.sinks: 94.00 % of lines and branches, at least 95 % are needed"]


def test_a_package_that_nothing_measured_fails() -> None:
    assert failures({}) == [f"{name}: not measured" for name in GATES]


def test_a_package_whose_tests_cannot_run_here_has_no_gate(tmp_path: Path) -> None:
    report = tmp_path / "api.xml"
    assert not_measured_here(report) == set(NEEDS)
    skipped = '<testcase classname="tests.spark.test_source"><skipped/></testcase>'
    report.write_text(f'<testsuite><testcase classname="tests.operator.test_stop"/>{skipped}</testsuite>')

    assert not_measured_here(report) == {"ots_tunnel.spark"}
    assert failures({**FULL, "ots_tunnel.spark": Coverage(100, 60)}, not_measured_here(report)) == []
