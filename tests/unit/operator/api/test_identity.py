"""Two objects on one tunnel have one identity, whether it is read from a validated spec or from a raw one."""

from __future__ import annotations

from typing import Any

import pytest

from ots_tunnel_operator.api.identity import TunnelIdentity, identity_of
from ots_tunnel_operator.api.object import TablestoreTunnel
from tests.support.operator.objects import tunnel_object

OURS = TunnelIdentity("ots-emulator:8080", "demo", "flights", "flights-copy")


def identities(**changes: Any) -> tuple[TunnelIdentity | None, TunnelIdentity | None]:
    body = tunnel_object(**changes)
    return identity_of(body["spec"]), TablestoreTunnel.from_body(body).spec.identity


@pytest.mark.parametrize(
    ("changes", "identity"),
    [
        ({}, OURS),
        ({"source__endpoint": "https://OTS-Emulator:8080"}, OURS),
        ({"source__endpoint": "http://other:8080"}, OURS._replace(region="other:8080")),
        ({"source__endpoint": "https://other"}, OURS._replace(region="other")),
        ({"source__endpoint": "https://other:443"}, OURS._replace(region="other")),
        ({"source__endpoint": "http://other:80"}, OURS._replace(region="other")),
        ({"source__endpoint": "https://other:80"}, OURS._replace(region="other:80")),
        ({"source__table": "orders"}, OURS._replace(table="orders")),
        ({"source__tunnel__type": "Stream", "engine__baseData": "Spark"}, OURS),
        ({"source__tunnel__type": "BaseData"}, OURS),
        # a snapshot without a stream needs no tunnel
        ({"source__tunnel__type": "BaseData", "engine__baseData": "Spark"}, None),
    ],
)
def test_identities(changes: dict[str, Any], identity: TunnelIdentity | None) -> None:
    assert identities(**changes) == (identity, identity)


def test_an_unreadable_spec_has_its_own_identity_and_no_error() -> None:
    assert identity_of({}) == TunnelIdentity("", "None", "None", "None")


def test_the_hosts_of_one_instance_are_one_place() -> None:
    hosts = ("shop.cn-hangzhou.ots.aliyuncs.com", "shop.cn-hangzhou.vpc.tablestore.aliyuncs.com:443")

    (found,) = {TunnelIdentity.at(f"https://{host}", "shop", "orders", "copy") for host in hosts}

    assert found.region == "cn-hangzhou"
