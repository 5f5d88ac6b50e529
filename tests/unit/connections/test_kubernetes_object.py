"""What an object and its Secrets say about both sides."""

from __future__ import annotations

import base64
import copy
from typing import Any

import pytest

from ots_tunnel.connections.kubernetes_object import KIND, NamedObject
from ots_tunnel.errors import ConfigError
from ots_tunnel.model import Credentials

OBJECT: dict[str, Any] = {
    "spec": {
        "source": {
            "endpoint": "https://shop.cn-hangzhou.ots.aliyuncs.com",
            "instance": "shop",
            "table": "orders",
            "credentials": {"secretRef": {"name": "ots"}},
            "tunnel": {"name": "orders-copy"},
        },
        "sink": {
            "tablestore": {
                "endpoint": "https://shop-dr.cn-beijing.ots.aliyuncs.com",
                "instance": "shop-dr",
                "table": "orders_copy",
                "credentials": {"secretRef": {"name": "dr"}},
            }
        },
    }
}


def secret(**data: str) -> dict[str, Any]:
    return {"data": {name: base64.b64encode(value.encode()).decode() for name, value in data.items()}}


class Cluster:
    """Objects by kind, namespace and name; remembers what was read."""

    def __init__(self, document: dict[str, Any], **secrets: dict[str, Any]) -> None:
        self._objects = {(KIND, "shop", "orders-copy"): document}
        self._objects |= {("secret", "shop", name): found for name, found in secrets.items()}
        self.read: list[str] = []

    def get(self, kind: str, namespace: str, name: str) -> dict[str, Any]:
        self.read.append(name)
        return self._objects[kind, namespace, name]


def test_both_sides_come_with_their_tables_and_keys() -> None:
    cluster = Cluster(
        OBJECT,
        ots=secret(accessKeyId="id", accessKeySecret="hush\n"),
        dr=secret(accessKeyId="dr", accessKeySecret="hush", securityToken="token"),
    )
    named = NamedObject("shop/orders-copy", cluster)
    source, destination = named.source(), named.destination()

    assert (source.table, named.tunnel, destination.table) == ("orders", "orders-copy", "orders_copy")
    assert (source.origin.instance, destination.origin.instance) == ("shop", "shop-dr")
    assert source.origin.credentials is not None
    assert source.origin.credentials() == Credentials("id", "hush", None)
    assert destination.origin.credentials is not None
    assert destination.origin.credentials() == Credentials("dr", "hush", "token")
    assert source.origin.names["endpoint"] == "spec.source.endpoint of shop/orders-copy"
    assert destination.origin.names["credentials"] == "Secret shop/dr"


def test_no_secret_is_read_that_is_not_needed() -> None:
    cluster = Cluster(OBJECT, ots=secret(accessKeyId="id", accessKeySecret="hush"))

    NamedObject("shop/orders-copy", cluster).source()

    assert cluster.read == ["orders-copy", "ots"]


@pytest.mark.parametrize("reference", ["orders-copy", "/orders-copy", "shop/", "a/b/c", ""])
def test_a_malformed_reference_is_refused(reference: str) -> None:
    with pytest.raises(ConfigError, match=r"^--from-object: found '.*', allowed is NAMESPACE/NAME"):
        NamedObject(reference, Cluster(OBJECT))


def test_a_secret_without_a_key_is_named() -> None:
    cluster = Cluster(OBJECT, ots=secret(accessKeyId="id", accesskeysecret="hush"), dr={"data": {"accessKeyId": "*"}})
    named = NamedObject("shop/orders-copy", cluster)

    with pytest.raises(ConfigError) as missing:
        named.source()
    with pytest.raises(ConfigError) as malformed:
        named.destination()

    assert str(missing.value) == "Secret shop/ots: missing accessKeySecret, found accessKeyId, accesskeysecret"
    assert str(malformed.value) == "Secret shop/dr: accessKeyId: found bytes that are not text"


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"sink": {"stdout": {}}}, "shop/orders-copy: spec.sink: found stdout, allowed is tablestore"),
        ({"delivery": {"columns": {"include": ["price"], "rename": {}}}}, "spec.delivery.columns: makes a copy that"),
        ({"delivery": {"filter": {"actions": ["PUT"]}}}, "shop/orders-copy: spec.delivery.filter: makes a copy that"),
    ],
)
def test_a_destination_that_cannot_be_equal_is_refused(change: dict[str, Any], message: str) -> None:
    document = copy.deepcopy(OBJECT)
    document["spec"] |= change

    with pytest.raises(ConfigError) as refused:
        NamedObject("shop/orders-copy", Cluster(document)).destination()

    assert message in str(refused.value)


def test_columns_that_change_nothing_are_no_transformation() -> None:
    document = copy.deepcopy(OBJECT)
    document["spec"]["delivery"] = {"columns": {"include": [], "exclude": [], "rename": {}}}
    cluster = Cluster(document, dr=secret(accessKeyId="id", accessKeySecret="hush"))

    assert NamedObject("shop/orders-copy", cluster).destination().table == "orders_copy"


def test_an_object_that_reads_by_leases_has_no_tunnel_and_names_the_command_for_its_shards() -> None:
    document = copy.deepcopy(OBJECT)
    source = document["spec"]["source"]
    del source["tunnel"]
    source["stream"] = {"leaseTable": "orders_leases"}
    named = NamedObject("shop/orders-copy", Cluster(document, ots=secret(accessKeyId="id", accessKeySecret="hush")))

    with pytest.raises(ConfigError, match=r"spec\.source\.tunnel: found none") as refused:
        _ = named.tunnel

    assert "`ots-tunnel stream leases orders orders_leases --from-object shop/orders-copy`" in str(refused.value)
    assert named.source().table == "orders"
    assert named.lease_table == "orders_leases"


def test_an_object_that_reads_a_tunnel_has_no_table_of_leases_and_names_the_command_for_its_channels() -> None:
    named = NamedObject("shop/orders-copy", Cluster(OBJECT))

    with pytest.raises(ConfigError, match=r"spec\.source\.stream: found none") as refused:
        _ = named.lease_table

    assert "`ots-tunnel channels --from-object shop/orders-copy`" in str(refused.value)
