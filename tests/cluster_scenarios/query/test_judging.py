"""How the lake demo and the scenario of a query judge: by rows of both sides, and by committed files alone."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

from tests.cluster_scenarios.query.committed import committed_changes
from tests.demo.lake.comparison import Row, compare


def row(key: int, **cells: object) -> Row:
    return (key,), {name: (value, 5) for name, value in cells.items()}


def told(table: list[Row], mirror: list[Row]) -> list[str]:
    found = compare(iter(table), iter(mirror), lambda rows: None)
    assert found.differences == len(found.first)
    return found.first


def test_equal_sides_have_no_difference() -> None:
    rows = [row(1, price=1.5, note="a"), row(2)]
    found = compare(iter(rows), iter(rows), lambda rows: None)

    assert (found.rows, found.values, found.differences) == (2, 2, 0)


def test_each_difference_is_told() -> None:
    assert told([row(1), row(3)], [row(2), row(3)]) == ["(1,): missing in the mirror", "(2,): only in the mirror"]
    assert told([row(1, a=1)], [row(1, a=True)]) == ["(1,) a: (1, 5) in the table, (True, 5) in the mirror"]
    assert told([row(1, a=0.0)], [row(1, a=-0.0)]) == ["(1,) a: (0.0, 5) in the table, (-0.0, 5) in the mirror"]
    assert told([row(1)], [row(1, a=1)]) == ["(1,) a: None in the table, (1, 5) in the mirror"]


def test_only_committed_files_count_each_once(tmp_path: Path) -> None:
    log = tmp_path / "_spark_metadata"
    log.mkdir()

    def batch(name: str, *files: int) -> None:
        lines = (json.dumps({"path": f"file:///lake/flights/part-{number}.json.gz"}) for number in files)
        (log / name).write_text("\n".join(["v1", *lines]))

    for number in range(5):
        with gzip.open(tmp_path / f"part-{number}.json.gz", "wt") as file:
            file.write(json.dumps({"number": number}) + "\n")
    batch("0", 0)
    batch("1.compact", 0, 1)
    batch("2", 3)
    (log / ".2.crc").touch()

    # file 2 belongs to a batch that was interrupted, and 4 to one that is not committed yet
    assert [line["number"] for line in committed_changes(tmp_path)] == [0, 1, 3]
