"""Every operation has entries in the ledger, and every entry says where it is from."""

from __future__ import annotations

import pytest

from ots_emulator.ledger import EVERY, Evidence, guessed
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
