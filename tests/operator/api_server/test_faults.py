"""Every kind of call to the API server fails once, in every way: the objects reach their state nevertheless.

A proxy before a real API server injects the faults (`scenes.api_faults`), and a life of some objects makes every call
(`scenes.eventful_life`). CALLS is the recorded list of them: a call that is not in it, or that no fault has met, fails
the test. On virtual time the stories of tests/simulation do the same with many seeds.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from tests.operator.scenes.api_faults import ApiFaults, Call, Fault, busiest, impatient
from tests.operator.scenes.eventful_life import Stranger, end, live
from tests.operator.scenes.operator_scene import FAST, OperatorScene, running_scene
from tests.support.kube.api_server import ApiServer
from tests.support.kube.kube_api import KubeApi

pytestmark = [pytest.mark.api, pytest.mark.timeout(2400), pytest.mark.unmeasured]

#: Seconds without a write after which the objects are at rest.
REST_SECONDS = 3.0
#: Seconds of every wait where each pass fails at the next call: the pauses between them grow up to a minute.
PATIENCE = 900.0
#: Most requests of one call about one path within WINDOW seconds; without a fault there are up to 12.
STORM, WINDOW = 30, 10.0

KOPF_WATCH = ("kopf", "watch")

RECORDED = {
    "kopf": {
        "get": "/api /api/v1 /apis /apis/admissionregistration.k8s.io/v1 /apis/apiextensions.k8s.io/v1 "
        "/apis/ots-tunnel.dev/v1alpha1",
        "list": "tablestoretunnels",
        "watch": "tablestoretunnels",
        "patch": "tablestoretunnels",
    },
    "operator": {
        "get": "configmaps deployments leases poddisruptionbudgets rolebindings roles secrets serviceaccounts "
        "sparkapplications tablestoretunnels",
        "list": "configmaps deployments poddisruptionbudgets pods rolebindings roles serviceaccounts sparkapplications "
        "tablestoretunnels",
        "watch": "configmaps deployments poddisruptionbudgets pods rolebindings roles secrets serviceaccounts "
        "sparkapplications tablestoretunnels",
        "apply": "configmaps deployments poddisruptionbudgets rolebindings roles serviceaccounts sparkapplications",
        "try": "deployments",
        "patch": "deployments pods tablestoretunnels tablestoretunnels/status",
        "create": "events leases",
        "update": "leases",
        "delete": "configmaps sparkapplications",
    },
}
CALLS = sorted(
    Call(client, verb, resource)
    for client, verbs in RECORDED.items()
    for verb, resources in verbs.items()
    for resource in resources.split()
)


def mixed() -> dict[Call, Fault]:
    """One fault for each call, of each kind that there is.

    A silent watch takes more than a minute, and kopf's calls at its start, one after the other, half a minute.
    """
    return {
        call: suffered[number % len(suffered)]
        for number, call in enumerate(CALLS)
        for suffered in [sorted(call.suffers - {Fault.SILENT})]
        if not call.resource.startswith("/")
    }


def one_kind(fault: Fault) -> dict[Call, Fault]:
    """This fault for each call that can suffer it."""
    return {call: fault for call in CALLS if fault in call.suffers}


@pytest.mark.lasts(60)
def test_every_call_suffers_a_fault(spark_api_server: ApiServer, tmp_path: Path) -> None:
    wanted = mixed()

    assert set(wanted.values()) == {*Fault} - {Fault.SILENT}
    judge(spark_api_server, tmp_path, "mixed", wanted)


@pytest.mark.long
@pytest.mark.lasts(150)
@pytest.mark.parametrize("fault", list(Fault))
def test_every_call_suffers_every_fault(spark_api_server: ApiServer, tmp_path: Path, fault: Fault) -> None:
    judge(spark_api_server, tmp_path, fault, one_kind(fault))


def judge(api: ApiServer, folder: Path, name: str, wanted: Mapping[Call, Fault]) -> None:
    """Live under the faults, and judge the end and the way there."""
    namespace = f"faults-{name}"
    stranger = Stranger(KubeApi(api.kubeconfig))
    faults = ApiFaults(wanted.get, stranger.meddle)
    flags = (*FAST, "--lease-namespace", namespace)
    with running_scene(api.kubeconfig, namespace, folder, flags=flags, middleware=faults.stand_between) as scene:
        scene.patience = PATIENCE
        live(scene)
        scene.until_quiet(REST_SECONDS)
        overwritten = stranger.overwritten()
        process = scene.operator.pid
        end(scene)
        scene.until(lambda: set(faults.struck) >= set(wanted), f"a fault for {left(wanted, faults)}")
        assert scene.operator.pid == process
        assert scene.operator.stop() == 0, scene.operator.last_output()
        broken = list(errors(scene))

    # kopf opens a watch again at once that ended in order, and has no setting for it
    number, busy = busiest(
        [sent for sent in faults.requests if (sent.call.client, sent.call.verb) != KOPF_WATCH], WINDOW
    )
    judged = {
        "not in CALLS": faults.calls - set(CALLS),
        "never made": set(CALLS) - faults.calls,
        "never failed": set(wanted) - set(faults.struck),
        "overwritten": overwritten,
        "before the pause was over": list(impatient(faults.requests)),
        "storm": [f"{number} x {busy}"] if number > STORM else [],
        "logged": broken,
    }
    assert {rule: found for rule, found in judged.items() if found} == {}


def left(wanted: Mapping[Call, Fault], faults: ApiFaults) -> str:
    """The calls that have not met their fault."""
    return ", ".join(f"{call} ({fault})" for call, fault in wanted.items() if call not in faults.struck)


def errors(scene: OperatorScene) -> Iterator[str]:
    """What the operator itself logged as a defect; kopf logs each refused call as an error."""
    for line in scene.operator.last_output(1 << 24).splitlines():
        entry = json.loads(line) if line.startswith("{") else {"level": "ERROR", "logger": "none", "message": line}
        if entry["level"] in {"ERROR", "CRITICAL"} and not entry["logger"].startswith("kopf"):
            yield line
