"""The operator as a process under kopf: it finds objects, deletes, writes nothing when idle, and ends on a signal."""

from __future__ import annotations

import json
import platform
import subprocess
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from ots_emulator import Emulator
from tests.operator.scenes.pass_scene import fill
from tests.support.kube.api_server import ApiServer
from tests.support.operator.objects import tunnel_object
from tests.support.programs.processes import inherited_environment, module
from tests.support.waiting import wait_until

pytestmark = [pytest.mark.api, pytest.mark.timeout(400)]

#: Longest time of one step of the operator in seconds.
PATIENCE = 120.0
NAMESPACE = "process"
#: Seconds for which an idle object is watched: many polls.
SILENCE = 6.0


@contextmanager
def operator_process(api: ApiServer, log: Path, *more: str) -> Iterator[subprocess.Popen[bytes]]:
    """Run the operator outside of the cluster; it must end by SIGTERM within seconds."""
    command = module("ots_tunnel_operator", "run", "--namespace", NAMESPACE, "--http-host", "127.0.0.1")
    options = ["--http-port", "0", "--poll-seconds", "0.5", "--status-seconds", "1", "--worker-image", "worker:1"]
    options += ["--console-port", "0", *more]
    environment = inherited_environment(KUBECONFIG=str(api.kubeconfig))
    with log.open("wb") as output:
        process = subprocess.Popen([*command, *options], env=environment, stdout=output, stderr=output)
        try:
            yield process
        finally:
            process.terminate()
            assert process.wait(30) == 0, log.read_text()


def heaps_of_threads(process: int) -> int:
    """Heaps that glibc has made for threads beside the one of the process: it reserves up to 64 MiB for each."""
    regions = [line.split() for line in Path(f"/proc/{process}/maps").read_text().splitlines()]
    sizes = [
        int(end, 16) - int(begin, 16)
        for span, rights, _, _, _, *name in regions
        if not name and rights == "---p"
        for begin, end in [span.split("-")]
    ]
    return sum(32 << 20 < size < 64 << 20 for size in sizes)


def test_a_replica_that_stands_by_says_for_whom_on_its_console(api_server: ApiServer, tmp_path: Path) -> None:
    api, namespace, now = api_server, "stands-by", datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
    api.must("create", "namespace", namespace)
    held = {"holderIdentity": "operator-6f5d_0c4e", "leaseDurationSeconds": 3600, "acquireTime": now, "renewTime": now}
    lease = {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "spec": held}
    lease["metadata"] = {"name": "shared", "namespace": namespace}
    api.must("create", "-f", "-", document=lease)
    log = tmp_path / "operator.log"

    with operator_process(api, log, "--lease-namespace", namespace, "--lease-name", "shared") as operator:
        wait_until(lambda: '"standing_by"' in log.read_text(), PATIENCE, "it stands by")
        shown = wait_until(lambda: (found := console(log))["holder"] and found, PATIENCE, "it knows the holder")
        heaps = heaps_of_threads(operator.pid)

    if platform.libc_ver()[0] == "glibc":
        # a numerical library that the vendor's SDK imports makes one for its own thread
        assert heaps <= 1, "its threads keep freed memory, each for itself"
    assert (shown["leads"], shown["holder"], shown["namespace"]) == (False, "operator-6f5d", namespace)
    assert shown["state"] == "standing by for operator-6f5d_0c4e"
    assert shown["objects"] is None


def console(log: Path) -> dict[str, Any]:
    """What the operator's console shows, by the port that its log names."""
    lines = [json.loads(line) for line in log.read_text().splitlines() if '"serving_console"' in line]
    with urllib.request.urlopen(f"http://127.0.0.1:{lines[0]['port']}/state", timeout=10) as answer:
        found: dict[str, Any] = json.load(answer)
    return found


@pytest.mark.lasts(21)
def test_the_life_of_an_object(api_server: ApiServer, tmp_path: Path) -> None:
    api = api_server
    api.must("create", "namespace", NAMESPACE)
    keys = ["--from-literal=accessKeyId=test-id", "--from-literal=accessKeySecret=test-secret"]
    api.must("-n", NAMESPACE, "create", "secret", "generic", "ots-credentials", *keys)

    def get(kind: str, name: str) -> dict[str, Any] | None:
        found = api.kubectl("-n", NAMESPACE, "get", kind, name, "-o", "json")
        return dict(json.loads(found.stdout)) if found.returncode == 0 else None

    def reason(name: str, kind: str) -> str:
        conditions = ((get("ott", name) or {}).get("status") or {}).get("conditions") or ()
        return next((item["reason"] for item in conditions if item["type"] == kind), "")

    with Emulator() as emulator, operator_process(api, tmp_path / "operator.log"):
        fill(emulator, "flights")
        for name, changes in {"good": {}, "bad": {"source__table": "nowhere"}, "younger": {}}.items():
            endpoint = {"source__endpoint": emulator.endpoint, "sink__tablestore__endpoint": emulator.endpoint}
            document = tunnel_object(name, **endpoint, deletionPolicy="Delete", **changes)
            document["metadata"]["namespace"] = NAMESPACE
            api.must("apply", "--server-side", "-f", "-", document=document)
            if name == "good":
                wait_until(lambda: get("deployment", "good"), PATIENCE, "workers of the good object")

        wait_until(lambda: reason("bad", "TunnelReady") == "TableNotFound", PATIENCE, "the bad object says why")
        wait_until(lambda: reason("younger", "Stalled") == "TunnelInUse", PATIENCE, "the younger object waits")
        wait_until(lambda: ((get("ott", "good") or {}).get("status") or {}).get("replicas") == 1, PATIENCE, "one pod")

        api.must("-n", NAMESPACE, "scale", "ott/good", "--replicas=0")
        wait_until(lambda: not ((get("deployment", "good") or {})["spec"]["replicas"]), PATIENCE, "no workers")
        wait_until(lambda: reason("good", "Ready") == "NoWorkersWanted", PATIENCE, "settled at 0")
        shown = console(tmp_path / "operator.log")

        def versions() -> list[str]:
            return [(get("ott", name) or {})["metadata"]["resourceVersion"] for name in ("good", "bad", "younger")]

        def is_idle() -> bool:
            before = versions()
            time.sleep(SILENCE)
            return versions() == before

        # what was settled last is written first, which takes a busy machine some polls
        wait_until(is_idle, PATIENCE, "nothing is written for many polls")

        assert (shown["leads"], shown["state"], shown["stale"]) == (True, "leading", "")
        assert {line["name"]: line["state"] for line in shown["objects"]} == {
            "good": "waiting",
            "bad": "problem",
            "younger": "stalled",
        }
        assert all(line["looked"] and shown["time"] - line["observed"] < 30 for line in shown["objects"][:1])
        assert "test-secret" not in json.dumps(shown)
        api.must("-n", NAMESPACE, "delete", "ott", "good", "--timeout=90s")
        wait_until(lambda: get("deployment", "younger"), PATIENCE, "the younger object takes over")
        api.must("-n", NAMESPACE, "delete", "ott", "bad", "--timeout=90s")
    assert "test-secret" not in (tmp_path / "operator.log").read_text()
