"""Columns that a table gets, batches that it may get, and when it is compacted."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ots_tunnel.errors import ConfigError
from ots_tunnel.spark.lake.growth import TYPES, check_growth, new_columns
from ots_tunnel.spark.lake.merging import merge_statement
from ots_tunnel.spark.lake.replays import check_batch, last_batch, note_of
from ots_tunnel.spark.lake.tables import check_session, place_of, quoted, text
from ots_tunnel.spark.lake.upkeep import Upkeep

_NAMES = st.text(alphabet="aAbB Ä\n`", max_size=3)


def test_an_attribute_gets_a_column_of_the_type_of_its_values() -> None:
    seen = {"note": {"string"}, "size": {"integer", "double"}, "mixed": {"integer", "string"}, "price": {"double"}}

    assert new_columns(["id", "price"], seen) == (("note", "string"), ("size", "double"))


def test_names_that_differ_in_case_alone_are_one_column() -> None:
    assert new_columns(["Price"], {"price": {"double"}, "a": {"integer"}, "A": {"string"}}) == (("A", "string"),)


@given(st.lists(_NAMES), st.dictionaries(_NAMES, st.sets(st.sampled_from(sorted(TYPES)), min_size=1)))
def test_added_columns_are_new_and_distinct_to_spark_and_come_once(
    present: list[str], seen: dict[str, set[str]]
) -> None:
    added = new_columns(present, seen)

    names = [name.lower() for name, _ in added]
    assert len(set(names)) == len(names)
    assert not set(names) & {name.lower() for name in present}
    assert {name for name, _ in added} <= seen.keys()
    assert new_columns([*present, *(name for name, _ in added)], seen) == ()


def test_another_growth_is_refused() -> None:
    with pytest.raises(ConfigError, match="growth: found 'merge', allowed are add, map, refuse"):
        check_growth("merge")


def test_the_last_batch_of_a_query_is_found_among_other_commits() -> None:
    notes = [None, "compacted by hand", "[1]", note_of("other", 9), note_of("own", 4), note_of("own", 3), '{"a": 1}']

    assert last_batch(notes, "own") == 4
    assert last_batch(notes, "new") is None


@pytest.mark.parametrize("last", [None, 6, 7])
def test_a_new_batch_and_the_last_one_again_are_written(last: int | None) -> None:
    check_batch(last, 7, "/lake")


def test_a_folder_that_is_older_than_the_table_is_refused() -> None:
    with pytest.raises(ConfigError, match="found batch 7, but table '/lake' has batch 8 of the same query"):
        check_batch(8, 7, "/lake")


def test_upkeep_is_due_after_its_intervals() -> None:
    now = 100.0
    upkeep = Upkeep(compact_seconds=10, vacuum_seconds=25, clock=lambda: now)

    assert upkeep.due() == ()
    now = 110.0
    assert upkeep.due() == ("OPTIMIZE",)
    assert upkeep.due() == ()
    now = 125.0
    assert upkeep.due() == ("OPTIMIZE", "VACUUM")
    assert Upkeep(compact_seconds=0, vacuum_seconds=0, clock=lambda: now).due() == ()


def test_a_negative_interval_is_refused() -> None:
    with pytest.raises(ConfigError, match="vacuum_seconds: found -1, allowed is 0 and more"):
        Upkeep(vacuum_seconds=-1)


def test_names_and_texts_cannot_leave_their_quotes() -> None:
    assert quoted("a`b") == "`a``b`"
    assert text("it's \\") == "'it\\'s \\\\'"
    assert place_of("/lake/x`y") == "delta.`/lake/x``y`"


def test_a_merge_names_the_columns_of_its_source_by_their_places() -> None:
    assert merge_statement("/lake", "v", ["id", "odd `name`"], ["id"]) == (
        "MERGE INTO delta.`/lake` t USING v s ON t.`id` = s.c0 "
        "WHEN MATCHED AND s.gone THEN DELETE "
        "WHEN MATCHED THEN UPDATE SET t.`odd ``name``` = s.c1 "
        "WHEN NOT MATCHED AND NOT s.gone THEN INSERT (`id`, `odd ``name```) VALUES (s.c0, s.c1)"
    )


def test_a_session_without_delta_is_told_what_to_set() -> None:
    plain = SimpleNamespace(conf=SimpleNamespace(get=lambda _, default: default))

    with pytest.raises(ConfigError, match=r"allowed is one with Delta's jars, spark\.sql\.extensions=io\.delta\.sql"):
        check_session(plain)
