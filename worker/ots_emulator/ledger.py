"""The ledger: what the emulator does, and how it is known that the service does the same.

Each module of `ots_emulator.api` keeps the entries of its operations in a `LEDGER` beside its handlers. Whoever changes
what a client can tell changes the entry, too; docs/emulator.md has the table of all of them, and a test requires
entries for every operation.

Example: an answer whose text nobody has seen is

    guessed("CommitTransaction", "the text for more than 4 MiB in one transaction", "only the limit is documented")
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Final


class Evidence(Enum):
    """How it is known that the service does it, from the best to none."""

    LIVE = "live-verified"
    TESTED = "vendor-tested"
    DOCUMENTED = "documented"
    GUESSED = "guessed"


@dataclass(frozen=True, slots=True)
class Behaviour:
    """One thing that a client can tell.

    `operations` are names of operations, or `EVERY`; `source` says whose recording, which test, where it is
    documented, or why it is a guess.
    """

    operations: tuple[str, ...]
    what: str
    evidence: Evidence
    source: str


#: In place of operations: whatever is called.
EVERY: Final = "every call"

#: Sources that have many entries.
TERRAFORM: Final = "the Terraform provider's recordings"
ELIXIR: Final = "the fixtures of the Elixir client"
EMR: Final = "the Spark connector of EMR"
JAVA: Final = "the Java SDK's functional tests"
GO: Final = "the Go SDK's functional tests"
PYTHON: Final = "the Python SDK's functional tests"
PRODUCT: Final = "the product's documentation"


def live(operations: str, what: str, by: str) -> Behaviour:
    """Build the entry of something that a recording of the live service shows; `by` says whose."""
    return _entry(operations, what, Evidence.LIVE, by)


def tested(operations: str, what: str, by: str) -> Behaviour:
    """Build the entry of something that a test asserts whose author ran it against the live service."""
    return _entry(operations, what, Evidence.TESTED, by)


def documented(operations: str, what: str, where: str = PRODUCT) -> Behaviour:
    """Build the entry of something that the vendor's documentation or code says."""
    return _entry(operations, what, Evidence.DOCUMENTED, where)


def guessed(operations: str, what: str, why: str) -> Behaviour:
    """Build the entry of something that nobody has seen; `why` it is as it is here."""
    return _entry(operations, what, Evidence.GUESSED, why)


def _entry(operations: str, what: str, evidence: Evidence, source: str) -> Behaviour:
    return Behaviour(tuple(operations.split(", ")), what, evidence, source)
