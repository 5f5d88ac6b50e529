"""Write the generated parts of the documents: fields, tables, pictures.

    python -m tests.docs.fill [--check]

Each part stands between two comments that name it. With `--check` nothing is written, and the exit code is 1 when a
part is out of date.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Mapping

from tests.bench.tables.speed import memory, pages, shards, sinks, spark, spark_besides, speed
from tests.docs.chart_values import chart_values
from tests.docs.machines import client_picture, picture
from tests.docs.object_fields import fields_of, refusals
from tests.docs.pages import ROOT
from tests.docs.tables import (
    codes,
    emulator_settings,
    go_edges,
    java_edges,
    ledger,
    operator_actions,
    operator_metrics,
    operator_settings,
    programs,
    schedules,
    settings,
    stream_settings,
    worker_actions,
    worker_metrics,
)

Part = Callable[[], str]

#: Page -> name of a part -> its text.
PARTS: Mapping[str, Mapping[str, Part]] = {
    "docs/object.md": {"spec": lambda: fields_of("spec"), "refusals": refusals, "status": lambda: fields_of("status")},
    "docs/operations.md": {
        "exit codes": codes,
        "worker actions": worker_actions,
        "operator actions": operator_actions,
        "worker metrics": worker_metrics,
        "operator metrics": operator_metrics,
    },
    "docs/worker.md": {"settings": settings, "channel machine": picture, "client machine": client_picture},
    "docs/stream.md": {"stream settings": stream_settings},
    "docs/protocol.md": {"schedules": schedules, "sharp edges go": go_edges, "sharp edges java": java_edges},
    "docs/architecture.md": {"operator settings": operator_settings},
    "docs/emulator.md": {"settings": emulator_settings, "ledger": ledger, "programs": programs},
    "docs/performance.md": {
        "speed": speed,
        "shards": shards,
        "sinks": sinks,
        "spark": spark,
        "spark besides": spark_besides,
        "pages": pages,
        "memory": memory,
    },
    "charts/ots-tunnel-operator/README.md": {"values": chart_values},
}


def filled(name: str, text: str) -> str:
    """The text of a page with its parts as the code has them now.

    Raises:
        ValueError: the page lacks the comments of a part.
    """
    for part, make in PARTS[name].items():
        begin, end = f"<!-- {part}: begin -->\n", f"<!-- {part}: end -->\n"
        before, found, rest = text.partition(begin)
        _, ended, after = rest.partition(end)
        if not (found and ended):
            raise ValueError(f"{name} lacks {begin.strip()} or {end.strip()}")
        text = before + begin + make() + end + after
    return text


def outdated() -> Mapping[str, str]:
    """Pages whose generated parts differ from the code, with their new text."""
    texts = {name: (ROOT / name).read_text() for name in PARTS}
    return {name: new for name, text in texts.items() if (new := filled(name, text)) != text}


def main() -> int:
    """Write the pages, or with `--check` only compare them."""
    parser = argparse.ArgumentParser(description="Write the generated parts of the documents.")
    parser.add_argument("--check", action="store_true", help="only compare; exit with 1 when a page is out of date")
    check = parser.parse_args().check
    changed = outdated()
    for name, text in changed.items():
        print(f"{name} is out of date: run `make generate`" if check else f"{name} written")
        if not check:
            (ROOT / name).write_text(text)
    return int(bool(check and changed))


if __name__ == "__main__":
    sys.exit(main())
