"""The ledger: what the emulator does, and how it is known that the service does the same.

Each module of `ots_emulator.api` keeps the entries of its operations in a `LEDGER` beside its handlers. Whoever changes
what a client can tell changes the entry, too; docs/emulator.md has the table of all of them, and a test requires
entries for every operation.

Example: an answer whose text nobody has seen is

    guessed("CommitTransaction", "the text for more than 4 MiB in one transaction", "only the limit is documented")

Live-verified and vendor-tested entries name what anybody can look up: the program, its version or commit, and the test,
file or method in it. There is no other way to write one:

    tested("UpdateRow", "`Update operation is not allowed in this table`", PHP("CreateTableTest.testAllowUpdateFalse"))
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum
from itertools import chain
from typing import Final


class Evidence(Enum):
    """How it is known that the service does it, from the best to none."""

    LIVE = "live-verified"
    TESTED = "vendor-tested"
    DOCUMENTED = "documented"
    GUESSED = "guessed"


#: What can be found in a program: a class and its method, a suite and its test, or a file and what is in it.
_PLACE: Final = re.compile(r"[\w/-]+(\.\w+)+( \S.*)?")
#: A release, or a commit of a program without releases.
_VERSION: Final = re.compile(r"\d+(\.\d+)+|commit [0-9a-f]{12}")


@dataclass(frozen=True, slots=True)
class Place:
    """Something in a program that anybody can look up."""

    program: Program
    where: str

    def __post_init__(self) -> None:
        if not _PLACE.fullmatch(self.where):
            raise ValueError(f"{self.where!r}: a place is `Class.method`, `suite.test` or `path/file.ext what`")


@dataclass(frozen=True, slots=True)
class Program:
    """A public program that was written for the service; calling it names places in it.

    `repository` is its owner and name on GitHub, `version` a release or `commit` with twelve digits of it.
    """

    name: str
    version: str
    repository: str

    def __post_init__(self) -> None:
        if not _VERSION.fullmatch(self.version):
            raise ValueError(f"{self.name} {self.version!r}: a version is a release, or `commit` and 12 digits of it")

    def __call__(self, *where: str) -> tuple[Place, ...]:
        """Name places in the program."""
        return tuple(Place(self, each) for each in where)


@dataclass(frozen=True, slots=True)
class Behaviour:
    """One thing that a client can tell.

    `operations` are names of operations, or `EVERY`; `source` says where it was seen, where it is documented, or why it
    is a guess; `places` can be looked up.
    """

    operations: tuple[str, ...]
    what: str
    evidence: Evidence
    source: str
    places: tuple[Place, ...] = ()

    def __post_init__(self) -> None:
        if self.evidence in SEEN and not self.places:
            raise ValueError(f"{self.what!r} is {self.evidence.value}, so it needs a place where that can be looked up")


#: In place of operations: whatever is called.
EVERY: Final = "every call"

#: Evidence of a running service.
SEEN: Final = (Evidence.LIVE, Evidence.TESTED)

JAVA: Final = Program("Java SDK", "5.17.6", "aliyun/aliyun-tablestore-java-sdk")
GO: Final = Program("Go SDK", "1.7.17", "aliyun/aliyun-tablestore-go-sdk")
PYTHON: Final = Program("Python SDK", "6.1.0", "aliyun/aliyun-tablestore-python-sdk")
PHP: Final = Program("PHP SDK", "6.0.1", "aliyun/aliyun-tablestore-php-sdk")
DOTNET: Final = Program(".NET SDK", "6.0.2", "aliyun/aliyun-tablestore-csharp-sdk")
EMR: Final = Program("Spark connector of EMR", "2.2.0", "aliyun/aliyun-emapreduce-datasources")
DEW: Final = Program("PHP client of Dew", "1.4.0", "dew-serverless/tablestore-php")
ELIXIR: Final = Program("Elixir client", "0.15.3", "xinz/ex_aliyun_ots")
ECTO: Final = Program("Ecto adapter", "commit 08da30aeb435", "edragonconnect/ecto_tablestore")
RUST: Final = Program("Rust client", "0.1.2", "yuqiang-yuan/aliyun-tablestore-rs")
BROADWAY: Final = Program("Broadway producer", "commit 0194b90011e9", "slientgoat/broadway_ots")
TERRAFORM: Final = Program("Terraform provider", "commit 0612d7569dc6", "aliyun/terraform-provider-alicloud")
PROGRAMS: Final = (JAVA, GO, PYTHON, PHP, DOTNET, EMR, DEW, ELIXIR, ECTO, RUST, BROADWAY, TERRAFORM)

#: Sources of what is documented.
PRODUCT: Final = "the product's documentation"
ERRORS: Final = "the table of errors of the product's documentation"


def live(operations: str, what: str, *places: tuple[Place, ...]) -> Behaviour:
    """Build the entry of something that a recording shows, or that a program relies on which runs with the service."""
    return _seen(operations, what, Evidence.LIVE, places)


def tested(operations: str, what: str, *places: tuple[Place, ...]) -> Behaviour:
    """Build the entry of something that a test asserts whose author ran it against the service."""
    return _seen(operations, what, Evidence.TESTED, places)


def documented(operations: str, what: str, where: str = PRODUCT) -> Behaviour:
    """Build the entry of something that the vendor's documentation or code says."""
    return _entry(operations, what, Evidence.DOCUMENTED, where)


def guessed(operations: str, what: str, why: str) -> Behaviour:
    """Build the entry of something that nobody has seen; `why` it is as it is here."""
    return _entry(operations, what, Evidence.GUESSED, why)


def _entry(operations: str, what: str, evidence: Evidence, source: str) -> Behaviour:
    return Behaviour(tuple(operations.split(", ")), what, evidence, source)


def _seen(operations: str, what: str, evidence: Evidence, named: Iterable[tuple[Place, ...]]) -> Behaviour:
    places = tuple(chain.from_iterable(named))
    programs = dict.fromkeys(place.program for place in places)
    source = "; ".join(
        f"{program.name}: " + ", ".join(f"`{place.where}`" for place in places if place.program is program)
        for program in programs
    )
    return Behaviour(tuple(operations.split(", ")), what, evidence, source, places)
