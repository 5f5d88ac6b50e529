"""`--from-object` reads an object and its Secrets from a real API server, with the caller's own rights."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from ots_emulator import Emulator
from ots_tunnel.client.sync_tunnel import SyncTunnelClient
from ots_tunnel.credentials import static_credentials
from ots_tunnel.model import Credentials, TunnelType
from tests.operator.scenes.pass_scene import fill
from tests.support.kube.api_server import ApiServer, cache
from tests.support.operator.objects import tunnel_object
from tests.support.programs.processes import bare_environment, module

pytestmark = [pytest.mark.api, pytest.mark.timeout(400)]

NAMESPACE = "from-object"
#: A person who may read the object and its Secret, and one who may read the object alone.
READER, OBJECT_READER = "reader", "object-reader"


@pytest.fixture
def emulator(api_server: ApiServer) -> Iterator[Emulator]:
    """An emulator with a table and a tunnel, an object that names both, and two persons."""
    with Emulator() as emulator:
        fill(emulator, "flights")
        keys = static_credentials(Credentials("test-id", "test-secret"))
        client = SyncTunnelClient(emulator.endpoint, "demo", keys)
        client.create_tunnel("flights", "flights-copy", TunnelType.BaseAndStream)
        client.close()
        api_server.must("create", "namespace", NAMESPACE)
        create(api_server, "secret", "generic", "ots-credentials", *literals("accessKeyId=test-id"))
        places = {"source__endpoint": emulator.endpoint, "sink__tablestore__endpoint": emulator.endpoint}
        document = tunnel_object("flights-copy", **places)
        document["metadata"]["namespace"] = NAMESPACE
        api_server.must("apply", "--server-side", "-f", "-", document=document)
        objects, secrets = "--resource=tablestoretunnels.ots-tunnel.dev", "--resource=secrets"
        for person, resources in {READER: (objects, secrets), OBJECT_READER: (objects,)}.items():
            create(api_server, "role", person, "--verb=get", *resources)
            create(api_server, "rolebinding", person, f"--role={person}", f"--user={person}")
        yield emulator
        api_server.must("delete", "namespace", NAMESPACE, "--wait=false")


def create(api: ApiServer, *arguments: str) -> None:
    api.must("-n", NAMESPACE, "create", *arguments)


def literals(first: str) -> list[str]:
    return [f"--from-literal={first}", "--from-literal=accessKeySecret=test-secret"]


def as_person(api: ApiServer, folder: Path, person: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run `ots-tunnel` with the kubeconfig of a person."""
    config = yaml.safe_load(api.kubeconfig.read_text())
    config["users"][0]["user"]["as"] = person
    path = folder / person
    path.write_text(yaml.safe_dump(config))
    environment = bare_environment(KUBECONFIG=str(path), PATH=str(cache() / "bin"), HOME=str(folder))
    command = module("ots_tunnel", *arguments, "--from-object", f"{NAMESPACE}/flights-copy")
    return subprocess.run(command, capture_output=True, text=True, env=environment, timeout=120, check=False)


@pytest.mark.lasts(20)
@pytest.mark.usefixtures("emulator")
def test_an_object_is_read_with_the_rights_of_the_caller(api_server: ApiServer, tmp_path: Path) -> None:
    read = as_person(api_server, tmp_path, READER, "tunnel", "describe", "-o", "json")
    refused = as_person(api_server, tmp_path, OBJECT_READER, "tunnel", "describe")
    unknown = as_person(api_server, tmp_path, READER, "channels", "--context", "nowhere")

    assert read.returncode == 0, read.stderr
    assert json.loads(read.stdout)["tunnel"] == "flights-copy"
    assert "test-secret" not in read.stdout + read.stderr
    assert refused.returncode == 5
    assert (
        'secrets "ots-credentials" is forbidden: User "object-reader" cannot get resource "secrets"' in refused.stderr
    )
    assert len(refused.stderr.splitlines()) == 1
    assert unknown.returncode == 2
    assert 'context "nowhere" does not exist' in unknown.stderr
