"""What was found out about mutants, kept so that an interrupted measurement goes on where it was."""

from __future__ import annotations

import hashlib
import json
from argparse import Namespace
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Self

from tests.mutants.planted import ROOT

#: Folders whose files decide what a measurement finds, and the kinds of these files: `.so` is the compiled codec.
MEASURED = ("operator", "worker", "tests")
SUFFIXES = (".py", ".pyx", ".pxi", ".so", ".toml", ".json")


@dataclass(frozen=True, slots=True)
class Finding:
    """Who found a mutant; empty for nobody."""

    name: str
    simulation: str
    tests: str
    seconds: float

    @property
    def is_found(self) -> bool:
        """Whether the simulation or a test has failed."""
        return bool(self.simulation) or self.tests not in ("", "(not run)")

    def row(self) -> str:
        """A line of the table."""
        tests = self.tests or "MISSED"
        return f"{self.name:<34} {self.simulation or 'MISSED':<34} {tests:<10} {self.seconds:5.0f} s"


@dataclass
class Record:
    """Findings about one state of the tree, with the same options; one line of JSON each."""

    path: Path
    known: dict[str, Finding] = field(default_factory=dict)

    @classmethod
    def of_tree(cls, options: Namespace, root: Path = ROOT) -> Self:
        """The record of the tree as it is now."""
        digest = hashlib.sha256(f"{options.seeds} {options.start} {options.without_tests}".encode())
        for path in _sources(root):
            digest.update(str(path.relative_to(root)).encode() + b"\0" + path.read_bytes())
        record = cls(root / "build" / "mutants" / f"{digest.hexdigest()[:16]}.jsonl")
        if record.path.exists():
            lines = [json.loads(line) for line in record.path.read_text().splitlines()]
            record.known = {line["name"]: Finding(**line) for line in lines}
        return record

    def forget(self) -> None:
        """Begin from nothing."""
        self.path.unlink(missing_ok=True)
        self.known.clear()

    def keep(self, finding: Finding) -> None:
        """Add a finding."""
        self.known[finding.name] = finding
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with self.path.open("a") as file:
            file.write(json.dumps(asdict(finding)) + "\n")


def _sources(root: Path) -> Iterator[Path]:
    for folder in MEASURED:
        yield from sorted(path for path in (root / folder).rglob("*") if path.suffix in SUFFIXES)
