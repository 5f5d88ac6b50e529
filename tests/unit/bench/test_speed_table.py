"""The table of speed in docs/performance.md: its rows and columns from bench.json."""

from __future__ import annotations

from typing import Any

from tests.bench.contenders import Contender
from tests.bench.figures import Figure
from tests.bench.pages import BESIDE, blocking, memory
from tests.bench.sinks.rounds import documents_of
from tests.bench.sinks.works import WORKS
from tests.bench.tables.speed import BESIDE_LIBRARY, SHARDS, page_table, shard_table, sink_table, table

SETTINGS = "(4 channels, 200 rows per write)"


def documents() -> list[dict[str, Any]]:
    figures = [
        Figure(f"count, CPU, beside Java, best {SETTINGS}", 0.25, 2.0, "CPU s/M rows", 5),
        Figure(f"count, CPU, beside Go, best {SETTINGS}", 0.25, 1234.0, "CPU s/M rows", 10_000),
        Figure(f"count, CPU, beside Go, undecoded {SETTINGS}", 0.25, 0.5, "CPU s/M rows", 1.3),
        Figure(f"count, rate, beside Go, best {SETTINGS}", 3, 4, "rows/s"),
        Figure(f"latency, p50, beside Java, best {SETTINGS}", 3, 4, "ms"),
        Figure(f"latency, p50, beside Go, best {SETTINGS}", 3, 6, "ms"),
    ]
    return [*(figure.document() for figure in figures), {"name": "the emulator's own", "goal": 3, "met": True}]


def test_java_and_go_share_a_line() -> None:
    lines = table(documents()).splitlines()

    assert lines[2:] == [
        "| count, CPU; peers at their best | CPU s/M rows | 0.25 | 2 | 1,234 | 8 / 4,936 | 5 / 10,000 | yes / **no** |",
        "| count, CPU; Go leaves the records undecoded | CPU s/M rows | 0.25 |  | 0.5 | 2 | 1.3 | yes |",
        "| latency, p50; peers at their best | ms | 3 | 4 | 6 | 1.33 / 2 |  |  |",
    ]


def test_every_line_has_every_column() -> None:
    assert len({line.count("|") for line in table(documents()).splitlines()}) == 1


def test_sinks_have_a_table_of_their_own() -> None:
    lines, http = WORKS[0], WORKS[-1]
    found = documents_of(lines, {Contender.OURS: 1.25, Contender.JAVA: 5, Contender.GO: 8}, SETTINGS[1:-1])
    found += documents_of(http, {Contender.OURS: 1.5, Contender.GO: 12}, SETTINGS[1:-1])

    assert sink_table([*documents(), *found]).splitlines()[2:] == [
        "| JSON lines into files | 1.25 | 1.2 | 5 (Jackson) | 8 (encoding/json) | 4 | 4 | **no** / yes |",
        "| CloudEvents over http | 1.5 | 2 |  | 12 (net/http) | 8 |  | yes |",
    ]
    assert table(found).count("\n") == page_table(found).count("\n") == 2


def test_a_table_of_sinks_without_figures_says_so() -> None:
    assert sink_table(documents()) == "No run of `make bench` with sinks has been kept yet.\n"


def test_pages_have_a_table_of_their_own() -> None:
    goals = [*blocking("http", 12.34, 18), *blocking("kafka", 51, 51.2), memory("kafka", BESIDE[0], 120.4)]
    lines = page_table([*documents(), *(goal.document() for goal in goals)]).splitlines()

    assert lines[2:] == [
        "| the event loop is blocked, http | 12.3 | 50 | ms | yes |",
        "| the event loop is blocked, kafka | 51 | 50 | ms | **no** |",
        "| memory, kafka, 8 channels, narrow rows, budget 64 MiB | 120 | 201 | MB resident | yes |",
    ]
    assert table([goal.document() for goal in goals]).count("\n") == 2


def test_shards_have_a_table_of_their_own() -> None:
    name = f"{SHARDS}: count, CPU, {BESIDE_LIBRARY} {SETTINGS}"
    found = [Figure(name, 0.5, 3.0, "CPU s/M rows", 5.0).document()]

    assert shard_table([*documents(), *found]).splitlines()[2:] == [
        "| count, CPU | CPU s/M rows | 0.5 | 3 | 6 | 5 | yes |",
    ]
    assert table(found).count("\n") == sink_table(found).count("\n") + 1 == 2
    assert shard_table(documents()) == "No run of `make bench` with shards has been kept yet.\n"
