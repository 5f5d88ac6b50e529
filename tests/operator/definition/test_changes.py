"""What of an object may change on a real API server, and what is immutable."""

from __future__ import annotations

from typing import Any

import pytest

from tests.operator.definition.immutable_fields import IMMUTABLE
from tests.support.kube.api_server import ApiServer
from tests.support.operator.objects import changed, tunnel_object
from tests.support.operator.spec_blocks import FILES, SPARK, STDOUT

pytestmark = pytest.mark.api


@pytest.mark.parametrize("case", IMMUTABLE)
def test_change_of_an_immutable_field_is_refused(api_server: ApiServer, case: str) -> None:
    first, change, field, message = IMMUTABLE[case]
    before = tunnel_object("immutable", **first)
    api_server.must("apply", "--server-side", "--force-conflicts", "-f", "-", document=before)
    try:
        # replace, because apply may keep a field that the document omits
        done = api_server.kubectl("replace", "-f", "-", document=changed(before, **change))
    finally:
        api_server.must("delete", "ott", "immutable")

    assert done.returncode != 0
    assert f"{field}: " in done.stderr
    assert message in done.stderr


@pytest.mark.parametrize(
    ("change", "values"),
    [
        ({"source__table": "other"}, "it is flights, found other"),
        ({"sink__tablestore__table": "other"}, "it is flights_copy, found other"),
        (STDOUT, "it is tablestore, found stdout"),
        (FILES, "it is tablestore, found files"),
        (SPARK, "it is baseData Workers, stream Workers; found baseData Spark, stream Workers"),
    ],
)
def test_refused_change_shows_both_values(api_server: ApiServer, change: dict[str, Any], values: str) -> None:
    api_server.must("apply", "--server-side", "-f", "-", document=tunnel_object("shown"))
    try:
        done = api_server.kubectl("replace", "-f", "-", document=tunnel_object("shown", **change))
    finally:
        api_server.must("delete", "ott", "shown")

    assert values in done.stderr


def test_mutable_fields_change(api_server: ApiServer) -> None:
    before = tunnel_object("mutable")
    api_server.must("apply", "--server-side", "-f", "-", document=before)
    try:
        after = changed(
            before,
            source__endpoint="https://shop.cn-hangzhou.ots.aliyuncs.com",
            sink__tablestore__endpoint="https://shop-dr.cn-beijing.ots.aliyuncs.com",
            sink__tablestore__credentials={"secretRef": {"name": "others"}},
            sink__tablestore__onExisting="Merge",
            deletionPolicy="Delete",
            suspend=True,
            workers__lanesPerChannel=1,
        )
        api_server.must("replace", "-f", "-", document=after)
        generation = api_server.must("get", "ott", "mutable", "-o", "jsonpath={.metadata.generation}")
    finally:
        api_server.must("delete", "ott", "mutable")

    assert generation == "2"
