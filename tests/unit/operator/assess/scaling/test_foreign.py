"""Who else writes the number of workers."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from ots_tunnel_operator.assess.scaling.foreign import foreign_writer
from ots_tunnel_operator.names import FIELD_MANAGER
from ots_tunnel_operator.world import World
from tests.support.operator.scaled_worlds import by_auto, scaled
from tests.support.operator.worlds import deployment


def owned(*managers: dict[str, Any], replicas: int = 5) -> World:
    children = deployment(replicas)
    children["Deployment", "flights-copy"]["metadata"]["managedFields"] = list(managers)
    return replace(scaled(status=by_auto(2)), children=children)


def manager(name: str | None, field: str = "f:replicas") -> dict[str, Any]:
    entry = {"operation": "Update", "fieldsV1": {"f:spec": {field: {}}}}
    return entry if name is None else entry | {"manager": name}


def test_an_edit_of_the_object_is_noticed() -> None:
    text = foreign_writer(scaled(replicas=9, workers=6, status=by_auto(6)), 6)

    assert text.startswith("spec.replicas was changed from 2 to 9, which has no effect: the operator decides")


def test_a_client_that_scales_the_deployment_is_named() -> None:
    text = foreign_writer(owned(manager("kube-controller-manager")), 2)

    assert text.startswith("kube-controller-manager set the replicas of the workers' Deployment to 5 instead of 2: ")


def test_a_client_without_a_name_is_told() -> None:
    assert foreign_writer(owned(manager(None)), 2).startswith("an unknown client set the replicas")


@pytest.mark.parametrize(
    "found",
    [
        scaled(),
        scaled(status=by_auto(2)),
        # the last decision is not carried out yet
        owned(manager(FIELD_MANAGER)),
        owned(manager("kubectl", "f:template")),
        owned({"manager": "kubectl"}),
        owned(manager("kubectl"), replicas=2),
        replace(scaled(status=by_auto(2)), children={}),
    ],
)
def test_nobody_else(found: World) -> None:
    assert foreign_writer(found, 2) == ""
