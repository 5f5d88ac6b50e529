"""Figures of a source that Spark does not show before 4.2."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from ots_tunnel.spark.query.figures import progress_of
from ots_tunnel.spark.query.reports import last_progress, report_file

FOUND = {"batchId": 3, "numInputRows": 5, "inputRowsPerSecond": 2.0, "durationMs": {}}


def query(latest: Any) -> Any:
    return SimpleNamespace(lastProgress={**FOUND, "sources": [{"latestOffset": latest}]})


def test_figures_come_from_the_file_where_spark_shows_none(tmp_path: Path) -> None:
    with report_file("4.1.4") as report:
        assert report is not None
        before = last_progress(query(None), report)
        report.write_text(json.dumps({"channels": 2, "lagSeconds": 7.2}))
        found = last_progress(query(None), report)
        assert last_progress(SimpleNamespace(lastProgress=None), report) is None

    assert before is not None
    assert progress_of(before).lag_seconds is None
    assert found is not None
    assert (progress_of(found).lag_seconds, progress_of(found).channels) == (7, 2)
    assert not report.parent.exists()


def test_spark_shows_the_figures_from_one_minor_on() -> None:
    with report_file("4.2.0") as report:
        assert report is None
        found = last_progress(query(json.dumps({"channels": 4})), report)

    assert found is not None
    assert progress_of(found).channels == 4
