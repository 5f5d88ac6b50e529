"""What the committed files of a query say.

Spark names the files of its committed batches in the log `_spark_metadata`: batch N adds the file N, and every tenth
one, `N.compact`, repeats all before. Files that it does not name belong to batches that were interrupted and repeated,
and do not count.
"""

from __future__ import annotations

import gzip
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlparse

Change = dict[str, Any]
_BATCH = re.compile(r"([0-9]+)(\.compact)?")


def committed_changes(folder: Path) -> list[Change]:
    """Return the lines of all committed files of a folder, batch by batch."""
    lines: list[Change] = []
    for path in _committed(folder):
        with gzip.open(path, "rt") as file:
            lines.extend(map(json.loads, file))
    return lines


def _committed(folder: Path) -> Iterator[Path]:
    log = folder / "_spark_metadata"
    names = [found for path in log.glob("*") if (found := _BATCH.fullmatch(path.name))]
    compact = max((int(found[1]) for found in names if found[2]), default=-1)
    # the compacted file holds what was before it, and its own batch
    batches = [(int(found[1]), found[0]) for found in names if int(found[1]) > compact or found[2]]
    for _, name in sorted(one for one in batches if one[0] >= compact):
        for line in log.joinpath(name).read_text().splitlines()[1:]:  # the first one is the log's version
            yield folder / Path(unquote(urlparse(json.loads(line)["path"]).path)).name
