"""The tables of docs/performance.md from `bench.json`: ours beside the vendor's workers, and our sinks."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from tests.bench.machine import COPIED

BENCH = Path(__file__).resolve().parents[3] / "bench.json"
_NAME = re.compile(r"(?P<work>.+), beside (?P<peer>Java|Go), (?P<how>best|default|undecoded) \(.*\)")
_HOW = {"best": "peers at their best", "default": "peers by default", "undecoded": "Go leaves the records undecoded"}
_WORDS = {True: "yes", False: "**no**"}
_HEADERS = ("work", "unit", "ours", "Java", "Go", "times better", "goal", "met")
#: Shown although it has no goal: it explains the figure that has one.
_SHOWN = "latency"
#: Begins the names of the figures about pages.
PAGE = "a page of 4 MiB"
#: Begins the names of the figures about shards, and ends them before their settings.
SHARDS, BESIDE_LIBRARY = "shards without a tunnel", "beside the Stream Client for Java, best"
_SHARDS = re.compile(SHARDS + r": (?P<work>.+), " + BESIDE_LIBRARY + r" \(.*\)")
_SHARD_HEADERS = ("work", "unit", "ours", "Java", "times better", "goal", "met")
#: Begins the names of the figures about memory that the kernel gives.
TAKEN = "memory taken anew"
_TAKEN = re.compile(TAKEN + r": (?P<work>[^(]+) \(.*\)")
#: Begins the names of the figures about sinks.
SINK = "records into a sink"
_SINK = re.compile(SINK + r": (?P<work>[^,(]+)(, beside (?P<peer>Java|Go) with (?P<library>\S+))? \(.*\)")
#: Begins the names of the figures about Spark.
SPARK = "rows in Spark"
_SPARK = re.compile(
    SPARK + r": (?P<work>[^,(]+)(, (?P<part>Python alone|beside a loop in (?P<peer>Python|Java)))? \(.*\)"
)
#: Begins the names of the figures about Spark that are no cost of rows.
SPARK_BESIDES = "Spark besides"
_SPARK_BESIDES = re.compile(SPARK_BESIDES + r": (?P<what>.+) \(.*\)")
_SPARK_HEADERS = ("work", "ours", "at most", "met", "Python's part", "at most", "loop in Python", "loop in Java")
_SINK_HEADERS = ("sink", "ours", "at most", "Java", "Go", "times better", "at least", "met")


def speed() -> str:
    """The table of the last kept run."""
    return table(json.loads(BENCH.read_text()))


def pages() -> str:
    """The table about pages of the last kept run."""
    return page_table(json.loads(BENCH.read_text()))


def sinks() -> str:
    """The table about sinks of the last kept run."""
    return sink_table(json.loads(BENCH.read_text()))


def shards() -> str:
    """The table about shards without a tunnel of the last kept run."""
    return shard_table(json.loads(BENCH.read_text()))


def spark() -> str:
    """The table about Spark of the last kept run."""
    return spark_table(json.loads(BENCH.read_text()))


def spark_besides() -> str:
    """The table about Spark, besides the costs of rows, of the last kept run."""
    return spark_besides_table(json.loads(BENCH.read_text()))


def memory() -> str:
    """The table about memory of the last kept run."""
    return memory_table(json.loads(BENCH.read_text()))


def memory_table(documents: Iterable[Mapping[str, Any]]) -> str:
    """The rows of `bench.json` about memory: what a core copies, and what each work takes from the kernel anew."""
    rows = []
    for document in documents:
        if found := _TAKEN.fullmatch(document["name"]):
            rows.append((f"{found['work']}: {TAKEN}", _number(document["ours"]), document["unit"]))
        elif document["name"] == COPIED:
            rows.insert(0, (COPIED, _number(document["ours"]), document["unit"]))
    if not rows:
        return "No run of `make bench` with memory has been kept yet.\n"
    return "".join(f"| {' | '.join(row)} |\n" for row in (("what", "measured", "unit"), ("---",) * 3, *rows))


def spark_table(documents: Iterable[Mapping[str, Any]]) -> str:
    """The rows of `bench.json` about Spark."""
    works: dict[str, dict[str, Mapping[str, Any]]] = {}
    for document in documents:
        if found := _SPARK.fullmatch(document["name"]):
            works.setdefault(found["work"], {})[found["peer"] or found["part"] or "all"] = document
    if not works:
        return "No run of `make bench` with Spark has been kept yet.\n"
    rows = [_SPARK_HEADERS, ("---",) * len(_SPARK_HEADERS)]
    for work, parts in works.items():
        whole, python = parts["all"], parts["Python alone"]
        met = _WORDS[whole["met"]]
        peers = (_number(parts[peer]["peer"]) if peer in parts else "" for peer in ("Python", "Java"))
        most = "" if python["goal"] is None else _number(python["goal"])
        rows.append((work, _number(whole["ours"]), _number(whole["goal"]), met, _number(python["ours"]), most, *peers))
    return "".join(f"| {' | '.join(row)} |\n" for row in rows)


def spark_besides_table(documents: Iterable[Mapping[str, Any]]) -> str:
    """The rows of `bench.json` about Spark that are no cost of rows."""
    found = [(match["what"], each) for each in documents if (match := _SPARK_BESIDES.fullmatch(each["name"]))]
    if not found:
        return "No run of `make bench` with these has been kept yet.\n"
    lines = [("what", "ours", "at most", "unit", "met"), ("---",) * 5]
    for what, each in found:
        met = "" if each["met"] is None else _WORDS[each["met"]]
        lines.append((what, _number(each["ours"]), _number(each["goal"]), each["unit"], met))
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def shard_table(documents: Iterable[Mapping[str, Any]]) -> str:
    """The rows of `bench.json` about shards without a tunnel."""
    found = [(match["work"], each) for each in documents if (match := _SHARDS.fullmatch(each["name"]))]
    if not found:
        return "No run of `make bench` with shards has been kept yet.\n"
    rows = [_SHARD_HEADERS, ("---",) * len(_SHARD_HEADERS)]
    for work, each in found:
        numbers = (_number(each[field]) for field in ("ours", "peer", "ratio", "goal"))
        rows.append((work, each["unit"], *numbers, _WORDS[each["met"]]))
    return "".join(f"| {' | '.join(row)} |\n" for row in rows)


def sink_table(documents: Iterable[Mapping[str, Any]]) -> str:
    """The rows of `bench.json` about sinks, a line for each: our CPU, the peers', and both goals."""
    lines: dict[str, dict[str | None, Mapping[str, Any]]] = {}
    for document in documents:
        if found := _SINK.fullmatch(document["name"]):
            peer = found["peer"] and f"{found['peer']} {found['library']}"
            lines.setdefault(found["work"], {})[peer] = document
    if not lines:
        return "No run of `make bench` with sinks has been kept yet.\n"
    rows = [_SINK_HEADERS, ("---",) * len(_SINK_HEADERS), *(_sink_row(work, found) for work, found in lines.items())]
    return "".join(f"| {' | '.join(row)} |\n" for row in rows)


def _sink_row(work: str, found: Mapping[str | None, Mapping[str, Any]]) -> tuple[str, ...]:
    ours = found[None]
    peers = {peer: document for peer, document in found.items() if peer is not None}
    shown = {peer.partition(" ")[0]: f"{_number(it['peer'])} ({peer.partition(' ')[2]})" for peer, it in peers.items()}
    beside = min(peers.values(), key=lambda document: document["peer"])
    met = [_WORDS[document["met"]] for document in (ours, beside) if document["met"] is not None]
    return (
        work,
        *(_number(ours[field]) for field in ("ours", "goal")),
        *(shown.get(peer, "") for peer in ("Java", "Go")),
        *(_number(beside[field]) for field in ("ratio", "goal")),
        met[0] if len({*met}) == 1 else " / ".join(met),
    )


def page_table(documents: Iterable[Mapping[str, Any]]) -> str:
    """The rows of `bench.json` about pages that have a goal."""
    lines = [("what", "ours", "at most", "unit", "met"), ("---",) * 5]
    for document in documents:
        begin, _, what = document["name"].partition(": ")
        if begin == PAGE and document["goal"] is not None:
            numbers = (_number(document["ours"]), _number(document["goal"]))
            lines.append((what, *numbers, document["unit"].removesuffix(" at most"), _WORDS[document["met"]]))
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def table(documents: Iterable[Mapping[str, Any]]) -> str:
    """The rows of `bench.json` that have a goal beside a peer, Java and Go in one line."""
    lines: dict[tuple[str, str], dict[str, Mapping[str, Any]]] = {}
    for document in documents:
        found = _NAME.fullmatch(document["name"])
        if found is not None and (document["goal"] is not None or found["work"].startswith(_SHOWN)):
            lines.setdefault((found["work"], found["how"]), {})[found["peer"]] = document
    rows = [_HEADERS, ("---",) * len(_HEADERS), *(_row(*place, peers) for place, peers in lines.items())]
    return "".join(f"| {' | '.join(row)} |\n" for row in rows)


def _row(work: str, how: str, peers: Mapping[str, Mapping[str, Any]]) -> tuple[str, ...]:
    any_peer = next(iter(peers.values()))
    java, go = peers.get("Java"), peers.get("Go")
    return (
        f"{work}; {_HOW[how]}",
        any_peer["unit"],
        _number(any_peer["ours"]),
        _number(java and java["peer"]),
        _number(go and go["peer"]),
        *(_both(java, go, field) for field in ("ratio", "goal", "met")),
    )


def _both(java: Mapping[str, Any] | None, go: Mapping[str, Any] | None, field: str) -> str:
    found = [peer[field] for peer in (java, go) if peer is not None]
    if all(value is None for value in found):
        return ""
    words = [_WORDS[value] if field == "met" else _number(value) for value in found]
    return words[0] if len({*words}) == 1 and field == "met" else " / ".join(words)


def _number(value: float | None) -> str:
    """Round to three digits; two runs agree in fewer."""
    return "" if value is None else f"{value:.3g}" if abs(value) < 1000 else f"{value:,.0f}"
