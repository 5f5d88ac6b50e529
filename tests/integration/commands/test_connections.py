"""Where commands get endpoint, instance and keys from: the environment, profiles, an object of the cluster."""

from __future__ import annotations

import base64
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from ots_emulator import Settings
from ots_tunnel.cli import cli
from ots_tunnel.connections.kubernetes_object import KIND
from ots_tunnel.console.exit_codes import exit_code
from ots_tunnel.errors import ConfigError, Explained
from tests.support.verify_scene import COPY, INSTANCE, SOURCE, VerifyScene, row, verify_scene

#: A kubectl that has these objects: files by kind and name. It refuses what it was not asked for.
KUBECTL = """#!{python}
import pathlib, sys
options = sys.argv[1:3] if sys.argv[1] == "--context" else []
get, kind, name, n, namespace, o, form = sys.argv[1 + len(options):]
assert (get, n, o, form) == ("get", "--namespace", "--output", "json"), sys.argv
found = pathlib.Path({folder!r}, f"{{kind}}.{{namespace}}.{{name}}.json")
if options == ["--context", "forbidden"]:
    sys.exit('Error from server (Forbidden): secrets "ots" is forbidden: User "me" cannot get resource "secrets"')
if not found.exists():
    sys.exit(f'Error from server (NotFound): {{kind}} "{{name}}" not found')
print(found.read_text())
"""


@pytest.fixture
def scene(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[VerifyScene]:
    """Two equal tables and a tunnel; no profile, no variable and no cluster of the person who runs the test."""
    for name in ("ENDPOINT", "INSTANCE", "ACCESS_KEY_ID", "ACCESS_KEY_SECRET", "SECURITY_TOKEN", "PROFILE"):
        monkeypatch.delenv(f"OTS_{name}", raising=False)
    monkeypatch.setenv("OTS_TUNNEL_PROFILES", str(tmp_path / "profiles.yaml"))
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    monkeypatch.chdir(tmp_path)
    with verify_scene(tmp_path, Settings(init_delay=0.0)) as scene:
        scene.create()
        scene.fill([row(1), row(2)])
        assert create(scene).exit_code == 0
        yield scene


def create(scene: VerifyScene) -> Result:
    place = ["--endpoint", scene.emulator.endpoint, "--instance", INSTANCE, "--credentials", str(scene.folder)]
    return call("tunnel", "create", SOURCE, "copy", *place)


def call(*arguments: str, **variables: str) -> Result:
    return CliRunner().invoke(cli, arguments, env=variables)


def tunnels(result: Result) -> list[str]:
    assert result.exit_code == 0, (result.output, result.exception)
    return [found["tunnel"] for found in json.loads(result.stdout)]


def variables_of(scene: VerifyScene, **changes: str) -> dict[str, str]:
    keys = {"OTS_ACCESS_KEY_ID": "test-id", "OTS_ACCESS_KEY_SECRET": "test-secret"}
    return {"OTS_ENDPOINT": scene.emulator.endpoint, "OTS_INSTANCE": INSTANCE, **keys, **changes}


def test_the_environment_names_everything(scene: VerifyScene) -> None:
    variables = variables_of(scene)

    assert tunnels(call("tunnel", "list", SOURCE, "-o", "json", **variables)) == ["copy"]
    compared = call("verify", "--table", SOURCE, "--to-table", COPY, **variables)
    assert compared.exit_code == 0, (compared.output, compared.exception)


def test_wrong_keys_are_called_as_their_variables(scene: VerifyScene) -> None:
    denied = call("tunnel", "list", SOURCE, **variables_of(scene, OTS_ACCESS_KEY_SECRET="hush")).exception

    assert isinstance(denied, Explained)
    assert exit_code(denied) == 12
    assert "does not accept the AccessKey in OTS_ACCESS_KEY_ID and OTS_ACCESS_KEY_SECRET" in str(denied)
    assert "correct OTS_ACCESS_KEY_ID and OTS_ACCESS_KEY_SECRET there, OTS_INSTANCE, or the clock" in str(denied)
    assert "hush" not in str(denied)


def test_what_is_missing_is_named_with_the_ways_to_give_it(scene: VerifyScene) -> None:
    missing = call("channels", SOURCE, "copy", OTS_INSTANCE=INSTANCE).exception

    assert isinstance(missing, ConfigError)
    assert str(missing) == (
        "missing the endpoint: --endpoint, OTS_ENDPOINT, --profile or --from-object; missing the keys: --credentials, "
        "OTS_ACCESS_KEY_ID and OTS_ACCESS_KEY_SECRET, --profile or --from-object"
    )


def write_profiles(scene: VerifyScene, default: str = "") -> None:
    shop = {"endpoint": scene.emulator.endpoint, "instance": INSTANCE, "credentials": {"directory": "."}}
    wrong = {**shop, "instance": "other"}
    document = {"profiles": {"shop": shop, "wrong": wrong}, **({"default": default} if default else {})}
    (scene.folder / "profiles.yaml").write_text(json.dumps(document))


def test_a_profile_names_everything(scene: VerifyScene) -> None:
    write_profiles(scene)
    asked = ("tunnel", "list", SOURCE, "-o", "json")

    assert tunnels(call(*asked, "--profile", "shop")) == ["copy"]
    assert tunnels(call(*asked, OTS_PROFILE="shop")) == ["copy"]
    assert tunnels(call(*asked, "--profile", "shop", OTS_PROFILE="wrong", OTS_INSTANCE="other")) == ["copy"]
    assert tunnels(call(*asked, "--profile", "wrong", "--instance", INSTANCE)) == ["copy"]
    assert isinstance(call(*asked).exception, ConfigError)
    write_profiles(scene, default="shop")
    assert tunnels(call(*asked)) == ["copy"]


def test_both_sides_of_a_comparison_have_profiles(scene: VerifyScene) -> None:
    write_profiles(scene)
    asked = ("verify", "--table", SOURCE, "--to-table", COPY, "--profile", "shop")

    assert call(*asked).exit_code == 0
    assert call(*asked, "--to-profile", "shop").exit_code == 0
    refused = call(*asked, "--to-profile", "wrong").exception
    assert isinstance(refused, Explained)
    assert (
        f"correct accessKeyId and accessKeySecret there, {scene.folder}/profiles.yaml: profiles.wrong.instance"
        in str(refused)
    )


def test_the_shell_completes_the_names_of_profiles(scene: VerifyScene) -> None:
    write_profiles(scene)

    words = {
        "_OTS_TUNNEL_COMPLETE": "bash_complete",
        "COMP_WORDS": "ots-tunnel channels --profile s",
        "COMP_CWORD": "3",
    }
    completed = CliRunner().invoke(cli, env=words, prog_name="ots-tunnel")

    assert completed.output == "plain,shop\n"


def put_into_cluster(scene: VerifyScene, **changes: Any) -> None:
    """Let kubectl find an object and its Secret."""
    side = {
        "endpoint": scene.emulator.endpoint,
        "instance": INSTANCE,
        "credentials": {"secretRef": {"name": "ots"}},
    }
    source = {**side, "table": SOURCE, "tunnel": {"name": "copy"}}
    keys = {"accessKeyId": "test-id", "accessKeySecret": "test-secret"}
    data = {name: base64.b64encode(value.encode()).decode() for name, value in keys.items()}
    spec = {"source": source, "sink": {"tablestore": {**side, "table": COPY}}, **changes}
    (scene.folder / f"{KIND}.shop.orders-copy.json").write_text(json.dumps({"spec": spec}))
    (scene.folder / "secret.shop.ots.json").write_text(json.dumps({"data": data}))
    program = scene.folder / "bin" / "kubectl"
    program.parent.mkdir()
    program.write_text(KUBECTL.format(python=sys.executable, folder=str(scene.folder)))
    program.chmod(0o755)


def test_an_object_names_everything(scene: VerifyScene) -> None:
    put_into_cluster(scene)
    of_object = ("--from-object", "shop/orders-copy")

    assert tunnels(call("tunnel", "list", *of_object, "-o", "json")) == ["copy"]
    described = json.loads(call("tunnel", "describe", *of_object, "-o", "json").stdout)
    channels = json.loads(call("channels", *of_object, "--context", "mine", "-o", "json").stdout)
    assert described["channels"] == channels
    records = json.loads(call("tail", *of_object, "--no-follow", "-o", "json").stdout)
    assert [record["key"]["n"] for record in records] == [1, 2]
    compared = call("verify", *of_object, OTS_PROFILE="of no interest")
    assert compared.exit_code == 0, (compared.output, compared.exception)
    assert compared.stdout.startswith(f"equal: {INSTANCE}/{SOURCE} at ")


def test_what_the_cluster_refuses_is_said_in_its_words(scene: VerifyScene) -> None:
    missing_program = call("channels", "--from-object", "shop/orders-copy").exception
    put_into_cluster(scene)
    missing = call("channels", "--from-object", "shop/other").exception
    forbidden = call("channels", "--from-object", "shop/orders-copy", "--context", "forbidden").exception
    both = call("channels", "--from-object", "shop/orders-copy", "--profile", "shop")

    assert str(missing_program) == "--from-object: kubectl is not installed, or not on the PATH"
    assert isinstance(missing, ConfigError)
    assert '(NotFound): tablestoretunnels.ots-tunnel.dev "other" not found' in str(missing)
    assert 'User "me" cannot get resource "secrets"' in str(forbidden)
    assert both.exit_code == 2
    assert "--profile and --from-object exclude each other" in both.output


def test_an_object_names_its_table_of_leases(scene: VerifyScene) -> None:
    side = {"endpoint": scene.emulator.endpoint, "instance": INSTANCE, "credentials": {"secretRef": {"name": "ots"}}}
    put_into_cluster(scene, source={**side, "table": SOURCE, "stream": {"leaseTable": "their_leases"}})

    shown = call("stream", "leases", "--from-object", "shop/orders-copy")

    assert "their_leases" in str(shown.exception), shown.output


@pytest.mark.parametrize(
    "asked", [("channels",), ("tunnel", "list"), ("tunnel", "describe"), ("tail",), ("stream", "leases")], ids=" ".join
)
def test_names_are_needed_without_an_object(scene: VerifyScene, asked: tuple[str, ...]) -> None:
    refused = call(*asked, **variables_of(scene))

    assert refused.exit_code == 2
    assert "missing TABLE" in refused.output
    assert "or --from-object" in refused.output
