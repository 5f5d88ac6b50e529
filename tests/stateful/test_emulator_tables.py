"""Random writes and reads, compared with a dictionary of dictionaries."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, precondition, rule

from ots_tunnel.model import Action, CellOp, Marker
from ots_tunnel.protocol import table_pb2
from ots_tunnel.protocol.plainbuffer.codec import decode_rows, encode_primary_key
from ots_tunnel.protocol.plainbuffer.column import Column
from tests.support.emulator.emulator_driver import Driver

pytestmark = pytest.mark.unmeasured

KEYS = st.integers(0, 7)
NAMES = st.sampled_from(["a", "b", "c"])
VALUES = st.one_of(
    st.integers(-(2**63), 2**63 - 1), st.text(max_size=4), st.booleans(), st.binary(max_size=4), st.floats(-1e9, 1e9)
)
VERSIONS = st.one_of(st.none(), st.integers(1_699_999_999_990, 1_699_999_999_999))
PUTS = st.builds(Column, NAMES, VALUES, VERSIONS)
UPDATES = st.one_of(
    PUTS,
    st.builds(lambda name: Column(name, None, None, CellOp.DELETE_ALL_VERSIONS), NAMES),
    st.builds(
        lambda name, version: Column(name, None, version, CellOp.DELETE_ONE_VERSION),
        NAMES,
        st.integers(1_699_999_999_990, 1_699_999_999_999),
    ),
)
Row = dict[str, dict[int, Any]]


class Tables(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.driver = Driver(range_rows=3)
        self.loop = asyncio.new_event_loop()
        self.versions = 3
        self.rows: dict[int, Row] = {}
        self.changes = 0
        self._run(self.driver.create_table(max_versions=3, hours=24))
        self.tunnel = self._run(self.driver.create_tunnel("Stream"))

    def teardown(self) -> None:
        self.loop.close()

    def _run(self, call: Any) -> Any:
        return self.loop.run_until_complete(call)

    def _set(self, row: Row, column: Column) -> None:
        versions = row.setdefault(column.name, {})
        versions[column.timestamp_ms or self.driver.now_ms] = column.value
        if len(versions) > self.versions:
            del versions[min(versions)]

    @rule(key=KEYS, columns=st.lists(PUTS, max_size=6))
    def put(self, key: int, columns: list[Column]) -> None:
        self._run(self.driver.put(key, *columns))

        self.changes += 1
        written: Row = {}
        for column in columns:
            written.setdefault(column.name, {})[column.timestamp_ms or self.driver.now_ms] = column.value
        self.rows[key] = {name: dict(sorted(versions.items())[-self.versions :]) for name, versions in written.items()}

    @rule(key=KEYS, columns=st.lists(UPDATES, min_size=1, max_size=6))
    def update(self, key: int, columns: list[Column]) -> None:
        self._run(self.driver.update(key, *columns))

        self.changes += 1
        if key not in self.rows and all(column.value is None for column in columns):
            return  # deletions alone do not create a row
        row = self.rows.setdefault(key, {})
        for column in columns:
            if column.op is CellOp.DELETE_ALL_VERSIONS:
                row.pop(column.name, None)
            elif column.op is CellOp.DELETE_ONE_VERSION:
                row.get(column.name, {}).pop(column.timestamp_ms or 0, None)
            else:
                self._set(row, column)

    @rule(key=KEYS)
    def delete(self, key: int) -> None:
        self._run(self.driver.delete(key))

        self.changes += 1
        self.rows.pop(key, None)

    @rule(seconds=st.integers(1, 5))
    def time_passes(self, seconds: int) -> None:
        self.driver.clock.advance(seconds)

    @precondition(lambda self: self.versions > 1)
    @rule()
    def keep_fewer_versions(self) -> None:
        self.versions -= 1
        options = table_pb2.TableOptions(max_versions=self.versions)
        self._run(self.driver.call("UpdateTable", table_name="t", table_options=options))
        for row in self.rows.values():
            for name, versions in row.items():
                row[name] = dict(sorted(versions.items())[-self.versions :])

    @precondition(lambda self: len(self.rows) > 1)
    @rule()
    def split(self) -> None:
        if max(self._partition_rows()) > 1:
            self.driver.emulator.split("demo", "t")

    def _partition_rows(self) -> list[int]:
        table = self.driver.emulator.instances["demo"].tables["t"]
        assert table.log is not None
        return [table.rows_of(partition) for partition in table.log.open_partitions]

    def _expected(self, key: int, newest: int) -> list[tuple[str, Any, int]]:
        return [
            (name, value, version)
            for name, versions in sorted(self.rows[key].items())
            for version, value in sorted(versions.items(), reverse=True)[:newest]
        ]

    @rule(newest=st.integers(1, 3), backward=st.booleans())
    def read_range(self, newest: int, backward: bool) -> None:
        found = self._run(self._range(newest, backward))

        keys = sorted(self.rows, reverse=backward)
        assert found == [(key, self._expected(key, newest)) for key in keys]

    async def _range(self, newest: int, backward: bool) -> list[Any]:
        start, end = (Marker.INF_MAX, Marker.INF_MIN) if backward else (Marker.INF_MIN, Marker.INF_MAX)
        following = encode_primary_key((("k", start),))
        found: list[Any] = []
        while following:
            answer = await self.driver.call(
                "GetRange",
                table_name="t",
                direction="BACKWARD" if backward else "FORWARD",
                max_versions=newest,
                inclusive_start_primary_key=following,
                exclusive_end_primary_key=encode_primary_key((("k", end),)),
            )
            following = answer.next_start_primary_key
            found += [
                (row.primary_key[0][1], [(c.name, c.value, c.timestamp_ms) for c in row.columns])
                for row in decode_rows(answer.rows)
            ]
        return found

    @rule(key=KEYS)
    def read_row(self, key: int) -> None:
        row = self._run(self.driver.get(key))

        assert (row is not None) == (key in self.rows)
        if row is not None:
            assert [(c.name, c.value, c.timestamp_ms) for c in row.columns] == self._expected(key, self.versions)

    @rule()
    def stream_has_every_change_in_order(self) -> None:
        records = self._run(self._records())

        assert len(records) == self.changes
        times = [row.sequence.timestamp_us for _, row in records]
        assert times == sorted(set(times))
        existing: set[int] = set()
        for action, row in records:
            key = row.primary_key[0][1]
            if action is Action.DELETE:
                existing.discard(key)
            elif action is Action.PUT or any(column.value is not None for column in row.columns):
                existing.add(key)  # an update that only deletes does not create a row
        assert existing == set(self.rows)

    async def _records(self) -> list[Any]:
        records: list[Any] = []
        for channel in await self.driver.channels(self.tunnel, "Stream"):
            records += (await self.driver.drain(self.tunnel, channel))[0]
        return sorted(records, key=lambda record: record[1].sequence)


TestTables = pytest.mark.lasts(18)(Tables.TestCase)
# Machines differ in speed; the suite has its own time limit.
TestTables.settings = settings(deadline=None, stateful_step_count=40)
