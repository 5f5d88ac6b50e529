"""Every row call against a model of dictionaries: the same rows, the same error codes, the same changes in the log."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, precondition, rule, run_state_machine_as_test

from ots_tunnel.errors import ServiceError
from ots_tunnel.model import Action, CellOp, Marker
from ots_tunnel.protocol import table_pb2
from ots_tunnel.protocol.plainbuffer.codec import decode_row, decode_rows, encode_primary_key, encode_row
from ots_tunnel.protocol.plainbuffer.column import Column
from ots_tunnel.protocol.plainbuffer.values import encode_value
from tests.stateful.row_model import OK, Change, Rows, Test, Wanted
from tests.support.emulator.emulator_driver import Driver
from tests.support.emulator.returned import returned_cells

pytestmark = pytest.mark.unmeasured

START_MS = 1_700_000_000_000
INTEGERS = st.integers(-3, 3) | st.sampled_from([2**63 - 1, -(2**63)])
KEYS = st.integers(0, 5)
NAMES = st.sampled_from(["a", "b", "n"])
VALUES = (
    INTEGERS | st.sampled_from(["", "x", "ж"]) | st.booleans() | st.binary(max_size=2) | st.sampled_from([0.5, -1.0])
)
#: Some are beyond the deviation or the time to live, some in the future.
VERSIONS = st.one_of(
    st.none(),
    st.integers(START_MS - 6, START_MS),
    st.sampled_from([0, START_MS - 90_000_000, START_MS - 30_000, START_MS + 20_000, START_MS + 10**9]),
)
PUTS = st.builds(Column, NAMES, VALUES, VERSIONS)
DELETES = st.one_of(
    st.builds(lambda name: Column(name, None, None, CellOp.DELETE_ALL_VERSIONS), NAMES),
    st.builds(
        lambda name, version: Column(name, None, version, CellOp.DELETE_ONE_VERSION),
        NAMES,
        st.integers(START_MS - 6, START_MS) | st.just(START_MS + 20_000),
    ),
)
INCREMENTS = st.builds(lambda name, step: Column(name, step, None, CellOp.INCREMENT), NAMES, INTEGERS)
TESTS = st.recursive(
    st.tuples(
        st.sampled_from(
            ["EQUAL", "NOT_EQUAL", "GREATER_THAN", "GREATER_EQUAL", "LESS_THAN", "LESS_EQUAL", "EXIST", "NOT_EXIST"]
        ),
        st.sampled_from(["a", "b", "n", "k"]),
        VALUES,
        st.booleans(),
        st.booleans(),
    ).map(lambda parts: Test(*parts)),
    lambda tests: st.one_of(
        st.builds(lambda one: Test("NOT", parts=(one,)), tests),
        st.builds(
            lambda kind, parts: Test(kind, parts=tuple(parts)),
            st.sampled_from(["AND", "OR"]),
            st.lists(tests, min_size=2, max_size=3),
        ),
    ),
    max_leaves=3,
)


def incremented_once(columns: list[Column]) -> bool:
    """A column that is incremented occurs once in a change."""
    names = [column.name for column in columns]
    return all(names.count(column.name) == 1 for column in columns if column.op is CellOp.INCREMENT)


UPDATED = st.lists(PUTS | DELETES | INCREMENTS, min_size=1, max_size=5).filter(incremented_once)
EXPECTED = st.one_of(st.none(), st.none(), st.booleans())
CHANGES = st.one_of(
    st.tuples(st.just(Action.PUT), KEYS, st.lists(PUTS, max_size=5).map(tuple), EXPECTED, st.none() | TESTS),
    st.tuples(st.just(Action.UPDATE), KEYS, UPDATED.map(tuple), EXPECTED, st.none() | TESTS),
    st.tuples(st.just(Action.DELETE), KEYS, st.just(()), EXPECTED, st.none() | TESTS),
).map(lambda parts: Change(*parts))
PLAIN = CHANGES.map(lambda change: change._replace(exists=None, test=None))
RANGES = st.one_of(
    st.builds(lambda versions: Wanted(versions=versions), st.integers(1, 4)),
    st.tuples(
        st.frozensets(st.sampled_from(["a", "b", "n", "k", "q"]), max_size=2),
        st.none() | st.integers(1, 3),
        st.tuples(st.integers(START_MS - 6, START_MS), st.integers(START_MS + 1, START_MS + 10**6)),
        st.sampled_from([(None, None), ("a", "b"), ("b", None), (None, "n"), ("aa", "b")]),
        st.none() | TESTS,
    ).map(lambda parts: Wanted(*parts)),
)


def filter_of(test: Test) -> table_pb2.Filter:
    if test.parts:
        composite = table_pb2.CompositeColumnValueFilter(
            combinator=f"LO_{test.comparator}", sub_filters=[filter_of(part) for part in test.parts]
        )
        return table_pb2.Filter(type="FT_COMPOSITE_COLUMN_VALUE", filter=composite.SerializeToString())
    single = table_pb2.SingleColumnValueFilter(
        comparator=f"CT_{test.comparator}",
        column_name=test.column,
        column_value=encode_value(test.value),
        filter_if_missing=not test.if_missing,
        latest_version_only=test.latest_only,
    )
    return table_pb2.Filter(type="FT_SINGLE_COLUMN_VALUE", filter=single.SerializeToString())


def condition_of(change: Change) -> table_pb2.Condition:
    existence = {None: "IGNORE", True: "EXPECT_EXIST", False: "EXPECT_NOT_EXIST"}[change.exists]
    test = None if change.test is None else filter_of(change.test).SerializeToString()
    return table_pb2.Condition(row_existence=existence, column_condition=test)


def row_of(change: Change) -> bytes:
    return encode_row((("k", change.key),), change.columns, delete=change.action is Action.DELETE)


def fields_of(wanted: Wanted) -> dict[str, Any]:
    """The request fields of a read."""
    low, high = wanted.columns
    times = None if wanted.times is None else {"start_time": wanted.times[0], "end_time": wanted.times[1]}
    return {
        "columns_to_get": sorted(wanted.names),
        "max_versions": wanted.versions,
        "time_range": times,
        "start_column": low,
        "end_column": high,
        "filter": None if wanted.test is None else filter_of(wanted.test).SerializeToString(),
    }


def cells(row: Any) -> list[tuple[str, Any, int | None]]:
    return [(column.name, column.value, column.timestamp_ms) for column in row.columns]


def same(found: Any, expected: Any) -> bool:
    """Equal, and of equal types: 1 is neither 1.0 nor true."""
    return repr(found) == repr(expected)


class RowCalls(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.driver = Driver(range_rows=3)
        self.loop = asyncio.new_event_loop()
        self.model = Rows(self.driver.now_ms)
        self._run(self.driver.create_table(max_versions=self.model.versions, deviation=10**9, hours=168))
        self.tunnel = self._run(self.driver.create_tunnel("Stream"))

    def teardown(self) -> None:
        try:
            self.log_has_every_change()
        finally:
            self.loop.close()

    def _run(self, call: Any) -> Any:
        return self.loop.run_until_complete(call)

    def _code(self, name: str, **fields: Any) -> str:
        try:
            self._run(self.driver.call(name, table_name="t", **fields))
        except ServiceError as error:
            return str(error.code)
        return OK

    # Writes

    @rule(change=CHANGES)
    def write(self, change: Change) -> None:
        name = {Action.PUT: "PutRow", Action.UPDATE: "UpdateRow", Action.DELETE: "DeleteRow"}[change.action]
        row = {Action.PUT: "row", Action.UPDATE: "row_change", Action.DELETE: "primary_key"}[change.action]

        code = self._code(name, **{row: row_of(change)}, condition=condition_of(change))

        assert code == self.model.write(change)

    @rule(changes=st.lists(CHANGES | PLAIN, min_size=1, max_size=4) | st.lists(PLAIN, min_size=2, max_size=8))
    def write_batch(self, changes: list[Change]) -> None:
        rows = [
            {"type": change.action.name, "row_change": row_of(change), "condition": condition_of(change)}
            for change in changes
        ]
        answer = self._run(self.driver.call("BatchWriteRow", tables=[{"table_name": "t", "rows": rows}]))

        assert [row.error.code for row in answer.tables[0].rows] == self.model.write_all(changes)

    @rule(key=KEYS, step=INTEGERS)
    def increment_and_look(self, key: int, step: int) -> None:
        change = Change(Action.UPDATE, key, (Column("n", step, None, CellOp.INCREMENT),))
        content = {"return_type": "RT_AFTER_MODIFY", "return_column_names": ["n"]}
        fields = {"row_change": row_of(change), "condition": condition_of(change), "return_content": content}
        code = self.model.write(change)
        if code != OK:
            assert self._code("UpdateRow", **fields) == code
            return

        answer = self._run(self.driver.call("UpdateRow", table_name="t", **fields))

        expected = self.model.read(key, Wanted(names=frozenset("n"), versions=1))
        assert same(returned_cells(answer.row), expected)

    # The table

    @rule(seconds=st.sampled_from([1, 2, 5, 40]))
    def time_passes(self, seconds: int) -> None:
        self.driver.clock.advance(seconds)
        self.model.now_ms = self.driver.now_ms

    @rule(versions=st.integers(1, 4))
    def change_versions(self, versions: int) -> None:
        assert self._code("UpdateTable", table_options={"max_versions": versions}) == OK
        self.model.keep(versions)

    @rule(deviation=st.sampled_from([0, 10, 60, 10**9]))
    def change_deviation(self, deviation: int) -> None:
        assert self._code("UpdateTable", table_options={"deviation_cell_version_in_sec": deviation}) == OK
        self.model.deviation = deviation

    @precondition(lambda self: self.model.ttl != 86_400)
    @rule()
    def limit_life(self) -> None:
        assert self._code("UpdateTable", table_options={"time_to_live": 86_400}) == OK
        self.model.ttl = 86_400

    @precondition(lambda self: self.model.ttl == 86_400 and self.model.now_ms < START_MS + 140 * 3_600_000)
    @rule(hours=st.sampled_from([1, 23, 25]))
    def hours_pass(self, hours: int) -> None:
        self.time_passes(hours * 3600)

    @rule()
    def split(self) -> None:
        partitions = [one for one in self._partitions() if one["open"] and one["rows"] > 1]
        if partitions:
            self.driver.emulator.split("demo", "t", partitions[0]["id"])

    def _partitions(self) -> list[Any]:
        state: Any = self.driver.emulator.state()
        return list(state["instances"][0]["tables"][0]["partitions"])

    # Reads

    @rule(key=KEYS, wanted=RANGES)
    def get(self, key: int, wanted: Wanted) -> None:
        answer = self._run(
            self.driver.call(
                "GetRow", table_name="t", primary_key=encode_primary_key((("k", key),)), **fields_of(wanted)
            )
        )

        found = cells(decode_row(answer.row)) if answer.row else None
        assert same(found, self.model.read(key, wanted))

    @rule(keys=st.lists(KEYS, min_size=1, unique=True), wanted=RANGES)
    def get_several(self, keys: list[int], wanted: Wanted) -> None:
        asked = {"table_name": "t", "primary_key": [encode_primary_key((("k", key),)) for key in keys]}
        answer = self._run(self.driver.call("BatchGetRow", tables=[{**asked, **fields_of(wanted)}]))

        found = [cells(decode_row(row.row)) if row.row else None for row in answer.tables[0].rows]
        assert same(found, [self.model.read(key, wanted) for key in keys])

    @rule(
        wanted=RANGES,
        backward=st.booleans(),
        limit=st.none() | st.integers(1, 4),
        low=st.none() | KEYS,
        high=st.none() | KEYS,
    )
    def get_range(self, wanted: Wanted, backward: bool, limit: int | None, low: int | None, high: int | None) -> None:
        if low is not None and high is not None and low >= high:
            return
        found = self._run(self._range(wanted, backward, limit, low, high))

        # The start belongs to the range, the end does not, in both directions.
        first, last = (-1 if low is None else low), (10 if high is None else high)
        inside = (lambda key: first < key <= last) if backward else (lambda key: first <= key < last)
        keys = sorted(filter(inside, self.model.stored), reverse=backward)
        rows = [(key, self.model.read(key, wanted)) for key in keys]
        assert same(found, [row for row in rows if row[1] is not None])

    async def _range(self, wanted: Wanted, backward: bool, limit: int | None, low: Any, high: Any) -> list[Any]:
        ends = [Marker.INF_MIN if low is None else low, Marker.INF_MAX if high is None else high]
        start, end = (encode_primary_key((("k", key),)) for key in (reversed(ends) if backward else ends))
        found: list[Any] = []
        while start:
            answer = await self.driver.call(
                "GetRange",
                table_name="t",
                direction="BACKWARD" if backward else "FORWARD",
                limit=limit,
                inclusive_start_primary_key=start,
                exclusive_end_primary_key=end,
                **fields_of(wanted),
            )
            rows = decode_rows(answer.rows)
            assert len(rows) <= min(limit or 3, 3)
            found += [(row.primary_key[0][1], cells(row)) for row in rows]
            start = answer.next_start_primary_key
        return found

    def log_has_every_change(self) -> None:
        """Every write once, in order, and no refused one."""
        records = self._run(self._records())

        assert [(row.primary_key[0][1], action) for action, row in records] == self.model.log

    async def _records(self) -> list[Any]:
        records: list[Any] = []
        for channel in await self.driver.channels(self.tunnel, "Stream"):
            records += (await self.driver.drain(self.tunnel, channel))[0]
        return sorted(records, key=lambda record: record[1].sequence)


TestRowCalls = pytest.mark.lasts(28)(RowCalls.TestCase)
TestRowCalls.settings = settings(deadline=None, max_examples=150, stateful_step_count=40, report_multiple_bugs=False)


@pytest.mark.long
@pytest.mark.lasts(400)
def test_row_calls_at_length() -> None:
    run_state_machine_as_test(RowCalls, settings=settings(deadline=None, max_examples=3_000, stateful_step_count=80))
