"""The plugin's commands write the Secret that is wrong, with every key that is read from it."""

from __future__ import annotations

from typing import Any

import pytest

from ots_tunnel.errors import PermissionDenied
from ots_tunnel_operator.api.object import TablestoreTunnel
from ots_tunnel_operator.api.secrets import SecretUse, secret_uses
from ots_tunnel_operator.diagnosis import Place, service_problem
from ots_tunnel_operator.observe.secret_keys import read_keys
from ots_tunnel_operator.plugin.ott import Ott
from ots_tunnel_operator.plugin.why.advice import next_steps, steps_for
from ots_tunnel_operator.plugin.why.secrets import named_secrets
from ots_tunnel_operator.reasons import Reason
from ots_tunnel_operator.world.absence import Failure
from tests.support.operator.plugin_objects import body, conditions, deleting
from tests.support.operator.worlds import resource


def kafka(ca: dict[str, str]) -> dict[str, Any]:
    login = {"mechanism": "PLAIN", "secretRef": {"name": "login"}}
    brokers = {"bootstrapServers": ["broker:9093"], "topic": "orders", "securityProtocol": "SASL_SSL"}
    return {"kafka": brokers | {"sasl": login, "caRef": ca}}


DEAD_LETTERS = {
    "onPermanentError": "DeadLetter",
    "deadLetter": {"files": {"url": "s3://dead/", "credentials": {"secretRef": {"name": "dead"}}}},
}
#: Specs that name every kind of Secret, and some twice.
SPECS: dict[str, dict[str, Any]] = {
    "tablestore": {},
    "files": {"sink": {"files": {"url": "s3://shop/", "credentials": {"secretRef": {"name": "store"}}}}},
    "kafka": {"sink": kafka({"name": "authorities"}), "delivery": DEAD_LETTERS},
    "kafka with one Secret": {"sink": kafka({"name": "login", "key": "root.pem"})},
    "http": {"sink": {"http": {"url": "https://shop.example", "hmacSecretRef": {"name": "hook"}}}},
}


def uses_of(found: dict[str, Any]) -> tuple[SecretUse, ...]:
    return secret_uses(TablestoreTunnel.from_body(found).spec)


def message(secret: dict[str, Any] | None, use: SecretUse) -> str:
    """What the operator says about a Secret that is not there, or that is empty."""
    found = read_keys(secret, use)
    assert isinstance(found, Failure)
    return found.problem.message


@pytest.mark.parametrize("case", SPECS)
def test_the_plugin_knows_the_secrets_of_the_operator(case: str) -> None:
    found = body(**SPECS[case])

    named = {(each.path, each.name, each.keys) for each in named_secrets(found["spec"])}

    assert named == {(use.path, use.name, use.keys) for use in uses_of(found)}


@pytest.mark.parametrize("case", SPECS)
@pytest.mark.parametrize("reason", [Reason.KEY_MISSING, Reason.SECRET_NOT_FOUND])
def test_only_the_secret_that_the_message_names_is_written(case: str, reason: Reason) -> None:
    found = body(**SPECS[case])
    uses = uses_of(found)
    for use in uses:
        said = message({"data": {}} if reason is Reason.KEY_MISSING else None, use)
        keys = dict.fromkeys(key for each in uses if each.name == use.name for key in each.keys)

        (step,) = steps_for(Ott(found), reason, said)

        (command,) = step.commands
        files = " ".join(f"--from-file={key}" for key in keys)
        assert command.startswith(f"kubectl -n shop create secret generic {use.name} {files}")
        # a Secret that is replaced would lose what something else reads from it
        assert "kubectl replace" not in command
        assert command.endswith("--field-manager=kubectl-ott -f -") == (reason is Reason.KEY_MISSING)


def test_without_a_name_in_the_message_every_secret_is_shown() -> None:
    (step,) = steps_for(Ott(body(**SPECS["kafka"])), Reason.SECRET_NOT_FOUND)

    assert [command.split()[6] for command in step.commands] == ["ots-credentials", "login", "authorities", "dead"]


def test_a_token_that_cannot_be_used_is_written_as_well() -> None:
    (use, *_) = uses_of(body())
    values = {"accessKeyId": "aWQ=", "accessKeySecret": "c2VjcmV0", "securityToken": "dG8Ka2Vu"}
    (step,) = steps_for(Ott(body()), Reason.KEY_MISSING, message({"data": values}, use))

    assert "--from-file=accessKeySecret --from-file=securityToken" in step.commands[0]


@pytest.mark.parametrize(
    ("secret", "first"),
    [(None, "Create the Secret"), ({"data": {"accessKeyId": "aWQ="}}, "Write these keys of the Secret")],
)
def test_a_deletion_that_waits_for_a_secret_says_how_to_write_it(secret: dict[str, Any] | None, first: str) -> None:
    found = deleting().body
    (use, *_) = uses_of(found)
    waiting = ("False", "Deleting", f"the object is being deleted: {message(secret, use)}")
    write, end = next_steps(Ott({**found, "status": {"conditions": conditions(Ready=waiting)}}))

    assert write.text.startswith(first)
    assert "create secret generic ots-credentials --from-file=accessKeyId" in write.commands[0]
    assert "force-delete" in end.commands[0]


def test_a_deletion_that_waits_for_rights_leaves_the_secret_alone() -> None:
    denied = service_problem(PermissionDenied("OTSNoPermissionAccess", "no"), Place.of_source(resource().spec.source))
    waiting = ("False", "Deleting", f"the object is being deleted: {denied.message}")
    look, _ = next_steps(Ott({**deleting().body, "status": {"conditions": conditions(Ready=waiting)}}))

    assert "secretRef.name" in denied.message
    assert look.commands == ("kubectl ott events orders-copy -n shop",)
