"""Columns that a table gets, batches that it may get, and when it is compacted."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyspark.errors import PySparkAttributeError

from ots_tunnel.errors import ConfigError, QueryRefused
from ots_tunnel.model import KeyType
from ots_tunnel.query.spelling import is_of_delta, may_be_of_delta
from ots_tunnel.spark.lake import ChangeLog, Mirror
from ots_tunnel.spark.lake.checkpoints import id_of
from ots_tunnel.spark.lake.growth import TYPES, check_growth, new_columns
from ots_tunnel.spark.lake.merging import merge_statement
from ots_tunnel.spark.lake.names import check_names, check_taken, check_types, lacking
from ots_tunnel.spark.lake.projection import attribute_columns
from ots_tunnel.spark.lake.replays import check_batch, check_logged
from ots_tunnel.spark.lake.tables.delta import DeltaTable
from ots_tunnel.spark.lake.tables.statements import quoted, text
from ots_tunnel.spark.lake.upkeep import Upkeep

_NAMES = st.text(alphabet="aAbB Ä\n`", max_size=3)


def test_an_attribute_gets_a_column_of_the_type_of_its_values() -> None:
    seen = {"note": {"string"}, "size": {"integer", "double"}, "mixed": {"integer", "string"}, "price": {"double"}}

    assert new_columns(["id", "price"], seen, is_of_delta) == (("note", "string"), ("size", "double"))


def test_names_that_differ_in_case_alone_are_one_column() -> None:
    assert new_columns(["Price"], {"price": {"double"}, "a": {"integer"}, "A": {"string"}}, is_of_delta) == (
        ("A", "string"),
    )


# the two i of Turkish, the long s, the final sigma, micro and mu: one to Java, and not to Python's `lower`
@pytest.mark.parametrize(
    ("present", "name"), [("\u0131", "i"), ("\u0130", "i"), ("\u017f", "S"), ("\u03c2", "\u03c3"), ("\u00b5", "\u039c")]
)
def test_letters_that_are_one_to_spark_make_one_column(present: str, name: str) -> None:
    assert new_columns([f"n{present}"], {f"N{name}": {"integer"}}, is_of_delta) == ()
    assert new_columns([f"N{name}"], {f"n{present}": {"integer"}}, is_of_delta) == ()


def test_names_that_delta_has_while_it_merges_get_no_column() -> None:
    merging = ("_source_row_present_", "_Target_Row_Index_", "_source_row_index", "_change_type", "_commit_version")
    marking = ("_metadata", "_tmp_metadata_row_index", "__delta_internal_is_row_deleted", "deletionvectorid")
    own = (*merging, *marking, "dvFilePath")

    found = new_columns((), {name: {"integer"} for name in (*own, "_id", "_", "row_")}, may_be_of_delta)

    assert found == (("_", "bigint"), ("_id", "bigint"), ("row_", "bigint"))


def test_letters_that_spark_tells_apart_make_two_columns() -> None:
    assert new_columns(["ss", "k"], {"ß": {"integer"}, "K ": {"integer"}}, is_of_delta) == (
        ("K ", "bigint"),
        ("ß", "bigint"),
    )


@pytest.mark.parametrize(
    ("key", "columns", "named"),
    [
        (["_Others"], [], "option 'table': found key column '_Others', which is one column with '_others'"),
        (["id", "ID"], [], "option 'table': found key column 'ID', which is one column with 'id'"),
        (["id"], ["Id"], "columns: found 'Id', which is one column with 'id'"),
        (["id"], ["a", "A"], "columns: found 'A', which is one column with 'a'"),
    ],
)
def test_names_that_are_one_column_are_refused(key: list[str], columns: list[str], named: str) -> None:
    with pytest.raises(ConfigError, match=named):
        check_names(key, ("_others", "_versions"), columns)


@pytest.mark.parametrize(
    ("key", "columns", "named"),
    [
        (["id", "_metadata"], [], "option 'table': found key column '_metadata', a name that Delta needs itself"),
        (["id"], ["DVFilePath"], "columns: found 'DVFilePath', a name that Delta needs itself"),
    ],
)
def test_names_that_the_format_needs_are_refused(key: list[str], columns: list[str], named: str) -> None:
    with pytest.raises(QueryRefused, match=named):
        check_taken("Delta", is_of_delta, key, columns)


def test_names_that_only_look_like_the_formats_are_those_of_keys_and_columns() -> None:
    key, columns = ["_id_", "_tenant_", "_change_day", "_commit_version"], ["_source_row_index", "_tmp_metadata_x"]
    check_taken("Delta", is_of_delta, key, columns)

    assert all(map(may_be_of_delta, (*key, *columns)))


@pytest.mark.parametrize("exists", [False, True])
def test_no_start_makes_a_column_of_a_name_that_the_format_needs(exists: bool) -> None:
    made: list[Any] = []
    table = SimpleNamespace(
        exists=exists,
        title="Delta",
        is_taken=is_of_delta,
        create=lambda *given, **__: exists or made.append(given),
        columns=lambda: (("id", "bigint"), ("_others", "map<string,string>"), ("_versions", "map<string,bigint>")),
        add_columns=made.append,
    )
    key = SimpleNamespace(name="id", type=KeyType.INTEGER)
    found = SimpleNamespace(table=SimpleNamespace(primary_key=(key,)), tunnel_id="t")
    source = {"endpoint": "http://127.0.0.1:1", "instance": "demo", "table": "flights", "tunnel": "lake"}
    mirror = Mirror(None, source, "/lake/flights", columns="_metadata STRING")

    with pytest.raises(QueryRefused, match="columns: found '_metadata', a name that Delta needs itself"):
        mirror._create(table, found)  # type: ignore[arg-type]  # noqa: SLF001 - no table of a test has such a past

    assert made == []


def test_a_table_gets_the_wanted_columns_that_it_lacks() -> None:
    present = (("id", "string"), ("Price", "double"))

    assert lacking("/lake", present, (("Price", "double"), ("size", "bigint"))) == (("size", "bigint"),)
    for name, kind in (("Price", "bigint"), ("price", "double")):
        with pytest.raises(ConfigError, match=f"found {name} {kind}, but table '/lake' has Price double"):
            lacking("/lake", present, ((name, kind),))


def test_columns_of_other_types_have_no_attribute() -> None:
    columns = (("id", "bigint"), ("loaded", "date"), ("size", "int"), ("note", "string"))

    assert attribute_columns(columns) == [("id", "bigint"), ("note", "string")]


def test_a_mirror_with_a_column_of_another_type_is_refused() -> None:
    own = ("_others", "map<string,string>")
    check_types("/lake", (("id", "bigint"), own), ("_others", "_versions"))

    with pytest.raises(QueryRefused, match="path '/lake': found column loaded date, whose type no attribute has"):
        check_types("/lake", (("id", "bigint"), ("loaded", "date"), own), ("_others", "_versions"))


@given(st.lists(_NAMES), st.dictionaries(_NAMES, st.sets(st.sampled_from(sorted(TYPES)), min_size=1)))
def test_added_columns_are_new_and_distinct_to_spark_and_come_once(
    present: list[str], seen: dict[str, set[str]]
) -> None:
    added = new_columns(present, seen, is_of_delta)

    names = [name.lower() for name, _ in added]
    assert len(set(names)) == len(names)
    assert not set(names) & {name.lower() for name in present}
    assert {name for name, _ in added} <= seen.keys()
    assert new_columns([*present, *(name for name, _ in added)], seen, is_of_delta) == ()


def test_another_growth_is_refused() -> None:
    with pytest.raises(ConfigError, match="growth: found 'merge', allowed are add, map, refuse"):
        check_growth("merge")


@pytest.mark.parametrize(("last", "batch"), [(None, 0), (0, 0), (0, 1), (6, 7), (7, 7)])
def test_a_new_batch_and_the_last_one_again_are_written(last: int | None, batch: int) -> None:
    check_batch(last, batch, "/lake")


def test_a_folder_that_is_older_than_the_table_is_refused() -> None:
    with pytest.raises(ConfigError, match="found batch 7, but table '/lake' has batch 8 of the same query"):
        check_batch(8, 7, "/lake")


@pytest.mark.parametrize(
    ("text", "found"), [('{"id":"5f0c"}', "5f0c"), ("", None), ("{}", None), ('{"id":', None), ("[]", None)]
)
def test_a_damaged_folder_is_left_to_spark(text: str, found: str | None) -> None:
    assert id_of(text) == found


@pytest.mark.parametrize(("last", "logged"), [(None, -1), (None, 3), (7, 7), (6, 7), (2, 7)])
def test_a_folder_that_has_logged_what_the_table_has_may_start(last: int | None, logged: int) -> None:
    check_logged(last, logged, "/lake")


@pytest.mark.parametrize(("logged", "found"), [(7, "batches up to 7"), (-1, "no batch")])
def test_a_folder_that_has_logged_less_than_the_table_has_is_refused(logged: int, found: str) -> None:
    with pytest.raises(QueryRefused, match=f"found {found}, but table '/lake' has batch 8 of the same query"):
        check_logged(8, logged, "/lake")


@pytest.mark.parametrize(
    ("last", "told"), [(None, "has no batch of the same query"), (5, "has batches of the same query up to 5")]
)
def test_a_table_that_is_older_than_the_folder_is_refused(last: int | None, told: str) -> None:
    with pytest.raises(
        ConfigError, match=f"found batch 7, but table '/lake' {told}: the table is older than the folder"
    ):
        check_batch(last, 7, "/lake")


def test_upkeep_is_due_after_its_intervals() -> None:
    now = 100.0
    upkeep = Upkeep(compact_seconds=10, vacuum_seconds=25, clock=lambda: now)

    assert upkeep.due() == ()
    now = 110.0
    assert upkeep.due() == ("compact",)
    assert upkeep.due() == ()
    now = 125.0
    assert upkeep.due() == ("compact", "clean")
    assert Upkeep(compact_seconds=0, vacuum_seconds=0, clock=lambda: now).due() == ()


def test_a_negative_interval_is_refused() -> None:
    with pytest.raises(ConfigError, match="vacuum_seconds: found -1, allowed is 0 and more"):
        Upkeep(vacuum_seconds=-1)


def test_names_and_texts_cannot_leave_their_quotes() -> None:
    assert quoted("a`b") == "`a``b`"
    assert text("it's \\") == "'it\\'s \\\\'"
    assert DeltaTable(None, "/lake/x`y").place == "delta.`/lake/x``y`"


@pytest.mark.parametrize("path", ["orders", "lake/orders", "", "./orders", "s3a:orders"])
def test_a_path_that_spark_would_take_for_a_name_is_refused(path: str) -> None:
    with pytest.raises(ConfigError, match=f"path: found '{path}', allowed is an absolute path"):
        ChangeLog(path)


@pytest.mark.parametrize("path", ["/lake/orders", "s3a://bucket/orders", "file:/lake/orders"])
def test_an_absolute_path_and_a_url_are_taken(path: str) -> None:
    assert DeltaTable.check_path(path) == path


def test_a_merge_names_the_columns_of_its_source_by_their_places() -> None:
    assert merge_statement("delta.`/lake`", "v", ["id", "odd `name`"], ["id"]) == (
        "MERGE INTO delta.`/lake` t USING v s ON t.`id` = s.c0 "
        "WHEN MATCHED AND s.gone THEN DELETE "
        "WHEN MATCHED THEN UPDATE SET t.`odd ``name``` = s.c1 "
        "WHEN NOT MATCHED AND NOT s.gone THEN INSERT (`id`, `odd ``name```) VALUES (s.c0, s.c1)"
    )


def test_a_statement_runs_as_it_is_written_and_the_setting_comes_back() -> None:
    settings: dict[str, str] = {}
    conf = SimpleNamespace(get=settings.get, set=settings.__setitem__)
    ran: list[tuple[str, str]] = []

    def sql(statement: str) -> None:
        ran.append((statement, settings["spark.sql.variable.substitute"]))

    DeltaTable(SimpleNamespace(conf=conf, sql=sql), "/lake").add_columns([("${env:HOME}", "bigint")])

    assert ran == [("ALTER TABLE delta.`/lake` ADD COLUMNS (`${env:HOME}` bigint)", "false")]
    assert settings == {"spark.sql.variable.substitute": "true"}


def test_a_session_without_delta_is_told_what_to_set() -> None:
    plain = SimpleNamespace(sparkContext=object(), conf=SimpleNamespace(get=lambda _, default: default))

    with pytest.raises(ConfigError, match=r"allowed is one with Delta's jars, spark\.sql\.extensions=io\.delta\.sql"):
        DeltaTable(plain, "/lake").check_session()


class Connected:
    """A session of Spark Connect: it raises what PySpark's own does."""

    @property
    def sparkContext(self) -> Any:
        raise PySparkAttributeError("[JVM_ATTRIBUTE_NOT_SUPPORTED] Attribute `sparkContext` is not supported")


def test_spark_connect_is_refused_before_anything_is_read_or_written() -> None:
    batch: Any = SimpleNamespace(sparkSession=Connected())
    source = {"endpoint": "http://127.0.0.1:1", "instance": "demo", "table": "flights", "tunnel": "lake"}
    mirror = Mirror(batch.sparkSession, source, "/lake/flights")

    for asked in (
        lambda: ChangeLog("/lake/log")(batch, 0),
        mirror.prepare,
        lambda: mirror.apply(batch, 0),
    ):
        with pytest.raises(ConfigError, match="the session: found one of Spark Connect, allowed is a classic one"):
            asked()
