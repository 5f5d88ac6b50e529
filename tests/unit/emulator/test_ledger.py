"""Every operation has entries in the ledger, and every entry says where it is from."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from ots_emulator import ledger
from ots_emulator.ledger import EVERY, JAVA, PROGRAMS, SEEN, Behaviour, Evidence, Program, guessed
from ots_emulator.server.application import HANDLERS, LEDGER


@pytest.mark.parametrize("operation", sorted(HANDLERS))
def test_every_operation_has_entries(operation: str) -> None:
    assert [entry.what for entry in LEDGER if operation in entry.operations]


def test_entries_name_operations_that_exist() -> None:
    named = {name for entry in LEDGER for name in entry.operations}

    assert named - set(HANDLERS) == {EVERY}


def test_entries_are_complete_and_different() -> None:
    texts = [(entry.operations, entry.what) for entry in LEDGER]

    assert len(set(texts)) == len(texts)
    assert [entry for entry in LEDGER if not entry.what or not entry.source] == []
    assert {entry.evidence for entry in LEDGER} == set(Evidence)


def test_an_entry_may_have_several_operations() -> None:
    assert guessed("A, B", "x", "y").operations == ("A", "B")


def test_what_was_seen_can_be_looked_up() -> None:
    """Each names a program, its version, and a test or a place in its code; every program has entries."""
    seen = [entry for entry in LEDGER if entry.evidence in SEEN]

    assert [entry.what for entry in seen if not entry.places] == []
    assert {place.program for entry in seen for place in entry.places} == set(PROGRAMS)
    assert [entry.what for entry in LEDGER if entry.evidence not in SEEN and entry.places] == []
    assert ledger.tested("A", "x", JAVA("Some.test", "Other.test")).source == "Java SDK: `Some.test`, `Other.test`"


@pytest.mark.parametrize("evidence", SEEN)
def test_nothing_was_seen_without_a_place(evidence: Evidence) -> None:
    with pytest.raises(ValueError, match="looked up"):
        Behaviour(("A",), "x", evidence, "tests of public programs")


@pytest.mark.parametrize("build", [ledger.live, ledger.tested])
def test_an_entry_without_a_place_is_refused(build: Callable[..., Behaviour]) -> None:
    with pytest.raises(ValueError, match="looked up"):
        build("A", "x")


@pytest.mark.parametrize("where", ["", "its functional tests", "a test", "test", "Some.test, Other.test\n"])
def test_a_place_is_a_test_or_a_file(where: str) -> None:
    with pytest.raises(ValueError, match="a place is"):
        JAVA(where)


@pytest.mark.parametrize("version", ["", "newest", "5", "commit 12ab", "v1.0"])
def test_a_version_is_a_release_or_a_commit(version: str) -> None:
    with pytest.raises(ValueError, match="a version is"):
        Program("a program", version, "owner/name")
