"""Conditions on two tables before they are compared."""

from __future__ import annotations

from dataclasses import replace

import pytest

from ots_tunnel.client.table_calls import StreamDescription, TableDescription
from ots_tunnel.errors import ConfigError
from ots_tunnel.model import KeyColumn, KeyType
from ots_tunnel.verify.checks import refuse_other_keys, refuse_same_table, warnings_of
from ots_tunnel.verify.state_document import TablePlace


def describe(name: str = "orders", **changes: object) -> TableDescription:
    keys = (KeyColumn("a", KeyType.STRING), KeyColumn("b", KeyType.INTEGER, auto_increment=True))
    return replace(TableDescription(name, keys, -1, 3, 86_400, StreamDescription(False)), **changes)


def test_tables_of_other_keys_are_refused() -> None:
    plain = (KeyColumn("a", KeyType.STRING), KeyColumn("b", KeyType.INTEGER))
    refuse_other_keys(describe(), describe("copy", primary_key=plain))
    for other in (plain[:1], plain[::-1], (plain[0], KeyColumn("c", KeyType.INTEGER))):
        with pytest.raises(ConfigError, match=r"primary key: found .* in table 'copy', needed a STRING, b INTEGER"):
            refuse_other_keys(describe(), describe("copy", primary_key=other))


def test_settings_that_make_copies_differ_are_noted() -> None:
    assert warnings_of(describe(), describe("copy")) == ()
    (fewer,) = warnings_of(describe(), describe("copy", max_versions=1))
    (more,) = warnings_of(describe(), describe("copy", max_versions=9))
    (shorter,) = warnings_of(describe(), describe("copy", time_to_live=86_400))
    assert "count as differences" in fewer
    assert "only the newest 3" in more
    assert "86400 in the destination, -1 in the source" in shorter


def test_one_table_by_two_names_is_refused() -> None:
    public = TablePlace(endpoint="https://shop.cn-hangzhou.ots.aliyuncs.com", instance="shop", table="orders")
    inner = public.model_copy(update={"endpoint": "https://shop.cn-hangzhou.vpc.ots.aliyuncs.com"})
    with pytest.raises(ConfigError, match="'orders' in instance 'shop' is the source itself"):
        refuse_same_table(public, inner)
    refuse_same_table(public, inner.model_copy(update={"table": "copy"}))
    refuse_same_table(public, inner.model_copy(update={"instance": "other"}))
