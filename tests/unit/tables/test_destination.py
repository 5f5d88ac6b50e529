"""Whether a table can be the destination, and what would be created: pure."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, cast

import pytest

from ots_tunnel.credentials import static_credentials
from ots_tunnel.errors import ConfigError, ConnectError
from ots_tunnel.model import Credentials, KeyColumn, KeyType
from ots_tunnel.tables import TableAdmin, TableSchema
from ots_tunnel.tables.compatibility import ANY_DEVIATION, check_destination, planned_schema
from ots_tunnel.tables.destination import CreateCall, refuse_same_table

SOURCE = TableSchema(
    "orders",
    (KeyColumn("shop", KeyType.STRING), KeyColumn("number", KeyType.INTEGER, auto_increment=True)),
    defined_columns=(("price", "DOUBLE"),),
    ttl_seconds=864_000,
    max_versions=3,
    allow_update=False,
)


def test_the_planned_table_can_take_the_copy() -> None:
    planned = planned_schema(SOURCE, "copy")

    assert check_destination(SOURCE, planned) == ()
    assert planned == TableSchema(
        "copy",
        (KeyColumn("shop", KeyType.STRING), KeyColumn("number", KeyType.INTEGER)),
        defined_columns=(("price", "DOUBLE"),),
        ttl_seconds=864_000,
        max_versions=3,
        deviation_seconds=9_223_372_036_854,
        allow_update=True,
    )


SHOP, NUMBER = planned_schema(SOURCE, "copy").keys


@pytest.mark.parametrize(
    ("change", "field", "found", "needed"),
    [
        ({"keys": (NUMBER, SHOP)}, "primary key", "number INTEGER, shop STRING", "shop STRING, number INTEGER"),
        ({"keys": (SHOP,)}, "primary key", "shop STRING", "shop STRING, number INTEGER"),
        ({"keys": SOURCE.keys}, "primary key", "number INTEGER AUTO_INCREMENT", "number INTEGER"),
        ({"keys": (SHOP, replace(NUMBER, type=KeyType.BINARY))}, "primary key", "number BINARY", "number INTEGER"),
        ({"max_versions": 2}, "max versions", "2", "at least 3"),
        ({"ttl_seconds": 863_999}, "time to live seconds", "863999", "at least 864000"),
        ({"deviation_seconds": 86_400}, "max version deviation seconds", "86400", str(ANY_DEVIATION)),
        ({"allow_update": False}, "allow update", "false", "true"),
    ],
)
def test_each_problem_says_field_found_and_needed(change: dict[str, Any], field: str, found: str, needed: str) -> None:
    [problem] = check_destination(SOURCE, replace(planned_schema(SOURCE, "copy"), **change))

    assert problem.field == field
    assert found in problem.found
    assert needed in problem.needed
    assert str(problem) == f"{problem.field}: found {problem.found}, needed {problem.needed}"


@pytest.mark.parametrize("ttl", [-1, 864_000, 864_001])
@pytest.mark.parametrize("versions", [3, 10])
def test_more_than_the_source_is_fine(ttl: int, versions: int) -> None:
    found = replace(planned_schema(SOURCE, "copy"), ttl_seconds=ttl, max_versions=versions)

    assert check_destination(SOURCE, found) == ()


def test_cells_without_expiry_need_a_table_without_expiry() -> None:
    source = replace(SOURCE, ttl_seconds=-1)
    [problem] = check_destination(source, replace(planned_schema(source, "copy"), ttl_seconds=10**9))

    assert problem.needed.startswith("-1")


def test_every_problem_is_found_at_once() -> None:
    found = TableSchema("copy", (KeyColumn("x", KeyType.BINARY),), ttl_seconds=1, allow_update=False)

    assert len(check_destination(SOURCE, found)) == 5


def admin(endpoint: str, instance: str = "shop") -> TableAdmin:
    return TableAdmin(endpoint, instance, static_credentials(Credentials("id", "secret")))


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("http://127.0.0.1:8000", "http://127.0.0.1:8000/"),
        ("https://shop.cn-hangzhou.ots.aliyuncs.com", "https://shop.cn-hangzhou.vpc.tablestore.aliyuncs.com"),
        ("https://shop.cn-hangzhou.ots.aliyuncs.com", "http://SHOP.cn-hangzhou.ots-internal.aliyuncs.com"),
    ],
)
def test_a_copy_into_itself_is_refused(one: str, other: str) -> None:
    with pytest.raises(ConfigError, match="is the source itself"):
        refuse_same_table(admin(one), admin(other), "orders", "orders")


@pytest.mark.parametrize(
    ("endpoint", "instance", "table"),
    [
        ("https://shop.cn-beijing.ots.aliyuncs.com", "shop", "orders"),
        ("https://shop.cn-hangzhou.ots.aliyuncs.com", "shop", "copy"),
        ("https://shop.cn-hangzhou.ots.aliyuncs.com", "shop-dr", "orders"),
        ("http://127.0.0.1:8000", "shop", "orders"),
    ],
)
def test_other_tables_are_not_the_source(endpoint: str, instance: str, table: str) -> None:
    refuse_same_table(admin("https://shop.cn-hangzhou.ots.aliyuncs.com"), admin(endpoint, instance), "orders", table)


class Tables:
    """An instance that creates every table."""

    def __init__(self) -> None:
        self.created: list[TableSchema] = []

    def create(self, schema: TableSchema) -> None:
        self.created.append(schema)


def test_a_call_that_is_given_up_while_it_is_sent_may_have_created_the_table() -> None:
    tables, seen = Tables(), []

    def give_up() -> None:
        # as another thread whose patience ends after the call has looked, and who then reads what became of it
        call.is_given_up = True
        seen.append(call.may_have_created)

    call = CreateCall(before_send=give_up)

    assert call.send(cast(TableAdmin, tables), SOURCE)
    assert (tables.created, seen) == ([SOURCE], [True])


def test_a_call_that_is_given_up_before_it_is_sent_creates_nothing() -> None:
    tables, call = Tables(), CreateCall(is_given_up=True)

    with pytest.raises(ConnectError, match="given up"):
        call.send(cast(TableAdmin, tables), SOURCE)

    assert (tables.created, call.may_have_created) == ([], False)


def test_a_call_that_is_refused_right_before_it_is_sent_creates_nothing() -> None:
    def refuse() -> None:
        raise PermissionError("the lease is not held")

    tables, call = Tables(), CreateCall(before_send=refuse)

    with pytest.raises(PermissionError):
        call.send(cast(TableAdmin, tables), SOURCE)

    assert (tables.created, call.may_have_created) == ([], False)
