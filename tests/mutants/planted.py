"""The planted defects, as their files list them."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
FOLDER = Path(__file__).parent


class Unfit(ValueError):
    """A mutant does not fit to the tree: its old text is not there exactly once."""


@dataclass(frozen=True, slots=True)
class Mutant:
    """One planted defect.

    Args:
        breaks: what it does to users.
        tests: the tests of its area, beside the simulation.
        area: the file that lists it.
        seed: of its stories one that has found it, as a number: it is told before all others.
        stories: kind of stories that can find it; None means those of its area.
        hidden: why no story can show it; none is told then, and it counts as missed by the simulation.
    """

    name: str
    file: str
    old: str
    new: str
    breaks: str
    tests: tuple[str, ...]
    area: str
    seed: int | None = None
    stories: str | None = None
    hidden: str = ""

    def mutated(self, text: str) -> str:
        """The text of its file with the defect.

        Raises:
            Unfit: the old text is not there exactly once.
        """
        if (times := text.count(self.old)) != 1:
            raise Unfit(
                f"{self.area}: {self.name}: the old text is {times} times in {self.file}, it has to be there once"
            )
        return text.replace(self.old, self.new)


def planted() -> list[Mutant]:
    """All mutants, in the order of their files."""
    found: list[Mutant] = []
    for path in sorted(FOLDER.glob("*.toml")):
        for entry in tomllib.loads(path.read_text())["mutant"]:
            found.append(Mutant(**{**entry, "tests": tuple(entry["tests"])}, area=path.stem))
    return found
