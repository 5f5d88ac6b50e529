"""The operator's passes against a real API server and the emulator; no pods run."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import Any

import pytest

from ots_emulator.settings import AfterRetention
from ots_tunnel.client.tunnel import TunnelClient
from ots_tunnel.errors import PossibleGap
from ots_tunnel.model import ChannelInfo, Checkpoint, ClientId, TunnelId, TunnelType
from ots_tunnel.protocol.token import build_token, parse_token
from ots_tunnel_operator.kube.kinds import POD, TUNNEL
from ots_tunnel_operator.times import timestamp
from tests.operator.scenes.pass_scene import KEYS, SETTINGS, PassScene, fill, table_admin
from tests.support.waiting import until

pytestmark = pytest.mark.api


@pytest.fixture
def scene(flights_scene: PassScene) -> PassScene:
    return flights_scene


async def client_of(scene: PassScene) -> TunnelClient:
    return TunnelClient(scene.emulator.endpoint, "demo", lambda: KEYS)


async def test_an_object_becomes_destination_tunnel_and_workers(scene: PassScene) -> None:
    scene.secret()
    scene.apply(replicas=2)

    await scene.running()

    status = scene.status()
    assert scene.stored()["tables"] == ["flights", "flights_copy"]
    assert len(scene.stored()["tunnels"]) == 1
    assert status["tunnel"]["createdByOperator"] is True
    assert status["destination"]["createdByOperator"] is True
    assert len(status["conditions"]) == 11
    assert scene.condition("TunnelReady")[0] == "True"
    assert scene.condition("Ready")[:2] == ("False", "StartingWorkers")
    deployment = scene.read("deployment", "flights-copy")
    assert deployment["spec"]["replicas"] == 2
    assert "test-secret" not in str(scene.read("configmap", "flights-copy-config"))
    assert "test-secret" not in str(status)


async def test_a_pass_over_a_settled_object_writes_nothing(scene: PassScene) -> None:
    scene.secret()
    scene.apply()
    await scene.running()
    await scene.until(lambda: scene.status().get("replicas") == 1)
    await scene.step()
    before = scene.read("ott", "flights-copy")["metadata"]["resourceVersion"]
    versions = {kind: scene.read(kind, name)["metadata"]["resourceVersion"] for kind, name in CHILDREN.items()}

    for _ in range(3):
        await scene.step()

    assert scene.read("ott", "flights-copy")["metadata"]["resourceVersion"] == before
    assert versions == {kind: scene.read(kind, name)["metadata"]["resourceVersion"] for kind, name in CHILDREN.items()}


CHILDREN = {"deployment": "flights-copy", "configmap": "flights-copy-config"}


async def test_scale_zero_and_suspend_reach_the_workers(scene: PassScene) -> None:
    scene.secret()
    scene.apply()
    await scene.running()

    scene.api.must("-n", scene.namespace, "scale", "ott/flights-copy", "--replicas=4")
    await scene.step()
    assert scene.read("deployment", "flights-copy")["spec"]["replicas"] == 4

    scene.api.must("-n", scene.namespace, "scale", "ott/flights-copy", "--replicas=0")
    await scene.step()
    assert scene.read("deployment", "flights-copy")["spec"]["replicas"] == 0
    assert scene.condition("Ready")[:2] in {("False", "Scaling"), ("False", "NoWorkersWanted")}

    scene.api.must(
        "-n", scene.namespace, "patch", "ott", "flights-copy", "--type=merge", "-p", '{"spec":{"replicas":2}}'
    )
    await scene.step()
    scene.api.must("-n", scene.namespace, "patch", "ott", "flights-copy", "--type=merge", "-p", SUSPEND)
    await scene.until(lambda: scene.read("deployment", "flights-copy")["spec"]["replicas"] == 0)
    assert scene.status()["phase"] == "Suspended"


SUSPEND = '{"spec":{"suspend":true}}'


async def test_another_client_s_change_of_the_deployment_is_reverted(scene: PassScene) -> None:
    scene.secret()
    scene.apply()
    await scene.running()
    scene.api.must("-n", scene.namespace, "scale", "deployment/flights-copy", "--replicas=7")

    await scene.step()

    assert scene.read("deployment", "flights-copy")["spec"]["replicas"] == 1


BAD: list[tuple[str, dict[str, Any], tuple[str, str], str, str, str]] = [
    ("missing secret", {}, ("", ""), "CredentialsValid", "SecretNotFound", "secretRef.name 'ots-credentials'"),
    ("wrong id", {}, ("nobody", "x"), "CredentialsValid", "", "spec.source.credentials.secretRef.name"),
    ("wrong key", {}, ("test-id", "wrong"), "CredentialsValid", "AuthFailed", "accessKeySecret"),
    (
        "missing table",
        {"source__table": "nowhere"},
        ("test-id", "test-secret"),
        "TunnelReady",
        "TableNotFound",
        "spec.source.table 'nowhere'",
    ),
    (
        "no answer",
        {"source__endpoint": "http://127.0.0.1:9"},
        ("test-id", "test-secret"),
        "TunnelReady",
        "EndpointUnreachable",
        "spec.source.endpoint 'http://127.0.0.1:9'",
    ),
    (
        "no answer from the sink",
        {"sink__tablestore__endpoint": "http://127.0.0.1:9"},
        ("test-id", "test-secret"),
        "SinkReady",
        "EndpointUnreachable",
        "spec.sink.tablestore.endpoint",
    ),
    (
        "unknown instance",
        {"source__instance": "other"},
        ("test-id", "test-secret"),
        "TunnelReady",
        "",
        "spec.source",
    ),
]


@pytest.mark.parametrize(
    ("changes", "keys", "kind", "reason", "text"), [case[1:] for case in BAD], ids=[c[0] for c in BAD]
)
async def test_bad_input_is_named_and_leaves_everything_as_it_was(
    scene: PassScene, changes: dict[str, Any], keys: tuple[str, str], kind: str, reason: str, text: str
) -> None:
    if keys[0]:
        scene.secret(identifier=keys[0], value=keys[1])
    scene.apply(**changes)
    before = scene.stored(), [scene.names(kind) for kind in ("configmaps", "deployments", "serviceaccounts")]

    for _ in range(2):
        await scene.step()

    status, found, message = scene.condition(kind)
    assert (status, reason or found) == ("False", found)
    assert text in message
    assert scene.condition("Ready")[:2] == ("False", found)
    assert "x" * 3 not in message
    events = [item for item in scene.names("events") if item.startswith("flights-copy.")]
    assert len(events) == 1
    after = scene.stored(), [scene.names(kind) for kind in ("configmaps", "deployments", "serviceaccounts")]
    assert after == before


async def test_an_object_recovers_when_its_secret_is_created(scene: PassScene) -> None:
    scene.apply()
    await scene.step()
    assert scene.condition("CredentialsValid")[:2] == ("False", "SecretNotFound")

    scene.secret()
    await scene.running()

    assert scene.condition("CredentialsValid")[0] == "True"


async def test_rows_in_the_destination_are_refused_and_nothing_is_created(scene: PassScene) -> None:
    fill(scene.emulator, "flights_copy", deviation_seconds=9_223_372_036_854)
    scene.secret()
    scene.apply()

    await scene.step()

    assert scene.condition("SinkReady")[:2] == ("False", "DestinationNotEmpty")
    assert scene.stored()["tunnels"] in ([], {})


async def test_delete_with_retain_keeps_the_tunnel_and_a_second_object_adopts_it(scene: PassScene) -> None:
    scene.secret()
    scene.apply()
    await scene.running()
    first = scene.status()["tunnel"]["id"]

    await scene.delete()
    assert len(scene.stored()["tunnels"]) == 1
    scene.apply("another")
    await scene.running("another")

    tunnel = scene.status("another")["tunnel"]
    assert (tunnel["id"], tunnel["createdByOperator"]) == (first, False)


async def test_delete_deletes_the_tunnel_it_created_and_no_other(scene: PassScene) -> None:
    scene.secret()
    scene.apply(deletionPolicy="Delete", replicas=0)
    await scene.running()

    await scene.delete()

    assert scene.stored()["tunnels"] in ([], {})
    assert "flights_copy" in scene.stored()["tables"]


@pytest.mark.parametrize(("kind", "left"), [(TunnelType.BaseAndStream, 0), (TunnelType.Stream, 1)])
async def test_delete_finds_the_tunnel_of_a_creation_that_was_never_answered(
    scene: PassScene, kind: TunnelType, left: int
) -> None:
    scene.secret()
    scene.apply(deletionPolicy="Delete", replicas=0)
    intent = {"status": {"tunnel": {"createIntentTime": timestamp(time.time())}}}
    await scene.kube.patch(TUNNEL, scene.namespace, "flights-copy", intent, "status")
    client = await client_of(scene)
    await client.create_tunnel("flights", "flights-copy", kind)
    await client.close()

    await scene.delete()

    assert len(scene.stored()["tunnels"]) == left


async def test_delete_leaves_an_adopted_tunnel(scene: PassScene) -> None:
    scene.secret()
    client = await client_of(scene)
    await client.create_tunnel("flights", "flights-copy", TunnelType.BaseAndStream)
    await client.close()
    scene.apply(deletionPolicy="Delete", replicas=0)
    await scene.running()
    assert scene.status()["tunnel"]["createdByOperator"] is False

    await scene.delete()

    assert len(scene.stored()["tunnels"]) == 1


async def test_deletion_gives_up_with_a_warning(scene: PassScene) -> None:
    scene.secret()
    scene.apply(deletionPolicy="Delete", replicas=0)
    await scene.running()
    scene.api.must("-n", scene.namespace, "delete", "secret", "ots-credentials")

    await scene.delete(settings=replace(SETTINGS, delete_seconds=-1.0))

    events = scene.api.must("-n", scene.namespace, "get", "events", "-o", "jsonpath={.items[*].reason}")
    assert "TunnelLeftBehind" in events
    assert len(scene.stored()["tunnels"]) == 1


async def test_a_tunnel_of_another_type_is_not_adopted(scene: PassScene) -> None:
    scene.secret()
    client = await client_of(scene)
    await client.create_tunnel("flights", "flights-copy", TunnelType.Stream)
    await client.close()
    scene.apply()

    await scene.step()

    assert scene.condition("TunnelReady")[:2] == ("False", "SpecMismatch")
    assert scene.stored()["tables"] == ["flights"]


async def test_a_moved_tunnel_without_its_destination_is_not_resumed(scene: PassScene) -> None:
    scene.secret()
    client = await client_of(scene)
    tunnel_id = await client.create_tunnel("flights", "flights-copy", TunnelType.BaseAndStream)

    async def channels() -> tuple[ChannelInfo, ...]:
        return (await client.describe_tunnel("flights", "flights-copy")).channels

    channel = (await until(channels, 20, "the tunnel has channels"))[0].channel_id
    reader = ClientId("somebody")
    token = (await client.get_checkpoint(tunnel_id, reader, channel)).token
    await client.checkpoint(tunnel_id, reader, channel, Checkpoint(token, 1))
    await client.close()
    scene.apply()

    await scene.step()

    assert scene.condition("Stalled")[:2] == ("True", "DestinationBehindTunnel")
    assert scene.stored()["tables"] == ["flights"]


async def test_a_record_of_another_destination_is_not_believed(scene: PassScene) -> None:
    scene.secret()
    scene.apply()
    await scene.running()
    before = scene.read("configmap", "flights-copy-config")["data"]
    # as if the table had been edited before the API server refused that
    another = {"status": {"destination": {"table": "flights_other"}}}
    await scene.kube.patch(TUNNEL, scene.namespace, "flights-copy", another, "status")

    for _ in range(2):
        await scene.step()

    assert scene.condition("Stalled")[:2] == ("True", "DestinationChanged")
    assert "'flights_other'" in scene.condition("SinkReady")[2]
    assert scene.condition("Ready")[:2] == scene.condition("SinkReady")[:2] == ("False", "DestinationChanged")
    assert scene.read("deployment", "flights-copy")["spec"]["replicas"] == 0
    assert scene.read("configmap", "flights-copy-config")["data"] == before
    assert scene.status()["destination"]["table"] == "flights_other"


async def test_a_record_without_a_place_is_completed(scene: PassScene) -> None:
    scene.secret()
    scene.apply()
    await scene.running()
    place = scene.status()["destination"]
    without = {"status": {"destination": {"endpoint": None, "instance": None, "table": None}}}
    await scene.kube.patch(TUNNEL, scene.namespace, "flights-copy", without, "status")

    await scene.step()

    found = scene.status()["destination"]
    assert {key: found[key] for key in ("endpoint", "instance", "table", "createdByOperator")} == {
        key: place[key] for key in ("endpoint", "instance", "table", "createdByOperator")
    }
    assert scene.condition("SinkReady")[0] == "True"


async def test_a_vanished_tunnel_is_never_created_again(scene: PassScene) -> None:
    scene.secret()
    scene.apply()
    await scene.running()
    client = await client_of(scene)
    await client.delete_tunnel("flights", "flights-copy")
    await client.close()

    for _ in range(3):
        await scene.step()

    assert scene.condition("Stalled")[:2] == ("True", "TunnelNotFound")
    assert "reset" in scene.condition("Stalled")[2]
    assert scene.read("deployment", "flights-copy")["spec"]["replicas"] == 0
    assert scene.stored()["tunnels"] in ([], {})


async def test_a_vanished_tunnel_stays_vanished_when_its_table_goes_too(scene: PassScene) -> None:
    scene.secret()
    scene.apply()
    await scene.running()
    client, admin = await client_of(scene), table_admin(scene.emulator)
    await client.delete_tunnel("flights", "flights-copy")
    await client.close()
    await scene.step()
    assert scene.condition("Stalled")[:2] == ("True", "TunnelNotFound")
    admin.delete("flights")
    admin.close()

    for _ in range(2):
        for cache in scene.caches.values():
            cache.source.table = None
        await scene.step()

    assert scene.condition("Stalled")[:2] == ("True", "TunnelNotFound")
    assert scene.condition("TunnelReady")[:2] == ("False", "TunnelNotFound")
    assert "stage" not in scene.status()["tunnel"]
    assert scene.status()["phase"] == "Failed"
    assert scene.read("deployment", "flights-copy")["spec"]["replicas"] == 0

    scene.api.must("-n", scene.namespace, "delete", "secret", "ots-credentials")
    for cache in scene.caches.values():
        cache.source.forget()
    await scene.step()

    assert scene.condition("Stalled")[:2] == ("True", "TunnelNotFound")
    assert scene.read("deployment", "flights-copy")["spec"]["replicas"] == 0


async def test_what_is_created_or_adopted_has_an_event(scene: PassScene) -> None:
    scene.secret()
    scene.apply()
    await scene.running()
    await scene.delete()
    scene.apply("another")
    await scene.running("another")

    found = scene.api.must("-n", scene.namespace, "get", "events", "-o", "jsonpath={.items[*].reason}").split()
    assert {"DestinationCreated", "TunnelCreated", "DestinationAdopted", "TunnelAdopted"} <= set(found)


def terminated(message: str) -> dict[str, Any]:
    """The status of a pod whose worker has ended with exit code 14."""
    state = {"terminated": {"exitCode": 14, "reason": "Error", "message": message}}
    container = {"name": "worker", "image": "worker:1", "imageID": "", "restartCount": 1, "ready": False}
    return {"status": {"phase": "Running", "containerStatuses": [container | {"lastState": state, "state": {}}]}}


async def test_changes_that_may_be_missing_are_reported_and_accepted(scene: PassScene) -> None:
    scene.secret()
    scene.apply(source__tunnel__type="Stream")
    await scene.running()
    client = await client_of(scene)
    (channel,) = (await client.describe_tunnel("flights", "flights-copy")).channels
    reader, tunnel_id = ClientId("somebody"), TunnelId(scene.status()["tunnel"]["id"])
    stored = await client.get_checkpoint(tunnel_id, reader, channel.channel_id)
    consumed = int(scene.emulator.clock.now())
    token = build_token(replace(parse_token(stored.token), timestamp=consumed * 1_000_000_000))
    await client.checkpoint(tunnel_id, reader, channel.channel_id, Checkpoint(token, stored.sequence_number + 1))
    await client.close()
    scene.emulator.change_settings(after_retention=AfterRetention.OLDEST, date_skew=None)
    scene.emulator.advance_clock(30 * 86400.0)

    await scene.step()

    assert scene.condition("Stalled")[:2] == ("True", "PossibleGap")
    (gap,) = scene.status()["possibleGaps"]
    assert (gap["channel"], gap["from"]) == (channel.channel_id, timestamp(consumed))
    assert (gap["foundBy"], gap["accepted"]) == ("Operator", False)
    assert scene.read("deployment", "flights-copy")["spec"]["replicas"] == 1

    (pod,) = scene.names("pods")
    said = f"PossibleGap: {PossibleGap(channel.channel_id, consumed, scene.emulator.clock.now())}; start over"
    await scene.kube.patch(POD, scene.namespace, pod, terminated(said), "status")
    await scene.step()

    assert scene.status()["possibleGaps"][0]["foundBy"] == "Worker"
    assert scene.read("deployment", "flights-copy")["spec"]["replicas"] == 0
    found = scene.api.must("-n", scene.namespace, "get", "events", "-o", "jsonpath={.items[*].reason}").split()
    assert found.count("PossibleGap") == 1

    accepting = '{"spec":{"source":{"tunnel":{"onPossibleGap":"Continue"}}}}'
    scene.api.must("-n", scene.namespace, "patch", "ott", "flights-copy", "--type=merge", "-p", accepting)
    await scene.step()

    assert scene.condition("Stalled")[0] == "False"
    assert scene.status()["possibleGaps"][0]["accepted"] is True
    assert scene.read("deployment", "flights-copy")["spec"]["replicas"] == 1


async def test_the_younger_of_two_objects_waits_and_takes_over(scene: PassScene) -> None:
    scene.secret()
    scene.apply("elder")
    await scene.running("elder")
    scene.apply("younger", sink__tablestore__table="flights_other")
    await scene.step("younger")

    names = sorted(["elder", "younger"])
    stalled = [name for name in names if scene.condition("Stalled", name)[:2] == ("True", "TunnelInUse")]
    if (
        scene.read("ott", "elder")["metadata"]["creationTimestamp"]
        != scene.read("ott", "younger")["metadata"]["creationTimestamp"]
    ):
        assert stalled == ["younger"]
    assert "flights_other" not in scene.stored()["tables"]

    await scene.delete("elder")
    await scene.running("younger")

    assert scene.condition("Stalled", "younger")[0] == "False"


async def test_a_copy_that_would_come_back_waits_for_the_end_of_the_other_one(scene: PassScene) -> None:
    scene.secret()
    scene.apply("there")
    await scene.running("there")
    created = scene.read("ott", "there")["metadata"]["creationTimestamp"]
    await until(lambda: timestamp(time.time()) > created, 10, "the next second")
    there = scene.read("ott", "there")["spec"]
    tables = there["sink"]["tablestore"]["table"], there["source"]["table"]
    changes = {"source__table": tables[0], "sink__tablestore__table": tables[1], "source__tunnel__name": "back"}
    scene.apply("back", **changes)
    await scene.step("back")
    said, tunnels = scene.condition("Stalled", "back"), scene.stored()["tunnels"]

    await scene.delete("there")
    await scene.step("back")

    assert said[:2] == ("True", "CopyCircle")
    assert f"{scene.namespace}/there" in said[2]
    assert "back" not in tunnels
    # a table of the user that was not made for a copy
    assert scene.condition("Stalled", "back")[:2] == ("True", "DestinationIncompatible")


@pytest.mark.parametrize(("policy", "keeps"), [("Retain", True), ("Delete", False)])
async def test_the_younger_object_goes_on_with_the_tunnel_only_where_the_elder_one_leaves_it(
    scene: PassScene, policy: str, keeps: bool
) -> None:
    scene.secret()
    scene.apply("elder", deletionPolicy=policy)
    await scene.running("elder")
    tunnel = scene.status("elder")["tunnel"]["id"]
    created = scene.read("ott", "elder")["metadata"]["creationTimestamp"]
    # of two of the same second, the elder one is not known
    await until(lambda: timestamp(time.time()) > created, 10, "the next second")
    scene.apply("younger")
    await scene.step("younger")
    said = scene.condition("Stalled", "younger")

    await scene.delete("elder")
    await scene.running("younger")

    assert said[1] == "TunnelInUse"
    assert "with deletionPolicy Retain" in said[2]
    assert (scene.status("younger")["tunnel"]["id"] == tunnel) == keeps


async def test_a_foreign_deployment_of_our_name_is_not_touched(scene: PassScene) -> None:
    scene.secret()
    scene.api.must("-n", scene.namespace, "create", "deployment", "flights-copy", "--image=other:1")
    before = scene.read("deployment", "flights-copy")["metadata"]["generation"]
    scene.apply()

    await scene.until(lambda: bool(scene.status().get("tunnel", {}).get("id")))
    for _ in range(2):
        await scene.step()

    assert scene.condition("Stalled")[:2] == ("True", "NameConflict")
    assert scene.read("deployment", "flights-copy")["metadata"]["generation"] == before


async def test_the_admin_sees_what_a_scene_sees(scene: PassScene) -> None:
    admin = table_admin(scene.emulator)

    assert set(admin.list()) == set(scene.stored()["tables"])
    admin.close()


async def test_a_snapshot_is_prepared_and_a_missing_spark_operator_is_named(scene: PassScene) -> None:
    scene.secret()
    scene.apply(engine__baseData="Spark")

    await scene.until(lambda: "flights-copy-spark" in scene.names("roles"))
    await scene.until(lambda: scene.condition("Degraded")[0] == "True")

    assert scene.condition("Degraded")[:2] == ("True", "SparkOperatorMissing")
    assert scene.status()["tunnel"]["type"] == "Stream"
    assert "flights-copy" not in scene.names("deployments")
    assert "flights-copy-snapshot" in scene.names("configmaps")
