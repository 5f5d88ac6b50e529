"""The Secrets of a spec: each is mounted, watched, and has a folder of its own."""

from __future__ import annotations

from typing import Any

import pytest

from ots_tunnel.config import dump_config
from ots_tunnel.config.sinks import REFUSING_SINKS as WORKERS_REFUSING_SINKS
from ots_tunnel.config.sinks import SinkConfig
from ots_tunnel_operator import names
from ots_tunnel_operator.api.secrets import SecretUse, secret_uses
from ots_tunnel_operator.api.sink import SINKS as SINKS_OF_THE_OBJECT
from ots_tunnel_operator.api.sink import Sink
from ots_tunnel_operator.concerns import Concerns
from ots_tunnel_operator.manifests.worker_document import worker_config
from ots_tunnel_operator.manifests.worker_volumes import volumes_and_mounts
from ots_tunnel_operator.sink_refusals import REFUSING_SINKS
from tests.support.operator.objects import tunnel_object
from tests.support.operator.worlds import UID, resource


def keys(name: str) -> dict[str, Any]:
    return {"secretRef": {"name": name}}


#: A spec with every Secret of a sink, and the folders of its files.
SINKS: dict[str, tuple[dict[str, Any], dict[str, str]]] = {
    "tablestore": ({}, {"ots-credentials": "sink"}),
    "files": (
        {"sink": {"files": {"url": "s3://shop/", "credentials": keys("store"), "caRef": {"name": "authorities"}}}},
        {"store": "sink", "authorities": "sink-ca"},
    ),
    "kafka": (
        {
            "sink": {
                "kafka": {
                    "bootstrapServers": ["broker:9093"],
                    "topic": "orders",
                    "securityProtocol": "SASL_SSL",
                    "sasl": {"mechanism": "PLAIN", **keys("login")},
                    "caRef": {"name": "authorities"},
                }
            }
        },
        {"login": "sink", "authorities": "sink-ca"},
    ),
    "http": (
        {
            "sink": {
                "http": {
                    "url": "https://shop.example",
                    "hmacSecretRef": {"name": "hook"},
                    "caRef": {"name": "authorities"},
                }
            }
        },
        {"hook": "sink-hmac", "authorities": "sink-ca"},
    ),
    "python": ({"sink": {"python": {"factory": "shop:make"}}}, {}),
    "dead letters": (
        {
            "sink": {"http": {"url": "https://shop.example"}},
            "delivery": {
                "onPermanentError": "DeadLetter",
                "deadLetter": {
                    "files": {"url": "s3://dead/", "credentials": keys("dead"), "caRef": {"name": "authorities"}}
                },
            },
        },
        {"dead": "dead-letters", "authorities": "dead-letters-ca"},
    ),
    "a folder": ({"sink": {"files": {"url": "file:///data"}}}, {}),
    "stdout": ({"sink": {"stdout": {}}}, {}),
}


def uses(changes: dict[str, Any]) -> tuple[SecretUse, ...]:
    return secret_uses(resource(**changes).spec)


@pytest.mark.parametrize("case", SINKS)
def test_each_secret_has_its_folder(case: str) -> None:
    changes, folders = SINKS[case]
    source, *others = uses(changes)

    assert (source.name, source.folder, source.by_operator) == ("ots-credentials", "source", True)
    assert {use.name: use.folder for use in others} == folders
    assert [use.by_operator for use in others] == [case == "tablestore"] * len(others)


@pytest.mark.parametrize("case", SINKS)
def test_each_secret_is_a_volume_with_a_mount(case: str) -> None:
    found = resource(**SINKS[case][0])
    volumes, mounts = volumes_and_mounts(found.object)

    sources = {volume["name"]: volume["secret"]["secretName"] for volume in volumes if "secret" in volume}
    paths = {mount["name"]: mount["mountPath"] for mount in mounts if mount.get("readOnly")}
    for use in secret_uses(found.spec):
        assert sources[f"secret-{use.folder}"] == use.name
        assert paths[f"secret-{use.folder}"] == f"{names.SECRETS_DIRECTORY}/{use.folder}"
    assert len(sources) == len(secret_uses(found.spec))


@pytest.mark.parametrize("case", SINKS)
def test_the_document_names_the_file_of_each_authority(case: str) -> None:
    found = resource(**SINKS[case][0])
    document = dump_config(worker_config(found.object, "t"))

    for use in secret_uses(found.spec):
        if use.path.endswith(".caRef"):
            assert f"caFile: {names.SECRETS_DIRECTORY}/{use.folder}/ca.crt\n" in document


@pytest.mark.parametrize("case", SINKS)
def test_a_change_of_each_secret_wakes_the_object(case: str) -> None:
    changes = SINKS[case][0]
    body = tunnel_object(**changes)
    body["metadata"] |= {"namespace": "shop", "uid": UID, "generation": 1}
    concerns = Concerns()
    concerns.changed(body)

    assert all(concerns.users("shop", use.name) == {("shop", "flights-copy")} for use in uses(changes))


def test_of_a_secret_whose_key_is_named_only_this_key_is_mounted() -> None:
    found = resource(sink={"http": {"url": "https://shop.example", "hmacSecretRef": {"name": "hook", "key": "k"}}})
    volumes, _ = volumes_and_mounts(found.object)

    (volume,) = [volume for volume in volumes if volume["name"] == "secret-sink-hmac"]
    assert volume["secret"]["items"] == [{"key": "k", "path": "k"}]


def test_another_field_of_the_name_of_a_reference_names_no_secret() -> None:
    body = tunnel_object(delivery={"filter": {"keyPrefix": {"secretRef": "a"}}}, sink={"stdout": {}})
    body["metadata"] |= {"namespace": "shop", "uid": UID, "generation": 1}
    concerns = Concerns()
    concerns.changed(body)

    assert concerns.users("shop", "a") == set()


def test_the_sinks_that_refuse_single_records_are_those_of_the_worker() -> None:
    assert set(REFUSING_SINKS) == set(WORKERS_REFUSING_SINKS)
    assert set(SINKS_OF_THE_OBJECT) == set(SinkConfig.model_fields) - {"count"} == set(Sink.model_fields)
