"""The demo's changes stay in the domain of equal tables (docs/architecture.md rule 14); an example outside it."""

from __future__ import annotations

from collections import Counter
from itertools import islice

from hypothesis import given, settings
from hypothesis import strategies as st

from ots_emulator.tables.keys import KeySchema
from ots_emulator.tables.options import TableOptions
from ots_emulator.tables.table import Table
from ots_tunnel.demo.changes import COLUMNS, WEIGHTS, ChangeKind, DemoChange, changes
from ots_tunnel.model import Action, CellOp, KeyColumn, KeyType, PrimaryKey
from ots_tunnel.protocol.plainbuffer.codec import encode_row
from ots_tunnel.protocol.plainbuffer.column import Column
from ots_tunnel.protocol.plainbuffer.spans import scan_row

BASE = 1_700_000_000_000


def flight_keys(count: int) -> list[PrimaryKey]:
    return [(("carrier", "UA"), ("flight", number), ("time_hour", "2013-01-01T10:00:00Z")) for number in range(count)]


@settings(deadline=None, max_examples=40)
@given(seed=st.integers(), keys=st.integers(1, 40), max_versions=st.integers(1, 4))
def test_the_sequence_stays_in_the_domain(seed: int, keys: int, max_versions: int) -> None:
    stream = changes(seed, flight_keys(keys), base_version_ms=BASE, max_versions=max_versions)
    written: dict[tuple[PrimaryKey, str], set[int]] = {}
    deleted_one: set[tuple[PrimaryKey, str]] = set()
    for change in islice(stream, 600):
        row = change.write
        names = set()
        if row.action is not Action.UPDATE:
            names = set(COLUMNS)
        names |= {column.name for column in row.columns if column.op is CellOp.DELETE_ALL_VERSIONS}
        for name in names:
            written[row.primary_key, name] = set()
            deleted_one.discard((row.primary_key, name))
        for column in row.columns:
            place = (row.primary_key, column.name)
            versions = written.setdefault(place, {BASE})
            if column.op is CellOp.PUT:
                assert column.timestamp_ms is not None
                versions.add(column.timestamp_ms)
            elif column.op is CellOp.DELETE_ONE_VERSION:
                assert column.timestamp_ms in versions
                deleted_one.add(place)
            # The rule itself: untouched by delete-one, or at most maxVersions versions written.
            assert place not in deleted_one or len(versions) <= max_versions


def test_every_kind_occurs_about_as_often_as_wanted_and_some_keys_are_hot() -> None:
    sample = list(islice(changes(1, flight_keys(5000), base_version_ms=BASE), 20_000))
    kinds = Counter(change.kind for change in sample)
    per_key = Counter(change.write.primary_key for change in sample)

    assert set(kinds) == set(ChangeKind)
    for kind, weight in WEIGHTS.items():
        assert kinds[kind] > 20_000 * weight / 100 / 2
    assert min(count for _, count in per_key.most_common(8)) > 150
    assert per_key.most_common(9)[8][1] < 100


def test_the_same_seed_gives_the_same_changes() -> None:
    def first(seed: int) -> list[DemoChange]:
        return list(islice(changes(seed, flight_keys(50), base_version_ms=BASE), 500))

    assert first(7) == first(7)
    assert first(7) != first(8)


def test_changes_carry_rising_explicit_versions_and_no_empty_update() -> None:
    last = BASE
    for change in islice(changes(3, flight_keys(50), base_version_ms=BASE), 2000):
        puts = [column.timestamp_ms for column in change.write.columns if column.op is CellOp.PUT]
        assert all(version is not None and version > last for version in puts)
        last = max([last, *(version for version in puts if version is not None)])
        if change.write.action is Action.UPDATE:
            assert change.write.columns
            assert sum(column.op is CellOp.DELETE_ONE_VERSION for column in change.write.columns) <= 2


class Versions:
    """One column of a row of a real table of the emulator that keeps three versions."""

    def __init__(self) -> None:
        schema = KeySchema((KeyColumn("pk", KeyType.STRING),))
        self.table = Table("t", schema, TableOptions(max_versions=3), now_us=0)

    def put(self, version: int) -> None:
        self.update(Column("c", version, version))

    def delete(self, version: int) -> None:
        self.update(Column("c", None, version, CellOp.DELETE_ONE_VERSION))

    def update(self, column: Column) -> None:
        self.table.update((b"a",), scan_row(encode_row((("pk", "a"),), (column,))), 0)

    def kept(self) -> list[int]:
        image = self.table.get((b"a",), 0)
        assert image is not None
        return sorted(cell.timestamp_ms or 0 for cell in scan_row(image, 0).cells)


def test_outside_the_domain_a_replay_may_trim_a_version_of_the_source() -> None:
    # The example of docs/architecture.md rule 14: four versions and a delete of one of them since the column was empty.
    def tail(column: Versions) -> None:
        column.put(2)
        column.put(3)
        column.delete(2)
        column.put(4)

    source = Versions()
    source.put(1)
    tail(source)
    replayed = Versions()
    replayed.put(1)
    tail(replayed)
    tail(replayed)

    assert source.kept() == [1, 3, 4]
    assert replayed.kept() == [3, 4]
