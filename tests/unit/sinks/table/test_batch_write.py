"""One batch write: outcomes per row, retries, halving, final refusals."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ots_tunnel.client.table_calls import RowOutcome
from ots_tunnel.errors import CodecError, ConnectError, ConnectionLost, OwnershipLost, ReadTimeout, TunnelError
from ots_tunnel.model import Action
from ots_tunnel.protocol.backoff import Backoff
from ots_tunnel.protocol.plainbuffer.codec import encode_row
from ots_tunnel.protocol.record import Record
from ots_tunnel.protocol.service_codes import service_error
from ots_tunnel.sinks.table.batch_write import MAX_REFUSALS, BatchWrite, Pause, Send, refusal_error
from ots_tunnel.sinks.table.row_change import Change, unaltered_change

BACKOFF = Backoff(0.1, 2.0, 1.0, 0.0)
STORED = RowOutcome(None)


def change(number: int) -> Change:
    return unaltered_change(Record(Action.PUT, encode_row((("pk", number),))))


def changes(count: int) -> list[Change]:
    return [change(number) for number in range(count)]


def test_stored_rows_end_the_write() -> None:
    rows = changes(3)
    batch = BatchWrite(rows, BACKOFF)

    assert batch.step(0.5) == Send(tuple(rows))
    assert batch.answered([STORED] * 3) == tuple(rows)
    assert batch.step(0.5) is None
    assert batch.refusals == []


def test_only_failed_rows_are_sent_again_after_a_pause() -> None:
    rows = changes(3)
    batch = BatchWrite(rows, BACKOFF)
    batch.step(0.5)

    assert batch.answered([STORED, RowOutcome("OTSServerBusy"), STORED]) == (rows[0], rows[2])
    assert batch.step(0.5) == Pause(0.1, 1, "OTSServerBusy")
    assert batch.step(0.5) == Send((rows[1],))
    assert batch.answered([STORED]) == (rows[1],)
    assert batch.step(0.5) is None


def test_pauses_grow_to_the_cap_until_something_is_stored() -> None:
    batch = BatchWrite(changes(2), BACKOFF)
    pauses = []
    for _ in range(6):
        batch.step(0.5)
        batch.failed(service_error("OTSServerUnavailable", "", http_status=503))
        pause = batch.step(0.5)
        assert isinstance(pause, Pause)
        pauses.append(pause.seconds)
    assert pauses == [0.1, 0.2, 0.4, 0.8, 1.0, 1.0]

    batch.step(0.5)
    batch.answered([STORED, RowOutcome("OTSTimeout")])
    assert batch.step(0.5) == Pause(0.1, 1, "OTSTimeout", in_doubt=True)


@pytest.mark.parametrize(
    ("error", "in_doubt"),
    [
        (ConnectionLost("gone"), True),
        (ReadTimeout("late"), True),
        (CodecError("garbage"), True),
        (service_error("OTSServerUnavailable", "", http_status=502), True),
        (ConnectError("connection refused"), False),
        (service_error("OTSServerBusy", ""), False),
        (service_error("OTSClientError", "HTTP 408: a page of a proxy", http_status=408), True),
        (service_error("OTSClientError", "HTTP 425: a page of a proxy", http_status=425), False),
        (service_error("OTSClientError", "HTTP 429: a page of a proxy", http_status=429), False),
    ],
)
def test_a_lost_or_garbled_answer_sends_the_same_again(error: TunnelError, in_doubt: bool) -> None:
    rows = tuple(changes(2))
    batch = BatchWrite(rows, BACKOFF)
    assert batch.step(0.0) == Send(rows)
    batch.failed(error)
    pause = batch.step(0.0)
    assert isinstance(pause, Pause)
    assert pause.in_doubt is in_doubt
    assert batch.step(0.0) == Send(rows)


def test_a_lost_channel_is_raised() -> None:
    batch = BatchWrite(changes(1), BACKOFF)
    batch.step(0.0)
    with pytest.raises(OwnershipLost):
        batch.failed(OwnershipLost("late"))


@pytest.mark.parametrize(
    "error",
    [
        service_error("OTSAuthFailed", "no", http_status=403),
        service_error("OTSClientError", "HTTP 404: a page of a proxy", http_status=404),
    ],
)
def test_a_final_code_of_the_call_refuses_all(error: TunnelError) -> None:
    batch = BatchWrite(changes(3), BACKOFF)
    batch.step(0.0)
    batch.failed(error)

    assert batch.step(0.0) is None
    assert len(batch.refusals) == 3


def test_an_answer_of_another_size_is_an_error() -> None:
    batch = BatchWrite(changes(3), BACKOFF)
    batch.step(0.0)
    with pytest.raises(CodecError, match="2 rows to a request of 3"):
        batch.answered([STORED] * 2)


@settings(deadline=None)
@given(bad=st.sets(st.integers(0, 199), max_size=9), count=st.integers(1, 200))
def test_halving_finds_exactly_the_refused_rows(bad: set[int], count: int) -> None:
    rows = changes(count)
    refused = {rows[number].key for number in bad if number < count}

    def server(send: Send) -> list[RowOutcome]:
        if any(row.key in refused for row in send.changes):
            raise service_error("OTSParameterInvalid", "Invalid timestamp. Cell:x.", http_status=400)
        return [STORED] * len(send.changes)

    stored, batch = drive(rows, server)

    assert {row.key for row in stored} == {row.key for row in rows} - refused
    assert {refusal.change.key for refusal in batch.refusals} == refused


def test_looking_for_refused_rows_ends_at_ten() -> None:
    def server(send: Send) -> list[RowOutcome]:
        raise service_error("OTSRequestBodyTooLarge", "too large", http_status=413)

    stored, batch = drive(changes(200), server)

    assert stored == []
    assert len(batch.refusals) == MAX_REFUSALS


def test_the_error_names_short_keys_and_never_in_its_text() -> None:
    bodies = [encode_row((("pk", "x" * 500), ("n", number))) for number in range(12)]
    rows = [unaltered_change(Record(Action.PUT, body)) for body in bodies]
    batch = BatchWrite(rows, BACKOFF)
    batch.step(0.0)
    batch.answered([RowOutcome("OTSInvalidPK", "no such key")] * 12)

    error = refusal_error(batch.refusals)

    assert error.code == "OTSInvalidPK"
    assert len(error.keys) == 10
    assert all(len(key) <= 120 for key in error.keys)
    assert "xxx" not in str(error)


def drive(rows: list[Change], server: Callable[[Send], list[RowOutcome]]) -> tuple[list[Change], BatchWrite]:
    batch = BatchWrite(rows, BACKOFF)
    stored: list[Change] = []
    while (step := batch.step(0.0)) is not None:
        assert isinstance(step, Send)
        try:
            stored += batch.answered(server(step))
        except TunnelError as error:
            batch.failed(error)
    return stored, batch
