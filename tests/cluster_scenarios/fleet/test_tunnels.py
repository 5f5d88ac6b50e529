"""What becomes of tunnels: expired and reset, wanted by two objects, kept and deleted with their object."""

from __future__ import annotations

import pytest

from tests.cluster_scenarios.fleet.conftest import MakeCopy
from tests.cluster_scenarios.fleet.fleet import Fleet

pytestmark = [
    pytest.mark.cluster,
    pytest.mark.xdist_group("cluster"),
    pytest.mark.long,
    pytest.mark.timeout(600),
]


@pytest.mark.lasts(90)
def test_an_expired_tunnel_is_reset_with_existing_rows(fleet: Fleet, make_copy: MakeCopy) -> None:
    copy = make_copy("expired")
    with fleet.writing(100):
        with fleet.step("the object follows its table"):
            copy.apply(replicas=2, deletionPolicy="Delete")
            copy.until_at_rest(workers=2)
        former = copy.status()["tunnel"]["id"]
        with fleet.step("its tunnel expires"):
            fleet.admin.post("/tunnels/expire", instance=fleet.scenario.instance, tunnel=former)
            copy.until("it is stalled", lambda _: copy.condition("Stalled") == ("True", "TunnelExpired"))
        with fleet.step("it is paused, and its destination emptied"):
            fleet.ott("pause", copy.name, "--wait")
            assert copy.pods() == []
            fleet.drop(copy.destination)
        with fleet.step("it is reset"):
            fleet.ott("reset", copy.name, "--new-base", "--delete-tunnel", "--yes", "--wait")
            assert copy.status()["reset"]["state"] == "Done"
        with fleet.step("it is resumed"):
            fleet.ott("resume", copy.name, "--wait")
            copy.until_at_rest(workers=2)

    copy.assert_equal()
    status = copy.status()
    assert status["tunnel"]["id"] != former
    assert "lost" not in status
    assert not copy.events() & {"SinkDenied", "SinkRejected", "WorkersFailing"}, copy.events()
    copy.delete()
    assert former not in {tunnel["id"] for tunnel in fleet.tunnels()}


@pytest.mark.lasts(120)
def test_two_objects_on_one_tunnel_and_both_deletion_policies(fleet: Fleet, make_copy: MakeCopy) -> None:
    elder = make_copy("elder", destination="shared_copy", tunnel="shared")
    younger = make_copy("younger", destination="shared_copy", tunnel="shared")
    with fleet.writing(100):
        with fleet.step("the elder follows its table, the younger is refused"):
            elder.apply(replicas=1)
            elder.until_at_rest(workers=1)
            younger.apply(replicas=1)
            younger.until("it is refused", lambda _: younger.condition("Stalled") == ("True", "TunnelInUse"))
            assert younger.pods() == []
            elder.until_at_rest(workers=1)
        kept = elder.status()["tunnel"]["id"]
        with fleet.step("the elder is deleted under Retain, the younger takes over"):
            elder.delete()
            assert (younger.tunnel.found() or {})["id"] == kept
            younger.until_at_rest(workers=1)
        assert younger.status()["tunnel"]["id"] == kept

    younger.assert_equal()
    with fleet.writing(100), fleet.step("the elder comes back under its name, and is now the younger"):
        elder.apply(replicas=1)
        elder.until("it is refused", lambda _: elder.condition("Stalled") == ("True", "TunnelInUse"))
        younger.delete()
        elder.until_at_rest(workers=1)

    elder.assert_equal()
    with fleet.step("it is deleted under Delete, which takes only a tunnel that the object created"):
        elder.edit(deletionPolicy="Delete")
        elder.delete()
        assert (elder.tunnel.found() or {}).get("id") == kept
