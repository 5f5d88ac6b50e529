"""Prints what a worker's process has of documents that another one has checked, as JSON.

python -m tests.unit.commands.worker_process.plain_program DOCUMENT...
"""

from __future__ import annotations

import json
import sys
from datetime import datetime
from pathlib import Path, PurePath
from typing import Any

from ots_tunnel.commands.worker_process.checked_document import stream_document, worker_config

#: Attributes of pydantic's models alone.
OF_PYDANTIC = ("model_", "_")


def plain(part: Any) -> Any:
    """Fields and properties of a part, and of all parts in it."""
    match part:
        case None | bool() | int() | float() | str():
            return part
        case bytes():
            return part.hex()
        case PurePath():
            return ["path", str(part)]
        case datetime():
            return ["time", part.isoformat()]
        case tuple():
            return ["tuple", *map(plain, part)]
        case dict():
            return {name: plain(value) for name, value in part.items()}
    kind = type(part)
    names = {name for name, _ in part}
    names |= {
        name
        for each in kind.__mro__
        if each.__module__.startswith("ots_tunnel.config")
        for name, value in vars(each).items()
        if isinstance(value, property)
    }
    return [kind.__name__, {name: plain(getattr(part, name)) for name in sorted(names)}]


def main() -> None:
    found = []
    for path in map(Path, sys.argv[1:]):
        read = stream_document if "stream" in path.name else worker_config
        found.append(plain(read(path)))
    print(json.dumps([found, [name for name in sys.modules if name.startswith("pydantic")]]))


if __name__ == "__main__":
    main()
