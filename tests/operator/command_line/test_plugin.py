"""`kubectl ott` on a real API server: found by kubectl, with the caller's rights, read by a person or a pipe."""

from __future__ import annotations

import base64
import json
import subprocess
import sys
import tarfile
import uuid
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from ots_tunnel_operator.plugin.ott import Ott
from ots_tunnel_operator.plugin.why.advice import steps_for
from ots_tunnel_operator.reasons import Reason
from tests.operator.scenes.loopback_node import LoopbackNode
from tests.operator.scenes.operator_scene import running_scene
from tests.operator.scenes.pass_scene import PassScene
from tests.operator.scenes.plugin_scene import Plugin
from tests.operator.scenes.pod_front import PodFront
from tests.support.kube.api_server import ROOT, ApiServer
from tests.support.operator.plugin_objects import body, expired, late

pytestmark = [pytest.mark.api, pytest.mark.timeout(300)]

ESCAPE = "\x1b"


def store(api: ApiServer, namespace: str, name: str, found: dict[str, Any]) -> None:
    """Create an object with a status."""
    document = {key: found[key] for key in ("apiVersion", "kind", "spec")}
    document["metadata"] = {"name": name, "namespace": namespace, "labels": {"team": name.partition("-")[0]}}
    api.must("create", "-f", "-", document=document)
    patch = json.dumps({"status": {key: value for key, value in found["status"].items() if value is not None}})
    api.must("-n", namespace, "patch", "ott", name, "--subresource=status", "--type=merge", "-p", patch)


@pytest.fixture(scope="module")
def plugin(api_server: ApiServer) -> Iterator[Plugin]:
    """A namespace with three objects that no operator serves, and the command for it."""
    namespace = f"t-{uuid.uuid4().hex[:8]}"
    api_server.must("create", "namespace", namespace)
    for name, found in {"orders-copy": body(), "late-copy": late().body, "old-copy": expired().body}.items():
        store(api_server, namespace, name, dict(found))
    yield Plugin(api_server.kubeconfig, namespace)
    api_server.kubectl("delete", "namespace", namespace, "--wait=false")


@pytest.fixture
def reader(api_server: ApiServer, plugin: Plugin) -> str:
    """A user who may read objects, pods and events of the namespace, and nothing else."""
    user, place = f"reader-{uuid.uuid4().hex[:8]}", ("-n", plugin.namespace)
    rules = ["--verb=get,list", "--resource=tablestoretunnels.ots-tunnel.dev,pods,events"]
    api_server.must(*place, "create", "role", user, *rules)
    api_server.must(*place, "create", "rolebinding", user, f"--role={user}", f"--user={user}")
    return user


def test_objects_are_listed_with_what_needs_a_person(plugin: Plugin) -> None:
    shown = plugin.must("list").splitlines()

    assert [line.split()[0] for line in shown[1:4]] == ["late-copy", "old-copy", "orders-copy"]
    assert "TunnelExpired" in shown[2]
    summary = "3 objects: 1 ready, 2 not; 1 needs you"
    assert shown[-1] == f"{summary}: kubectl ott why old-copy -n {plugin.namespace}"
    assert ESCAPE not in "".join(shown)


def test_a_list_of_every_namespace_by_label(plugin: Plugin) -> None:
    shown = plugin.must("list", "-A", "-l", "team=orders").splitlines()

    assert shown[1].split()[:3] == [plugin.namespace, "orders-copy", "True"]
    assert shown[-1] == "1 object: 1 ready"


def test_the_program_of_the_archive_does_the_same(plugin: Plugin, tmp_path: Path) -> None:
    build = [sys.executable, str(ROOT / "operator" / "build_plugin.py"), "--folder", str(tmp_path)]
    subprocess.run(build, check=True, capture_output=True, timeout=60)
    with tarfile.open(next(tmp_path.glob("*.tar.gz"))) as archive:
        archive.extractall(tmp_path, filter="data")

    shown = replace(plugin, folder=tmp_path, is_measured=False).must("list", COLUMNS="60")

    assert shown == plugin.must("list", COLUMNS="60")


def test_a_narrow_output_is_followed(plugin: Plugin) -> None:
    shown = plugin.must("list", COLUMNS="60").splitlines()

    assert max(map(len, shown[:4])) <= 60
    assert "AGE" not in shown[0]


def test_why_of_an_object_that_waits_for_a_person(plugin: Plugin) -> None:
    shown = plugin.must("why", "ott/old-copy")

    assert "It waits for you (TunnelExpired for" in shown
    assert f"kubectl ott reset old-copy -n {plugin.namespace} --new-base --delete-tunnel --wait" in shown


def test_a_reader_gets_what_the_status_knows(plugin: Plugin, reader: str) -> None:
    denied = plugin.run("pause", "orders-copy", "--as", reader)
    shown = plugin.must("why", "orders-copy", "--as", reader)
    channels = plugin.must("channels", "orders-copy", "--as", reader)

    assert (denied.returncode, denied.stdout) == (1, "")
    assert "Forbidden" in denied.stderr
    assert "cannot patch resource" in denied.stderr
    assert "It follows the changes of the table" in shown
    assert channels.startswith(f"{plugin.namespace}/orders-copy: 9 channels: 5 open, 4 terminated")


def test_events_of_an_object_and_its_pods(api_server: ApiServer, plugin: Plugin, reader: str) -> None:
    place = ("-n", plugin.namespace)
    late = json.loads(api_server.must(*place, "get", "ott", "late-copy", "-o", "json"))
    pods = [f"late-copy-7d4f8b9c-{end}" for end in ("bbbbb", "ccccc")]
    own = {"kind": "TablestoreTunnel", "name": "late-copy", "uid": late["metadata"]["uid"]}
    happened = [(own, "LagHigh", "too late"), *(({"kind": "Pod", "name": pod}, "BackOff", f"of {pod}") for pod in pods)]
    now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    for number, (of, reason, message) in enumerate(happened):
        document = {
            "apiVersion": "v1",
            "kind": "Event",
            "metadata": {"name": f"event-{number}", "namespace": plugin.namespace},
            "involvedObject": of | {"namespace": plugin.namespace},
            "type": "Warning",
            "reason": reason,
            "message": message,
            "firstTimestamp": now,
            "lastTimestamp": now,
            "count": 2,
        }
        api_server.must("create", "-f", "-", document=document)

    shown = flat(plugin.must("events", "late-copy", "--as", reader))

    assert shown.startswith(f"{plugin.namespace}/late-copy: 2 events of it and its children, 2 warnings among them")
    assert "LagHigh (2 times since" in shown
    assert "BackOff of 2 Pods (4 times since" in shown
    assert f"kubectl --as={reader} -n {plugin.namespace} scale ott/late-copy" in shown


def test_the_advice_about_a_secret_leaves_its_other_keys(api_server: ApiServer, plugin: Plugin, tmp_path: Path) -> None:
    """Other programs may read the Secret as well."""
    place, name = ("-n", plugin.namespace), "ots-credentials"
    api_server.must(
        *place, "create", "secret", "generic", name, "--from-literal=theirs=1", "--from-literal=accessKeyId="
    )
    api_server.must(*place, "label", "secret", name, "team=shop")
    for key in ("accessKeyId", "accessKeySecret"):
        (tmp_path / key).write_text(f"new-{key}")
    ott = Ott({**body(), "metadata": {"name": "orders-copy", "namespace": plugin.namespace}})
    (step,) = steps_for(ott, Reason.KEY_MISSING, f"spec.source.credentials.secretRef.name {name!r} has no accessKeyId")
    (command,) = step.commands

    plugin.typed(command, tmp_path)

    found = json.loads(api_server.must(*place, "get", "secret", name, "-o", "json"))
    values = {key: base64.b64decode(value).decode() for key, value in found["data"].items()}
    assert values == {"theirs": "1", "accessKeyId": "new-accessKeyId", "accessKeySecret": "new-accessKeySecret"}
    assert found["metadata"]["labels"] == {"team": "shop"}


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (("why", "nowhere"), 1, '"nowhere" not found'),
        (("pause", "nowhere"), 1, '"nowhere" not found'),
        (("list", "--context", "nowhere"), 1, 'context "nowhere" does not exist'),
        (("list", "--as", "jane"), 1, "cannot list resource"),
        (("why", "pod/orders-copy"), 2, "found 'pod/orders-copy', allowed is NAME or ott/NAME"),
        (("pause",), 2, "Missing argument 'NAME...'"),
        (("top", "-A", "orders-copy"), 2, "exclude each other"),
        (("restart", "old-copy"), 1, "has no workers (phase Failed)"),
    ],
)
def test_refusals_are_one_line_with_a_code(plugin: Plugin, arguments: tuple[str, ...], code: int, said: str) -> None:
    done = plugin.run(*arguments)

    assert (done.returncode, done.stdout) == (code, "")
    assert said in done.stderr
    assert "Traceback" not in done.stderr


def test_top_without_a_terminal_prints_plain_looks(plugin: Plugin) -> None:
    once = plugin.must("top")
    twice = plugin.must("top", "orders-copy", "--count", "2", "--interval", "0.2")

    assert once.splitlines()[0].startswith("3 objects: 1 ready, 2 not")
    assert [line.split()[0] for line in once.splitlines()[5:]] == ["old-copy", "late-copy", "orders-copy"]
    assert twice.count("Streaming, Ready True (Consuming)") == 2
    assert ESCAPE not in once + twice


def test_top_on_a_terminal_is_left_by_a_key_and_leaves_the_terminal_as_it_was(plugin: Plugin) -> None:
    code, shown = plugin.on_terminal("top", until="q ends it", keys="q")

    assert code == 0
    assert shown.startswith("\x1b[?1049h\x1b[?25l")
    assert shown.endswith("\x1b[?25h\x1b[?1049l")
    assert "\x1b[31mFalse\x1b[0m" in shown


def test_top_on_a_terminal_ends_by_an_interrupt(plugin: Plugin) -> None:
    code, shown = plugin.on_terminal("top", "--interval", "3600", until="q ends it", keys="\x03")

    assert code == 130
    assert "\x1b[?25h\x1b[?1049l" in shown


async def test_pause_restart_and_resume_of_an_object_that_the_operator_serves(flights_scene: PassScene) -> None:
    scene, plugin = flights_scene, Plugin(flights_scene.api.kubeconfig, flights_scene.namespace)
    scene.secret()
    scene.apply(replicas=2)
    await scene.running()

    plugin.must("restart", "flights-copy")
    restarted = scene.read("deployment", "flights-copy")["spec"]["template"]["metadata"]["annotations"]
    await scene.step()
    kept = scene.read("deployment", "flights-copy")["spec"]["template"]["metadata"]["annotations"]
    why = plugin.must("why", "flights-copy")
    paused = plugin.must("pause", "flights-copy")
    again = plugin.must("pause", "flights-copy")
    await scene.until(lambda: scene.read("deployment", "flights-copy")["spec"]["replicas"] == 0)
    refused = plugin.run("restart", "flights-copy")
    plugin.must("resume", "flights-copy")
    await scene.until(lambda: scene.read("deployment", "flights-copy")["spec"]["replicas"] == 2)

    assert kept == restarted
    assert "kubectl.kubernetes.io/restartedAt" in kept
    assert "DestinationCreated: table 'flights_copy' in instance 'demo' was created for this object" in flat(why)
    assert "TunnelCreated" in why
    assert paused.startswith(f"{scene.namespace}/flights-copy pauses: ")
    assert again == f"{scene.namespace}/flights-copy is paused already.\n"
    assert refused.returncode == 1
    assert "is paused, so no worker runs: kubectl ott resume flights-copy" in refused.stderr


def test_a_deployment_of_somebody_else_is_not_restarted(api_server: ApiServer, plugin: Plugin) -> None:
    place = ("-n", plugin.namespace)
    api_server.must(*place, "create", "deployment", "late-copy", "--image=other:1")
    try:
        done = plugin.run("restart", "late-copy")
        found = json.loads(api_server.must(*place, "get", "deployment", "late-copy", "-o", "json"))
    finally:
        api_server.must(*place, "delete", "deployment", "late-copy")

    assert done.returncode == 1
    assert "does not belong to" in done.stderr
    assert not found["spec"]["template"]["metadata"].get("annotations")


@pytest.mark.lasts(10)
def test_channels_are_those_that_a_real_worker_tells(api_server: ApiServer, tmp_path: Path) -> None:
    with ExitStack() as stack:
        scene = stack.enter_context(running_scene(api_server.kubeconfig, "plugin-channels", tmp_path))
        scene.operator.start()
        scene.create()
        scene.until(lambda: bool(scene.kube.list("Pod", scene.namespace)), "a pod")
        node = stack.enter_context(LoopbackNode(scene, tmp_path))
        node.run()
        scene.until(lambda: scene.status().get("phase") == "Streaming" and scene.is_true("Ready"), "it is Ready")
        front = stack.enter_context(PodFront(api_server.kubeconfig, tmp_path))

        direct = Plugin(api_server.kubeconfig, scene.namespace).must("channels", "copy")
        shown = Plugin(front.kubeconfig, scene.namespace).must("channels", "copy")
        why = Plugin(api_server.kubeconfig, scene.namespace).must("why", "copy")
        (pod,) = [item["metadata"]["name"] for item in scene.kube.list("Pod", scene.namespace)]

    assert f"{pod} could not be asked: " in flat(direct)
    assert "by the status" in direct
    (line,) = [line for line in shown.splitlines() if line.startswith(pod)]
    assert line.split()[2:5] == ["Stream", "OPEN", "0s"]
    assert "could not be asked" not in shown
    assert "Every change has reached the sink." in why


@pytest.mark.lasts(10)
def test_the_way_out_of_an_expired_tunnel_as_it_is_typed(api_server: ApiServer, tmp_path: Path) -> None:
    with running_scene(api_server.kubeconfig, "plugin-way-out", tmp_path) as scene:
        plugin = Plugin(api_server.kubeconfig, scene.namespace)
        scene.operator.start()
        scene.create()
        scene.until(lambda: bool(scene.status().get("workers")), "a pod of its workers")
        before = scene.status()["tunnel"]["id"]
        scene.service.call("expire_tunnel", "demo", before)
        scene.until(lambda: scene.condition("Stalled").get("reason") == "TunnelExpired", "it says that it expired")

        lines = plugin.must("why", "copy").splitlines()
        pause, reset, resume = [line.strip() for line in lines[lines.index("Next") :] if line.startswith("    ")]
        plugin.typed(pause, tmp_path)
        shown = plugin.must(*reset.removeprefix("kubectl ott ").split(), "--dry-run")
        assert scene.status()["tunnel"]["id"] == before
        plugin.typed(f"{reset} --yes", tmp_path)
        after = scene.status()
        plugin.typed(resume, tmp_path)

        assert f"It deletes tunnel {before}" in shown
        assert "It loses deletions" in shown
        assert (after["reset"]["state"], after["reset"]["formerTunnelId"]) == ("Done", before)
        assert after["tunnel"]["id"] == after["reset"]["tunnelId"] != before
        scene.until(lambda: bool(scene.status().get("workers")), "its workers are started again")
        assert scene.condition("Stalled").get("status") == "False"


def flat(text: str) -> str:
    """Text on one line."""
    return " ".join(text.split())
