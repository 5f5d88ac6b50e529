"""The demo's changes stay in the domain of equal tables (design rule 14), and what lies outside of it."""

from __future__ import annotations

from collections import Counter
from itertools import islice

from hypothesis import given
from hypothesis import strategies as st

from ots_tunnel.demo_changes import COLUMNS, WEIGHTS, ChangeKind, DemoChange, changes
from ots_tunnel.model import Action, CellOp, PrimaryKey

BASE = 1_700_000_000_000


def flight_keys(count: int) -> list[PrimaryKey]:
    return [(("carrier", "UA"), ("flight", number), ("time_hour", "2013-01-01T10:00:00Z")) for number in range(count)]


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
