"""The chart's values as values.yaml describes them: path, default and the comment above.

A comment above a map describes the map; a map in braces, on one line, is one value. So a value that is described only
by its map has the map's text.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import yaml

from tests.docs.pages import ROOT
from tests.docs.tables import table

VALUES = ROOT / "charts" / "ots-tunnel-operator" / "values.yaml"
_KEY = re.compile(r"^( *)([A-Za-z]+):(?: (.+))?$")


@dataclass(frozen=True)
class Value:
    """One value of the chart, or a map that is described as a whole."""

    path: str
    default: Any
    text: str


def described() -> list[Value]:
    """Every value in the order of the file."""
    return list(_values(VALUES.read_text()))


def _values(text: str) -> Iterator[Value]:
    parents: list[tuple[int, str, str]] = []
    comment: list[str] = []
    for line in text.splitlines():
        if line.strip().startswith("#"):
            comment.append(line.strip().removeprefix("#").strip())
            continue
        found = _KEY.match(line)
        if found is None:
            comment = []
            continue
        depth, name, rest = len(found[1]), found[2], found[3]
        parents = [parent for parent in parents if parent[0] < depth]
        inherited = parents[-1][2] if parents else ""
        said = " ".join(comment) or inherited
        comment = []
        path = ".".join([*(parent[1] for parent in parents), name])
        if rest is None:
            parents.append((depth, name, said))
            continue
        yield Value(path, yaml.safe_load(rest), said)


def chart_values() -> str:
    """The values as a table."""
    return table(
        ("value", "default", "meaning"), ((f"`{v.path}`", f"`{_shown(v.default)}`", v.text) for v in described())
    )


def _shown(default: Any) -> str:
    return default if isinstance(default, str) and default else json.dumps(default)
