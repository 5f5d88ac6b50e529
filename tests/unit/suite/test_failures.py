"""A failed test is named as soon as it has failed."""

from __future__ import annotations

import io

import pytest

from tests.support.suite.failures import NamedFailures


def report_of(config: pytest.Config, outcome: str) -> str:
    output = io.StringIO()
    terminal = pytest.TerminalReporter(config, output)
    report = pytest.TestReport("tests/a.py::test_b", ("a", 1, "b"), {}, outcome, None, "call", duration=61.4)  # type: ignore[arg-type]
    NamedFailures(terminal).pytest_runtest_logreport(report)
    return output.getvalue()


def test_a_failure_is_named_beside_the_dots(pytestconfig: pytest.Config) -> None:
    assert report_of(pytestconfig, "failed") == " failed: tests/a.py::test_b (call, 61 s)\n"
    assert report_of(pytestconfig, "passed") == ""
