"""Two operators whose scopes overlap, and one that was suspended: only one of them ever acts on an object."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path

import pytest

from ots_tunnel_operator.kube.claims import GRACE_SECONDS, TAKEOVER_SECONDS
from tests.operator.scenes.overlap import ACTS_OF_AN_OBJECT, PATIENCE, overlap
from tests.support.kube.api_server import ApiServer

pytestmark = [pytest.mark.api, pytest.mark.timeout(400)]


@pytest.mark.lasts(10)
def test_a_namespace_s_operator_and_the_cluster_s_never_both_act(api_server: ApiServer, tmp_path: Path) -> None:
    with overlap(api_server, tmp_path, "shared") as scene:
        one = scene.operator("release-one")
        other = scene.operator("release-two", everywhere=True)
        one.start()
        other.start()
        for process in ("release-one", "release-two"):
            scene.until(lambda process=process: scene.logged(process, "leading"), f"{process} leads")
        names = [f"copy-{number}" for number in range(4)]
        for name in names:
            scene.create(name)
        for name in names:
            scene.until(lambda name=name: scene.replicas(name) == 1, f"{name} has workers")

        holders = {name: scene.holder(name) for name in names}
        assert set(holders.values()) <= {f"release-{which}/ots-tunnel-operator" for which in ("one", "two")}
        for process in ("release-one", "release-two"):
            mine = [name for name, holder in holders.items() if holder.startswith(process)]
            acts = scene.acts(process)
            assert {name for name, _ in acts} == set(mine)
            for name in mine:
                assert [act for owner, act in acts if owner == name] == ACTS_OF_AN_OBJECT

        for name in names:
            api_server.must("-n", scene.namespace, "delete", "ott", name, "--timeout=40s")


@pytest.mark.lasts(24)
def test_a_suspended_leader_ends_without_a_write_when_it_wakes_up(api_server: ApiServer, tmp_path: Path) -> None:
    with overlap(api_server, tmp_path, "asleep") as scene:
        first = scene.operator("first", home="asleep")
        second = scene.operator("second", home="asleep")
        first.start()
        scene.until(lambda: scene.logged("first", "leading"), "the first one leads")
        scene.create("copy")
        scene.until(lambda: scene.replicas("copy") == 1, "workers")
        second.start()
        scene.until(lambda: scene.logged("second", "serving"), "the second one waits")
        before = scene.acts("first")

        os.kill(first.pid, signal.SIGSTOP)
        scene.until(lambda: scene.logged("second", "leading"), "the second one leads")
        scene.api.must("-n", scene.namespace, "scale", "ott/copy", "--replicas=3")
        scene.until(lambda: scene.replicas("copy") == 3, "the second one acts")
        os.kill(first.pid, signal.SIGCONT)

        scene.until(lambda: not first.is_running, "the first one ends")
        assert first.stop() == 1
        assert scene.acts("first") == before
        assert scene.holder("copy") == "asleep/ots-tunnel-operator"


@pytest.mark.lasts(37)
def test_a_leader_whose_event_loop_stands_still_loses_the_lease_and_ends(api_server: ApiServer, tmp_path: Path) -> None:
    with overlap(api_server, tmp_path, "blocked") as scene:
        first = scene.operator("stuck", home="blocked", can_block=True)
        second = scene.operator("next", home="blocked")
        first.start()
        scene.until(lambda: scene.logged("stuck", "leading"), "the first one leads")
        scene.create("copy")
        scene.until(lambda: scene.replicas("copy") == 1, "workers")
        second.start()
        scene.until(lambda: scene.logged("next", "serving"), "the second one waits")

        first.block()
        scene.until(lambda: not first.is_running, "the first one ends")
        scene.until(lambda: scene.logged("next", "leading"), "the second one leads")

        assert scene.logged("stuck", "loop_stalled")
        assert first.stop() == 1
        scene.api.must("-n", scene.namespace, "scale", "ott/copy", "--replicas=3")
        scene.until(lambda: scene.replicas("copy") == 3, "the second one acts")


@pytest.mark.long
@pytest.mark.lasts(200)
def test_what_an_uninstalled_operator_served_is_taken_over(api_server: ApiServer, tmp_path: Path) -> None:
    with overlap(api_server, tmp_path, "heritage") as scene:
        first, second = scene.operator("gone"), scene.operator("heir", everywhere=True)
        first.start()
        scene.create("copy")
        scene.until(lambda: scene.replicas("copy") == 1, "workers")
        second.start()
        scene.until(lambda: scene.logged("heir", "served_elsewhere"), "the heir leaves the object alone")
        first.kill()
        began = time.monotonic()
        scene.api.must("-n", scene.namespace, "scale", "ott/copy", "--replicas=3")

        scene.until(lambda: scene.replicas("copy") == 3, "the heir acts", 2 * TAKEOVER_SECONDS + PATIENCE)

        assert time.monotonic() - began > GRACE_SECONDS
        assert scene.holder("copy") == "heir/ots-tunnel-operator"
