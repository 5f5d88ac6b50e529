"""Requests of a wave are encoded some at a time: the bodies are those of each alone, and none waits in vain."""

from __future__ import annotations

import hashlib

import pytest

from ots_tunnel.errors import CodecError
from ots_tunnel.model import Action
from ots_tunnel.protocol.page import encode_batch_write_in_python
from ots_tunnel.protocol.record import Record
from ots_tunnel.sinks.table import encoding
from ots_tunnel.sinks.table.encoding import AT_ONCE, AT_ONCE_BYTES, encoded
from tests.support.records import numbered_record


def wave(requests: int, rows: int = 3) -> list[list[Record]]:
    return [[numbered_record(f"{request}-{row}", row) for row in range(rows)] for request in range(requests)]


@pytest.mark.parametrize("requests", [0, 1, AT_ONCE, AT_ONCE + 1, 2 * AT_ONCE + 3])
def test_every_request_has_its_own_body(requests: int) -> None:
    records = wave(requests)

    made = list(encoded("orders", records))

    assert [request.records for request in made] == records
    for request in made:
        assert request.body.content == encode_batch_write_in_python("orders", request.records)
        assert request.body.md5 == hashlib.md5(request.body.content).digest()


def portions(monkeypatch: pytest.MonkeyPatch, records: list[list[Record]]) -> list[int]:
    """How many requests were encoded at a time."""
    encode, found = encoding.encode_batch_writes, []

    def counted(table: str, requests: list[list[Record]]) -> object:
        found.append(len(requests))
        return encode(table, requests)

    monkeypatch.setattr(encoding, "encode_batch_writes", counted)
    assert len(list(encoded("orders", records))) == len(records)
    return found


def test_small_requests_are_encoded_together(monkeypatch: pytest.MonkeyPatch) -> None:
    assert portions(monkeypatch, wave(AT_ONCE + 1)) == [AT_ONCE, 1]


def test_large_requests_are_encoded_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """Bodies that wait take memory."""
    rows = 1 + AT_ONCE_BYTES // 2 // numbered_record("k", 0).size

    assert portions(monkeypatch, wave(AT_ONCE, rows)) == [1] * AT_ONCE


def test_requests_that_are_large_together_are_encoded_a_few_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = 3 * AT_ONCE_BYTES // 10 // numbered_record("k", 0).size

    assert portions(monkeypatch, wave(5, rows)) == [3, 2]


def test_requests_before_a_malformed_record_are_given() -> None:
    records = wave(3)
    records[2][1] = Record(Action.PUT, b"no row")

    made = encoded("orders", records)

    assert [next(made).records, next(made).records] == records[:2]
    with pytest.raises(CodecError):
        next(made)
