"""Names a failed test at once: a run that is stopped, or that somebody looks at, has then said what it knows."""

from __future__ import annotations

import pytest


class NamedFailures:
    """Plugin of the process that reports.

    Args:
        terminal: where dots are printed.
    """

    def __init__(self, terminal: pytest.TerminalReporter) -> None:
        self._terminal = terminal

    @pytest.hookimpl(trylast=True)
    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Print one line beside the dots."""
        if report.failed and not self._terminal.config.option.verbose > 0:
            self._terminal.write_line(f" failed: {report.nodeid} ({report.when}, {report.duration:.0f} s)")


def name_failures(config: pytest.Config) -> None:
    """Register the plugin; a process that only runs tests for another one has no terminal."""
    terminal = config.pluginmanager.get_plugin("terminalreporter")
    if terminal is not None and not hasattr(config, "workerinput"):
        config.pluginmanager.register(NamedFailures(terminal), "named-failures")
