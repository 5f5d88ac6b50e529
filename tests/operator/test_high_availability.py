"""Two replicas: after the leader was killed or frozen, the other has its work within the life of the Lease and 10 s.

The same with every other end of a leader, on virtual time, are the stories `replicas:` of tests/simulation.
"""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path

import pytest

from ots_tunnel_operator.kube.lease import LEASE_SECONDS
from tests.operator.scenes.overlap import overlap
from tests.support.kube.api_server import ApiServer

pytestmark = [pytest.mark.api, pytest.mark.timeout(400)]

#: Seconds within which the work has moved: the life of the Lease, 10 s on an idle machine, and more on a busy one.
BOUND = LEASE_SECONDS + 40.0


@pytest.mark.lasts(30)
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGSTOP], ids=lambda number: number.name.lower())
def test_the_work_of_a_dead_or_frozen_leader_moves_in_time(
    api_server: ApiServer, tmp_path: Path, number: signal.Signals
) -> None:
    namespace = f"replicas-{number.name.lower()}"
    with overlap(api_server, tmp_path, namespace) as scene:
        leader, standby = (scene.operator(name, home=namespace) for name in ("leader", "standby"))
        leader.start()
        scene.until(lambda: scene.logged("leader", "leading"), "the first one leads")
        scene.create("copy")
        scene.until(lambda: scene.replicas("copy") == 1, "workers")
        standby.start()
        scene.until(lambda: scene.logged("standby", "standing_by"), "the second one waits")
        before = scene.acts("leader")

        os.kill(leader.pid, number)
        began = time.monotonic()
        scene.api.must("-n", namespace, "scale", "ott/copy", "--replicas=3")
        scene.until(lambda: scene.replicas("copy") == 3, "the second one acts")
        moved = time.monotonic() - began

        if number is signal.SIGSTOP:
            os.kill(leader.pid, signal.SIGCONT)
            scene.until(lambda: not leader.is_running, "the first one ends when it wakes up")
        assert moved <= BOUND, f"{moved:.1f} s"
        # each change was made once, by the one whose turn it was
        assert scene.acts("leader") == before
        assert scene.acts("standby") == [("copy", "applied_object Deployment")]
