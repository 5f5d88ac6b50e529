"""Who else writes the number of workers."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from ots_tunnel_operator.assess.scaling.foreign import foreign_writer
from ots_tunnel_operator.names import FIELD_MANAGER
from ots_tunnel_operator.world.world import World
from tests.support.operator.scaled_worlds import by_auto, scaled
from tests.support.operator.worlds import deployment, planned


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


@pytest.mark.parametrize("mode", ["Disabled", "Advise"])
@pytest.mark.parametrize("replicas", [1, 5])
def test_a_client_that_scales_the_deployment_of_an_object_without_auto_is_told(mode: str, replicas: int) -> None:
    children = owned(manager("kube-controller-manager"), replicas=replicas).children
    warning = planned(replace(scaled(mode), children=children)).warning

    assert warning is not None
    assert warning.reason == "ReplicasManagedByAutoscaler"
    # no figure that moves: one event for as long as both write
    assert warning.message == (
        "kube-controller-manager sets the replicas of the workers' Deployment, and the operator sets them back to 2, "
        "the number of the object: let an autoscaler scale TablestoreTunnel 'flights-copy', and not its Deployment"
    )


def test_a_number_of_the_object_that_is_on_its_way_warns_of_nobody() -> None:
    found = replace(scaled("Disabled"), children=owned(manager(FIELD_MANAGER)).children)

    assert planned(found).warning is None


def test_a_client_that_has_once_set_the_same_number_is_no_rival() -> None:
    """Two clients own a field that both have set to one value; the later change of one of them ends that."""
    children = owned(manager("kubectl"), manager(FIELD_MANAGER)).children

    assert planned(replace(scaled("Disabled"), children=children)).warning is None


def test_nobody_is_warned_of_while_the_last_workers_go() -> None:
    found = replace(scaled("Disabled", replicas=0, workers=2), children=owned(manager("kubectl")).children)

    assert planned(found).warning is None
