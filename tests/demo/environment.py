"""Environment of the demo: programs, images, a cluster, and the emulator in it."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from tests.cluster import local_cluster
from tests.demo import objects
from tests.demo.kube import DemoError, Kube, wait_until
from tests.demo.progress import Story
from tests.demo.scenario import ADMIN_PORT, DATA_PORT, Scenario

#: Same name as the chart, so that the chart's objects have this short name.
RELEASE = "ots-tunnel-operator"
CHART = Path(__file__).parents[2] / "charts" / "ots-tunnel-operator"


@dataclass(frozen=True)
class Images:
    """Names of the images and paths of their archives."""

    app: str
    app_archive: str
    spark: str = ""
    spark_archive: str = ""
    iceberg: str = ""
    iceberg_archive: str = ""

    @property
    def archives(self) -> tuple[str, ...]:
        """Paths of those archives that there are."""
        return tuple(one for one in (self.app_archive, self.spark_archive, self.iceberg_archive) if one)


@dataclass(frozen=True)
class Endpoints:
    """Addresses at which this process reaches the emulator."""

    data: str
    admin: str


def build_images(scenario: Scenario) -> Images:
    """Build the scenario's images, or find them in the cache."""
    spark = () if scenario.engine == "workers" else ("spark",)
    iceberg = ("spark-iceberg",) if scenario.table_format == "Iceberg" else ()
    lines = local_cluster.build_images("app", *spark, *iceberg)
    names = ("APP", "SPARK", "ICEBERG")
    return Images(*(lines.get(f"{name}_{part}", "") for name in names for part in ("IMAGE", "ARCHIVE")))


def start_local_cluster(scenario: Scenario, images: Images) -> Kube:
    """Start the one-node Kubernetes of tests/cluster and load the images into it."""
    cluster = local_cluster.Cluster(scenario.cluster)
    cluster.down(keep_images=True)  # objects of an earlier run would be mistaken for this run's
    cluster.up()
    cluster.load(*images.archives)
    return Kube.of_local_cluster(cluster.kubeconfig, local_cluster.BIN)


def use_context(context: str, images: Images, namespace: str) -> tuple[Kube, Images]:
    """Prepare an existing cluster: load or push the images; returns them under their names in that cluster."""
    if os.environ.get("LOAD_IMAGES"):
        _load_images(shlex.split(os.environ["LOAD_IMAGES"]), images)
    elif os.environ.get("REGISTRY"):
        images = _push_images(os.environ["REGISTRY"], images)
    else:
        print(
            f"CONTEXT={context} needs LOAD_IMAGES, a command that takes an image archive (such as "
            "LOAD_IMAGES='kind load image-archive'), or REGISTRY, where skopeo may push to and the cluster pulls from"
        )
        raise SystemExit(2)
    path = os.pathsep.join((str(local_cluster.BIN), os.environ.get("PATH", "")))
    kube = Kube({**os.environ, "PATH": path}, context)
    _remove_earlier_run(kube, namespace)
    return kube, images


def _load_images(command: list[str], images: Images) -> None:
    for archive in images.archives:
        if subprocess.run([*command, archive], check=False).returncode:
            raise DemoError(f"LOAD_IMAGES failed for {archive}")


def _push_images(registry: str, images: Images) -> Images:
    """Push with skopeo, which has the user's log-ins; names keep repository and tag."""

    def push(name: str, archive: str) -> str:
        if not name:
            return ""
        there = f"{registry.rstrip('/')}/{name.partition('/')[2]}"
        if subprocess.run(["skopeo", "copy", f"oci-archive:{archive}", f"docker://{there}"], check=False).returncode:
            raise DemoError(f"skopeo could not push {there}")
        return there

    if shutil.which("skopeo") is None:
        print("REGISTRY needs skopeo on PATH")
        raise SystemExit(2)
    return replace(
        images,
        app=push(images.app, images.app_archive),
        spark=push(images.spark, images.spark_archive),
        iceberg=push(images.iceberg, images.iceberg_archive),
    )


def _remove_earlier_run(kube: Kube, namespace: str) -> None:
    known = kube.kubectl("api-resources", "--api-group=ots-tunnel.dev", "-o", "name")
    if "tablestoretunnels" in known:  # while the operator still runs, because it must remove its finalizer
        kube.kubectl("-n", namespace, "delete", "tablestoretunnels", "--all", "--timeout=60s")
    kube.kubectl("delete", "namespace", namespace, "--ignore-not-found", "--timeout=110s")


@contextmanager
def emulator(kube: Kube, scenario: Scenario, images: Images, story: Story) -> Iterator[Endpoints]:
    """Run the emulator in the cluster; this process can reach it while the block runs."""
    kube.apply(objects.namespace(scenario.namespace))
    kube.apply(objects.secret(scenario), *objects.emulator(scenario, images.app))
    kube.kubectl(
        "-n", scenario.namespace, "rollout", "status", "deployment/ots-emulator", "--timeout=120s", timeout=130
    )
    if kube.context:
        with _port_forward(kube, scenario) as endpoints:
            yield endpoints
        return
    address = kube.get("-n", scenario.namespace, "service", "ots-emulator")["spec"]["clusterIP"]
    story.note(f"emulator at http://{address}:{DATA_PORT}, its admin port at http://{address}:{ADMIN_PORT}")
    yield Endpoints(f"http://{address}:{DATA_PORT}", f"http://{address}:{ADMIN_PORT}")


@contextmanager
def _port_forward(kube: Kube, scenario: Scenario) -> Iterator[Endpoints]:
    data, admin = _free_port(), _free_port()
    command = ["kubectl", "--context", kube.context, "-n", scenario.namespace, "port-forward", "service/ots-emulator"]
    command += [f"{data}:{DATA_PORT}", f"{admin}:{ADMIN_PORT}"]
    process = subprocess.Popen(command, env=kube.environment, stdout=subprocess.DEVNULL)
    try:
        wait_until("the port-forward to the emulator", lambda: _answers(data) and _answers(admin), 30)
        yield Endpoints(f"http://127.0.0.1:{data}", f"http://127.0.0.1:{admin}")
    finally:
        process.terminate()
        process.wait(timeout=10)


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _answers(port: int) -> bool:
    with socket.socket() as probe:
        probe.settimeout(1)
        return probe.connect_ex(("127.0.0.1", port)) == 0


def install_operator(kube: Kube, scenario: Scenario, images: Images, story: Story, chart: Path = CHART) -> None:
    """Run `helm install` from charts/ or of another chart, as a user does, with our images."""
    values: dict[str, object] = {"image": _image(images.app), "workerImage": _image(images.app)}
    if images.spark:
        values["sparkImage"] = _image(images.spark)
    if images.iceberg:
        values["sparkIcebergImage"] = _image(images.iceberg)
    if scenario.poll_seconds is not None:
        seconds = str(scenario.poll_seconds)
        values["operator.extraArgs"] = ["--poll-seconds", seconds, "--status-seconds", seconds]
    command = ["upgrade", "--install", RELEASE, str(chart)]
    command += ["-n", scenario.operator_namespace, "--create-namespace", "--wait", "--timeout", "180s"]
    for key, value in values.items():
        command += ["--set-json", f"{key}={json.dumps(value)}"]
    story.command("helm", "install", RELEASE, "charts/ots-tunnel-operator", "-n", scenario.operator_namespace)
    kube.helm(*command)


def _image(name: str) -> dict[str, str]:
    repository, _, tag = name.rpartition(":")
    registry, _, path = repository.partition("/")
    return {"registry": registry, "repository": path, "tag": tag}
