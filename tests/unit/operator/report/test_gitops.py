"""What Argo CD and Flux make of the statuses that the operator writes, by the files of docs/examples/gitops."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import cel
import pytest
import yaml
from lupa.lua51 import LuaRuntime

from ots_tunnel.model import ChannelStatus, Stage, TunnelType
from ots_tunnel_operator.reasons import Problem, Reason
from ots_tunnel_operator.report.unobserved import deleting_status, unobserved_status
from ots_tunnel_operator.world.absence import Failure, Missing
from ots_tunnel_operator.world.service import Tunnel
from tests.support.operator.worlds import (
    FREED,
    NOW,
    base,
    channel,
    deployment,
    description,
    pod,
    recorded,
    reported,
    resource,
    world,
)

FOLDER = Path(__file__).parents[4] / "docs" / "examples" / "gitops"
SCRIPT = (FOLDER / "argocd-health.lua").read_text()
(FLUX,) = yaml.safe_load((FOLDER / "flux-kustomization.yaml").read_text())["spec"]["healthCheckExprs"]
GENERATION = 3

Status = Mapping[str, Any]


def base_phase() -> Status:
    running = Tunnel(description(base("b1", client="01234567-pod-1"), stage=Stage.BASE))
    return reported(world(tunnel=running))


def completed() -> Status:
    of = resource(recorded(), source__tunnel__type="BaseData")
    ended = description(base("b1", ChannelStatus.TERMINATED), kind=TunnelType.BaseData)
    return reported(world(of, tunnel=Tunnel(ended), children=deployment(0), pods=()))


def unreachable() -> Status:
    silent = Problem(Reason.ENDPOINT_UNREACHABLE, "no answer", ("TunnelReady",))
    return reported(world(tunnel=Failure(silent)))


def unobserved() -> Status:
    refused = Problem(Reason.API_SERVER_REFUSED, "403")
    return unobserved_status(reported(world()), refused, generation=GENERATION, observed=NOW, now=NOW)


def stalled_and_unobserved() -> Status:
    unreadable = Problem(Reason.SPEC_UNREADABLE, "no such field")
    return unobserved_status(reported(world()), unreadable, generation=GENERATION, observed=NOW, now=NOW)


def suspended(replicas: int = 0) -> Status:
    pods = (pod(deleting=True),) if replicas else ()
    return reported(world(resource(recorded(), suspend=True), children=deployment(0), pods=pods, tunnel=FREED))


def no_workers() -> Status:
    waiting = Tunnel(description(channel("c1", ChannelStatus.CLOSE, client="", consumed=NOW - 5)))
    return reported(world(resource(recorded(), replicas=0), children=deployment(0), pods=(), tunnel=waiting))


def denied() -> Status:
    refused = Failure(Problem(Reason.AUTH_FAILED, "wrong key", ("CredentialsValid",)))
    return reported(world(source_credentials=refused))


def expired() -> Status:
    return reported(world(tunnel=Tunnel(description(channel("c1", consumed=NOW - 5), expired=True))))


def new() -> Status:
    return reported(world(resource(), tunnel=Missing(), destination=Missing(), children={}, pods=()))


#: Name of the case -> how its status comes about, spec.suspend, Argo CD's verdict, and Flux's.
CASES: Mapping[str, tuple[Callable[[], Status], bool, str, str]] = {
    "follows its stream": (lambda: reported(world()), False, "Healthy", "current"),
    "is created": (new, False, "Progressing", "in progress"),
    "starts workers": (
        lambda: reported(world(children=deployment(1, readyReplicas=0), pods=())),
        False,
        "Progressing",
        "in progress",
    ),
    "copies existing rows": (base_phase, False, "Progressing", "in progress"),
    "is complete": (completed, False, "Healthy", "current"),
    "is suspended": (suspended, True, "Suspended", "current"),
    "is being suspended": (lambda: suspended(1), True, "Progressing", "in progress"),
    "wants no workers": (no_workers, False, "Suspended", "in progress"),
    "has wrong keys": (denied, False, "Degraded", "in progress"),
    "has an expired tunnel": (expired, False, "Degraded", "failed"),
    "reaches no endpoint": (unreachable, False, "Degraded", "in progress"),
    "cannot be observed": (unobserved, False, "Unknown", "in progress"),
    "cannot be read": (stalled_and_unobserved, False, "Degraded", "failed"),
    "is being deleted, by its status": (
        lambda: deleting_status(reported(world()), "", generation=GENERATION, now=NOW),
        False,
        "Progressing",
        "in progress",
    ),
}


def document(status: Status | None, *, suspend: bool = False, **metadata: Any) -> dict[str, Any]:
    found: dict[str, Any] = {
        "metadata": {"name": "flights-copy", "generation": GENERATION, **metadata},
        "spec": {"suspend": suspend},
    }
    return found if status is None else found | {"status": {"observedGeneration": GENERATION, **status}}


def health(of: Mapping[str, Any]) -> tuple[str, str]:
    """Status and message, as Argo CD runs the script: in Lua 5.1, with the object as `obj`."""
    lua = LuaRuntime(unpack_returned_tuples=True)
    lua.globals().obj = _table(lua, of)
    found = lua.execute(SCRIPT)
    return str(found["status"]), str(found["message"])


def _table(lua: LuaRuntime, value: Any) -> Any:
    if isinstance(value, Mapping):
        return lua.table_from({key: _table(lua, item) for key, item in value.items()})
    if isinstance(value, list | tuple):
        return lua.table_from([_table(lua, item) for item in value])
    return value


def flux(of: Mapping[str, Any]) -> str:
    """The first of Flux's expressions that is true; it evaluates them in this order."""
    for name, word in (("inProgress", "in progress"), ("failed", "failed"), ("current", "current")):
        if cel.evaluate(FLUX[name], dict(of)):
            return word
    return "in progress"


@pytest.mark.parametrize("case", CASES)
def test_an_object_has_the_health(case: str) -> None:
    make, suspend, argo, expected = CASES[case]
    of = document(make(), suspend=suspend)

    assert (health(of)[0], flux(of)) == (argo, expected)


def test_the_message_is_that_of_the_condition_that_decided() -> None:
    _, message = health(document(denied()))

    assert message.startswith("AuthFailed: wrong key")


def test_an_object_without_a_status_is_on_its_way() -> None:
    assert health(document(None))[0] == "Progressing"
    assert health(document({}))[0] == "Progressing"


def test_an_edit_that_the_operator_has_not_seen_is_on_its_way() -> None:
    of = document(reported(world()) | {"observedGeneration": GENERATION - 1})

    assert health(of) == ("Progressing", "the operator has not seen the last edit yet")
    assert flux(of) == "in progress"


def test_a_deleted_object_is_on_its_way() -> None:
    of = document(reported(world()), deletionTimestamp="2026-11-01T00:00:00Z")

    assert health(of)[0] == "Progressing"


def test_flux_and_the_script_are_about_our_kind() -> None:
    assert (FLUX["apiVersion"], FLUX["kind"]) == ("ots-tunnel.dev/v1alpha1", "TablestoreTunnel")
