"""Paths of the Kubernetes API."""

from __future__ import annotations

import pytest
from yarl import URL

from ots_tunnel_operator.kube.kinds import DEPLOYMENT, SECRET, TUNNEL, Kind


@pytest.mark.parametrize(
    ("kind", "place", "path"),
    [
        (SECRET, ("shop", "keys"), "/api/v1/namespaces/shop/secrets/keys"),
        (DEPLOYMENT, ("", ""), "/apis/apps/v1/deployments"),
        (
            TUNNEL,
            ("shop", "orders", "status"),
            "/apis/ots-tunnel.dev/v1alpha1/namespaces/shop/tablestoretunnels/orders/status",
        ),
    ],
)
def test_the_path_of_an_object_or_a_collection(kind: Kind, place: tuple[str, ...], path: str) -> None:
    assert kind.path(*place) == path


def test_no_name_leads_to_another_path() -> None:
    """What a client of HTTP makes of `..` would be read with the operator's rights."""
    path = SECRET.path("shop", "../../kube-system/secrets/root")

    assert URL(f"https://api{path}").raw_path.startswith("/api/v1/namespaces/shop/secrets/")
