"""Tasks of a write and its end, without Spark."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import pytest

from ots_tunnel.client.table_calls import RowChange, RowOutcome
from ots_tunnel.errors import Explained, SinkError
from ots_tunnel.model import Action
from ots_tunnel.protocol.plainbuffer.codec import decode_row
from ots_tunnel.protocol.service_codes import service_error
from ots_tunnel.spark.columns import COLUMN_TYPES, build_batch
from ots_tunnel.spark.place import Place
from ots_tunnel.spark.writer import writers
from ots_tunnel.spark.writer.layout import Layout
from ots_tunnel.spark.writer.options import WriteOptions
from ots_tunnel.spark.writer.writers import PATIENCE_SECONDS, Patience, TablestoreWriter, Written

PLACE = {"endpoint": "http://a.example", "instance": "shop", "table": "t"}


class Table:
    """Takes writes like SyncTableClient; refuses the rows with these keys."""

    def __init__(self, *refused: int, failure: Exception | None = None) -> None:
        self.written: list[RowChange] = []
        self.tries = 0
        self._refused = refused
        self._failure = failure

    def batch_write(self, table: str, rows: Sequence[RowChange], **_: Any) -> list[RowOutcome]:
        self.tries += 1
        if self._failure is not None:
            raise self._failure
        outcomes = []
        for change in rows:
            ((_name, key),) = decode_row(change.body).primary_key
            is_refused = key in self._refused
            outcomes.append(RowOutcome("OTSParameterInvalid", "too long") if is_refused else RowOutcome(None))
            if not is_refused:
                self.written.append(change)
        return outcomes

    def close(self) -> None:
        pass


def written(table: Table, monkeypatch: pytest.MonkeyPatch, keys: list[int | None], **options: str) -> Written:
    monkeypatch.setattr(Place, "client", lambda self: table)
    batches = [
        build_batch([("k", COLUMN_TYPES["bigint"], part), ("c", COLUMN_TYPES["string"], ["x"] * len(part))])
        for part in (keys[:3], keys[3:])
    ]
    return TablestoreWriter(WriteOptions.parse({**PLACE, **options}), Layout(("k",), ("c",))).write(iter(batches))


def end(*messages: Written | None) -> None:
    TablestoreWriter(WriteOptions.parse(PLACE), Layout(("k",), ("c",))).commit(list(messages))


def test_every_row_is_written(monkeypatch: pytest.MonkeyPatch) -> None:
    table = Table()

    assert written(table, monkeypatch, [*range(7)]) == Written(7, 0, (), "")
    assert [decode_row(change.body).primary_key[0][1] for change in table.written] == [*range(7)]
    assert {change.action for change in table.written} == {Action.PUT}


def test_a_refused_row_is_a_result_and_fails_the_write_at_its_end(monkeypatch: pytest.MonkeyPatch) -> None:
    found = written(Table(4), monkeypatch, [*range(7)])

    assert found.error == "the destination refuses k=4: OTSParameterInvalid: too long"
    with pytest.raises(Explained, match=r"^table 't': the destination refuses k=4: OTSParameterInvalid: too long$"):
        end(found, Written(5, 0, (), ""), None)
    with pytest.raises(Explained, match=r"too long \(2 tasks failed\)$"):
        end(found, found)


def test_a_row_without_a_key_fails_the_write_at_its_end(monkeypatch: pytest.MonkeyPatch) -> None:
    found = written(Table(), monkeypatch, [1, None, 3])

    assert found.error.startswith("NullKey: column 'k': found NULL")


def test_refused_rows_are_left_out_and_counted(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    table = Table(2, 4)

    found = written(table, monkeypatch, [0, 1, 2, None, 4, 5], onRefused="skip")

    assert (found.changes, found.refused, found.error) == (3, 3, "")
    assert len(table.written) == 3
    assert any("k=4: too long" in example for example in found.examples)
    end(found, Written(5, 1, ("more",), ""))
    [line] = caplog.messages
    assert line.startswith("table 't': 4 rows are refused and left out, such as ")


def test_a_write_without_refusals_says_nothing(caplog: pytest.LogCaptureFixture) -> None:
    end(Written(5, 0, (), ""), None)

    assert caplog.messages == []


@pytest.mark.parametrize("policy", ["fail", "skip"])
@pytest.mark.parametrize("code", ["OTSObjectNotExist", "OTSNoPermissionAccess"])
def test_a_table_that_takes_no_row_fails_once_whatever_the_policy(
    monkeypatch: pytest.MonkeyPatch, policy: str, code: str
) -> None:
    table = Table(failure=service_error(code, "no", "", 403))

    found = written(table, monkeypatch, [*range(7)], onRefused=policy)

    assert code in found.error
    assert (table.tries, found.changes) == (1, 0)


def test_a_task_gives_up_after_long_without_a_stored_row() -> None:
    now, rows = 1000.0, 0
    guard = Patience(lambda: rows, lambda: now)
    guard.check()
    now += PATIENCE_SECONDS - 1
    guard.check()
    rows, now = 5, now + PATIENCE_SECONDS
    guard.check()
    now += PATIENCE_SECONDS

    with pytest.raises(SinkError, match="no row was stored within 600 s"):
        guard.check()


class Slow(Table):
    """Asks its guard, as SyncTableClient does."""

    def batch_write(self, table: str, rows: Sequence[RowChange], **arguments: Any) -> list[RowOutcome]:
        arguments["before_send"]()
        return super().batch_write(table, rows, **arguments)


def test_a_frame_that_comes_slowly_is_no_reason_to_give_up_after_refused_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    now, table = 1000.0, Slow(*range(200))

    def batches() -> Iterator[Any]:
        nonlocal now
        for start in (0, 200):
            yield build_batch([("k", COLUMN_TYPES["bigint"], [*range(start, start + 200)])])
            now += PATIENCE_SECONDS + 1

    monkeypatch.setattr(Place, "client", lambda self: table)
    monkeypatch.setattr(writers, "Patience", lambda settled: Patience(settled, lambda: now))
    options = WriteOptions.parse({**PLACE, "onRefused": "skip"})

    found = TablestoreWriter(options, Layout(("k",), ())).write(batches())

    assert (found.changes, found.refused) == (200, 200)


def test_a_row_of_several_changes_is_left_out_once(monkeypatch: pytest.MonkeyPatch) -> None:
    table, cells = Table(1), [f"c{number:04}" for number in range(2_500)]
    monkeypatch.setattr(Place, "client", lambda self: table)
    columns: list[Any] = [(name, COLUMN_TYPES["bigint"], [5] * 3) for name in cells]
    batch = build_batch([("k", COLUMN_TYPES["bigint"], [1, 2, 1]), *columns])
    options = WriteOptions.parse({**PLACE, "onRefused": "skip"})

    found = TablestoreWriter(options, Layout(("k",), tuple(cells))).write(iter([batch]))

    assert table.tries > 3
    assert (found.refused, len(found.examples)) == (2, 2)


def test_an_error_that_passes_is_for_spark_to_try_again(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(SinkError, match="no row was stored"):
        written(Table(failure=SinkError("no row was stored within 600 s")), monkeypatch, [1])
