"""Show where the bytes of our images are.

    python -m tests.bench.size [ARCHIVE ...]

Without archives it builds the images `app` and `slim` of tests/cluster/images.sh, which needs root. Bytes are those of
the files when the image is unpacked.
"""

from __future__ import annotations

import sys
from pathlib import Path

from rich.console import Console
from rich.table import Table

from tests.bench.size.parts import files_of, parts_of
from tests.cluster.local_cluster import ClusterUnavailable, build_images

#: Bytes that an image may have.
GOALS = {"app": 350_000_000, "slim": 200_000_000}


def main(archives: list[str]) -> int:
    """Print a table for each image."""
    try:
        images = {Path(name).stem: Path(name) for name in archives} or _built()
    except ClusterUnavailable as reason:
        print(reason, file=sys.stderr)
        return 2
    for name, archive in images.items():
        parts = parts_of(files_of(archive))
        total = sum(part.files for part in parts.values())
        goal = GOALS.get(name)
        wanted = "" if goal is None else f", at most {goal / 1e6:.0f}: {'yes' if total <= goal else 'NO'}"
        table = Table("part", "MB", "of it byte-code", title=f"{name}: {total / 1e6:.0f} MB{wanted}")
        for part, size in parts.items():
            table.add_row(part, f"{size.files / 1e6:.1f}", f"{size.bytecode / 1e6:.1f}")
        Console(width=100).print(table)
    return 0


def _built() -> dict[str, Path]:
    lines = build_images(*GOALS)
    return {name: Path(lines[f"{name.upper()}_ARCHIVE"]) for name in GOALS}


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
