"""Columns of a frame beside the table, before anything is written."""

from __future__ import annotations

import pytest

from ots_tunnel.client.table_calls import StreamDescription, TableDescription
from ots_tunnel.errors import ConfigError
from ots_tunnel.model import KeyColumn, KeyType
from ots_tunnel.spark.writer.layout import Layout, layout_of
from ots_tunnel.spark.writer.options import WriteOptions

KEY = (KeyColumn("b", KeyType.STRING), KeyColumn("a", KeyType.INTEGER))
TABLE = TableDescription("t", KEY, -1, 1, 86_400, StreamDescription(False), defined_columns=(("price", "DOUBLE"),))
PLACE = {"endpoint": "http://a.example", "instance": "shop", "table": "t"}
COLUMNS = [("x", "bigint"), ("a", "bigint"), ("b", "string"), ("what", "string"), ("at", "bigint")]


def layout(columns: list[tuple[str, str]], **options: str) -> Layout:
    return layout_of(WriteOptions.parse({**PLACE, **options}), columns, TABLE)


def test_the_key_is_in_the_table_s_order_and_the_rest_are_cells() -> None:
    assert layout(COLUMNS) == Layout(("b", "a"), ("x", "what", "at"))


def test_columns_with_action_and_version_are_no_cells() -> None:
    found = layout(COLUMNS, actionColumn="what", versionColumn="at")

    assert found == Layout(("b", "a"), ("x",), "what", "at")


@pytest.mark.parametrize(
    ("columns", "options", "message"),
    [
        ([("a", "bigint")], {}, r"column 'b': found no such column, table 't' has the keys b STRING, a BIGINT"),
        ([("b", "string"), ("a", "string")], {}, r"column 'a': found type string, table 't' has the keys"),
        ([("b", "string"), ("a", "double")], {}, r"column 'a': found type double, table 't' has the keys"),
        ([*COLUMNS, ("d", "decimal(9,2)")], {}, r"column 'd': found type decimal\(9,2\), .*; use double"),
        ([*COLUMNS, ("x", "bigint")], {}, r"column 'x': found twice"),
        ([*COLUMNS, ("price", "bigint")], {}, r"column 'price': found type bigint, the table defines it as double"),
        (COLUMNS, {"actionColumn": "gone"}, r"option 'actionColumn': column 'gone': found none, .* column of string"),
        (COLUMNS, {"actionColumn": "x"}, r"option 'actionColumn': column 'x': found type bigint, .* column of string"),
        (COLUMNS, {"actionColumn": "b"}, r"option 'actionColumn': column 'b': found a column of the key"),
        (COLUMNS, {"versionColumn": "what"}, r"option 'versionColumn': column 'what': found type string, .* of bigint"),
    ],
)
def test_what_does_not_fit_is_named_in_one_line(
    columns: list[tuple[str, str]], options: dict[str, str], message: str
) -> None:
    with pytest.raises(ConfigError, match=message) as caught:
        layout(columns, **options)
    assert len(str(caught.value).splitlines()) == 1


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"table": ""}, "option 'table' is missing"),
        ({"mode": "raw"}, "option 'mode' is unknown, allowed are endpoint, .*, actionColumn, versionColumn, onRefused"),
        ({"onRefused": "ignore"}, "option 'onRefused': found 'ignore', allowed are fail, skip and deadLetter"),
        ({"path": "orders"}, "option 'path': found one, .* option 'table'"),
        ({"actionColumn": "x", "versionColumn": "x"}, "option 'versionColumn': found 'x', which is option"),
        ({"accessKeySecret": "hush"}, "option 'accesskeysecret' is unknown"),
    ],
)
def test_wrong_options_are_named(options: dict[str, str], message: str) -> None:
    with pytest.raises(ConfigError, match=message) as caught:
        WriteOptions.parse({**PLACE, **options})
    assert "hush" not in str(caught.value)


def test_keys_come_from_the_folder_of_sinks() -> None:
    assert WriteOptions.parse(PLACE).place.credentials_directory == "/etc/ots/secrets/sink"
