"""The summary of the test command says what a reader of its end needs: failures, pressure, what was left behind."""

from __future__ import annotations

from pathlib import Path

from tests.support.suite.left_over import LeftOver
from tests.support.suite.outcome import Outcome, summary
from tests.support.suite.pressure import Pressure, read_pressure

REPORT = """<testsuites><testsuite>
<testcase classname="tests.one" name="test_passes"/>
<testcase classname="tests.one" name="test_fails"><failure message="not within 60 s&#10;more">trace</failure></testcase>
<testcase classname="tests.one" name="test_skipped"><skipped message="no Java"/></testcase>
</testsuite></testsuites>"""


def test_the_summary_names_failures_and_what_explains_them(tmp_path: Path) -> None:
    report = tmp_path / "fast.xml"
    report.write_text(REPORT)
    outcome = Outcome("fast", 12.0, 1, left_over=[LeftOver("java -jar spark", 120.4)])
    outcome.read(report)
    outcome.pressure = Pressure({"cpu": 9.0, "io": 1.0}).since(Pressure({"cpu": 3.0, "io": 1.0}), 12.0)

    assert summary([outcome]).splitlines() == [
        "",
        "stage        seconds  passed  failed  skipped",
        "fast              12       1       1        1",
        "             skipped 1 x: no Java",
        "             failed: tests.one::test_fails: not within 60 s",
        "             left behind, 120 CPU s: java -jar spark",
        "             waited for cpu 50 %, io 0 %",
        "             ended with status 1",
        "",
        "total: 1 passed, 1 failed, 1 skipped",
    ]


def test_pressure_that_a_kernel_does_not_tell_is_left_out(tmp_path: Path) -> None:
    (tmp_path / "io").write_text("some avg10=0.00 avg60=0.00 avg300=0.00 total=2500000\nfull avg10=0.00 total=7\n")

    assert read_pressure(tmp_path) == Pressure({"io": 2.5})
    assert read_pressure(tmp_path / "absent").since(Pressure({"io": 2.5}), 1.0) == ""
