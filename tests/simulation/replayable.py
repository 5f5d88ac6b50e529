"""What the scenarios of all kinds of stories have in common: they are data, and JSON is their file."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from typing import Any, ClassVar, Self


@dataclass(frozen=True, slots=True)
class Replayable:
    """A scenario: everything that a story depends on.

    A kind of scenario says in `happenings` which of its fields holds what happens in the story, in `happening` of
    which class these are, and in `prefix` how its seeds are written.
    """

    happenings: ClassVar[str]
    happening: ClassVar[type]
    prefix: ClassVar[str]

    seed: int

    def __str__(self) -> str:
        quiet = ("seed", self.happenings)
        parts = [f"{name}={value}" for name, value in asdict(self).items() if name not in quiet]
        return f"seed {self.name}: {' '.join(parts)}, {len(getattr(self, self.happenings))} {self.happenings}"

    @property
    def name(self) -> str:
        """How its seed is written: `17`, or `fleet:17`."""
        return f"{self.prefix}{self.seed}"

    def to_json(self) -> dict[str, Any]:
        """As values of JSON."""
        return asdict(self)

    @classmethod
    def from_json(cls, document: dict[str, Any]) -> Self:
        """The reverse of `to_json`."""
        happened = tuple(cls.happening(**entry) for entry in document[cls.happenings])
        return cls(**{**document, cls.happenings: happened})

    def text(self) -> str:
        """As a file's content."""
        return json.dumps(self.to_json(), indent=1)
