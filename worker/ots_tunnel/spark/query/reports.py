"""The figures of the source in a query's progress, which Spark has from 4.2 on: before, from the source's own file."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from ots_tunnel.spark.versions import bounds_streams


@contextmanager
def report_file(version: str) -> Iterator[Path | None]:
    """The file for the source's option `reportFile`, which goes with the context; None where Spark shows the figures.

    Args:
        version: of Spark.
    """
    if bounds_streams(version):
        yield None
        return
    with tempfile.TemporaryDirectory(prefix="ots-query-") as folder:
        yield Path(folder, "report.json")


def last_progress(query: Any, report: Path | None) -> Mapping[str, Any] | None:
    """Spark's last progress of a query with the figures of its source; None before the first one."""
    found: Mapping[str, Any] | None = query.lastProgress
    if found is None or report is None or not found.get("sources") or not report.exists():
        return found
    source, *others = found["sources"]
    return {**found, "sources": [{**source, "latestOffset": report.read_text()}, *others]}
