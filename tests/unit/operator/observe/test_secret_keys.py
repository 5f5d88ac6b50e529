"""What is read from a Secret, and what is said of one that lacks it."""

from __future__ import annotations

import base64
from dataclasses import replace
from typing import Any

import pytest

from ots_tunnel_operator.api.secrets import ACCESS_KEY, SecretUse
from ots_tunnel_operator.observe.secret_keys import read_keys
from ots_tunnel_operator.observe.worker_secrets import observe_worker_secrets
from ots_tunnel_operator.reasons import Reason
from ots_tunnel_operator.world.absence import Failure
from tests.support.operator.worlds import resource

USE = SecretUse("spec.sink.kafka.sasl.secretRef", "login", ("username", "password"), "sink", ("SinkReady",))


def secret(**values: str | bytes) -> dict[str, Any]:
    data = {key: value if isinstance(value, bytes) else value.encode() for key, value in values.items()}
    return {"data": {key: base64.b64encode(value).decode() for key, value in data.items()}}


def test_values_are_texts_without_spaces_around_them() -> None:
    assert read_keys(secret(username=" u\n", password="p", note=""), USE) == {"username": "u", "password": "p"}


def test_a_value_that_need_not_be_text_may_be_any_bytes() -> None:
    any_bytes = replace(USE, keys=("password",), is_text=False)

    assert not isinstance(read_keys(secret(password=b"\xff"), any_bytes), Failure)
    assert isinstance(read_keys(secret(password=b""), any_bytes), Failure)


@pytest.mark.parametrize(
    ("found", "reason", "says"),
    [
        (None, Reason.SECRET_NOT_FOUND, "no such Secret: create it with the keys username and password"),
        (secret(username="u"), Reason.KEY_MISSING, "no usable password, its keys are ['username']"),
        (secret(username="u", password=" "), Reason.KEY_MISSING, "no usable password"),
        (secret(username="u", password=b"\xff"), Reason.KEY_MISSING, "no usable password"),
        ({"data": {"username": "***", "password": None}}, Reason.KEY_MISSING, "no usable username and no password"),
        ({}, Reason.KEY_MISSING, "its keys are []: add what is missing"),
    ],
)
def test_what_is_missing_is_named(found: dict[str, Any] | None, reason: Reason, says: str) -> None:
    failure = read_keys(found, USE)

    assert isinstance(failure, Failure)
    assert (failure.problem.reason, failure.problem.conditions) == (reason, ("SinkReady",))
    assert failure.problem.message.startswith("spec.sink.kafka.sasl.secretRef.name 'login': ")
    assert says in failure.problem.message


@pytest.mark.parametrize("value", ["one\ntwo", "one\r\ntwo", "a\x00b"])
@pytest.mark.parametrize("key", ["accessKeyId", "accessKeySecret", "securityToken"])
def test_a_part_of_an_access_key_that_no_request_can_carry_is_told_as_such(key: str, value: str) -> None:
    """The endpoint was blamed, because a header with a line break is not sent."""
    use = replace(USE, path="spec.source.credentials.secretRef", keys=ACCESS_KEY)
    failure = read_keys(secret(**{"accessKeyId": "id", "accessKeySecret": "secret", key: value}), use)

    assert isinstance(failure, Failure)
    assert failure.problem.reason is Reason.KEY_MISSING
    assert failure.problem.message == (
        f"spec.source.credentials.secretRef.name 'login': {key} of the Secret has a line break or another control "
        f"character within: write it in one line"
    )


class Secrets:
    """An API server with these Secrets; remembers which were read."""

    def __init__(self, **found: dict[str, Any]) -> None:
        self._found = found
        self.read: list[str] = []

    async def get(self, kind: object, namespace: str, name: str) -> dict[str, Any] | None:
        self.read.append(name)
        return self._found.get(name)

    async def list(self, kind: object, namespace: str, selector: str) -> list[dict[str, Any]]:
        return []


BUCKET = {"sink": {"files": {"url": "s3://shop/", "credentials": {"secretRef": {"name": "store"}}}}}


async def test_only_secrets_of_workers_are_looked_at() -> None:
    kube = Secrets()

    assert await observe_worker_secrets(kube, resource()) == ()
    (failure,) = await observe_worker_secrets(kube, resource(**BUCKET))

    assert kube.read == ["store"]
    assert "spec.sink.files.credentials.secretRef.name 'store'" in failure.problem.message


async def test_a_whole_secret_has_no_problem() -> None:
    kube = Secrets(store=secret(accessKeyId="a", accessKeySecret="b"))

    assert await observe_worker_secrets(kube, resource(**BUCKET)) == ()
