"""The Secrets that a spec names: where, with which keys, and in which folder of the pods. Pure.

This list decides what is mounted, what the worker's document refers to, and which Secrets the operator looks at.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from ots_tunnel_operator.api.delivery import Delivery
from ots_tunnel_operator.api.kafka import KafkaSink
from ots_tunnel_operator.api.source import CertificateKey, Credentials
from ots_tunnel_operator.api.spec import TunnelSpec

#: Keys of a Secret with an AccessKey pair.
ACCESS_KEY = ("accessKeyId", "accessKeySecret")
#: The key that may be there beside them, for temporary credentials.
SECURITY_TOKEN = "securityToken"

#: Folder of the Secret of the place for dead letters.
DEAD_LETTERS = "dead-letters"
#: Folder of the certificate authorities of the sink.
AUTHORITIES = "sink-ca"
#: Types of the conditions that are False without a Secret of the sink.
_AFFECTED = ("CredentialsValid", "SinkReady")
#: Fields that refer to a Secret by its name.
SECRET_REFERENCES = frozenset({"secretRef", "hmacSecretRef", "caRef"})


@dataclass(frozen=True, slots=True)
class SecretUse:
    """One Secret in one role.

    Args:
        path: place of the reference in the object, such as `spec.source.credentials.secretRef`.
        name: name of the Secret; empty where the spec names none, which the API server refuses.
        keys: keys that have to be there and not empty.
        folder: folder of its files in a pod, below `names.SECRETS_DIRECTORY`.
        conditions: types of the conditions that are False without it.
        by_operator: whether the operator calls a service with it; otherwise only workers use it.
        is_one_key: whether the spec names the key, so that only its file is mounted.
        is_text: whether the values have to be text.
    """

    path: str
    name: str
    keys: tuple[str, ...]
    folder: str
    conditions: tuple[str, ...]
    by_operator: bool = False
    is_one_key: bool = False
    is_text: bool = True


def secret_uses(spec: TunnelSpec) -> tuple[SecretUse, ...]:
    """Every Secret that the workers of an object read, that of the source first."""
    source = SecretUse(
        "spec.source.credentials.secretRef",
        secret_name(spec.source.credentials),
        ACCESS_KEY,
        "source",
        ("CredentialsValid",),
        by_operator=True,
    )
    return source, *_of_sink(spec), *_of_delivery(spec.delivery)


def secret_name(credentials: Credentials | None) -> str:
    """Name of the Secret with these credentials; empty where none is named."""
    return credentials.secret_ref.name if credentials is not None and credentials.secret_ref is not None else ""


def _of_sink(spec: TunnelSpec) -> Iterator[SecretUse]:
    sink = spec.sink
    if (table := sink.tablestore) is not None:
        path = "spec.sink.tablestore.credentials.secretRef"
        yield SecretUse(path, secret_name(table.credentials), ACCESS_KEY, "sink", _AFFECTED, by_operator=True)
    if sink.files is not None and sink.files.is_bucket:
        path = "spec.sink.files.credentials.secretRef"
        yield SecretUse(path, secret_name(sink.files.credentials), ACCESS_KEY, "sink", _AFFECTED)
        yield from _authorities("spec.sink.files", sink.files.ca_ref)
    if sink.kafka is not None:
        yield from _of_kafka(sink.kafka)
    if sink.http is not None and (key := sink.http.hmac_secret_ref) is not None:
        # the secret of a signature is any bytes
        path = "spec.sink.http.hmacSecretRef"
        yield SecretUse(path, key.name, (key.key,), "sink-hmac", _AFFECTED, is_one_key=True, is_text=False)
    if sink.http is not None:
        yield from _authorities("spec.sink.http", sink.http.ca_ref)


def _of_delivery(delivery: Delivery) -> Iterator[SecretUse]:
    if delivery.dead_letter is not None and delivery.dead_letter.files.is_bucket:
        path, name = "spec.delivery.deadLetter.files.credentials.secretRef", delivery.dead_letter.files.credentials
        yield SecretUse(path, secret_name(name), ACCESS_KEY, DEAD_LETTERS, ("CredentialsValid",))
        where, found = "spec.delivery.deadLetter.files", delivery.dead_letter.files.ca_ref
        yield from _authorities(where, found, f"{DEAD_LETTERS}-ca", ("CredentialsValid",))


def _of_kafka(kafka: KafkaSink) -> Iterator[SecretUse]:
    if kafka.sasl is not None:
        path = "spec.sink.kafka.sasl.secretRef"
        yield SecretUse(path, kafka.sasl.secret_ref.name, ("username", "password"), "sink", _AFFECTED)
    yield from _authorities("spec.sink.kafka", kafka.ca_ref)


def _authorities(
    path: str, key: CertificateKey | None, folder: str = AUTHORITIES, conditions: tuple[str, ...] = _AFFECTED
) -> Iterator[SecretUse]:
    if key is not None:
        yield SecretUse(f"{path}.caRef", key.name, (key.key,), folder, conditions, is_one_key=True)
