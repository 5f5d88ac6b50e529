"""The Secrets that a spec names: where, with which keys, and in which folder of the pods. Pure.

This list decides what is mounted, what the worker's document refers to, and which Secrets the operator looks at.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from ots_tunnel_operator.api.object import TunnelSpec
from ots_tunnel_operator.api.source import Credentials

#: Keys of a Secret with an AccessKey pair; securityToken may be there beside them.
ACCESS_KEY = ("accessKeyId", "accessKeySecret")

#: Fields that refer to a Secret by its name.
SECRET_REFERENCES = frozenset({"secretRef"})


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
    """

    path: str
    name: str
    keys: tuple[str, ...]
    folder: str
    conditions: tuple[str, ...]
    by_operator: bool = False


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
    return source, *_of_sink(spec)


def secret_name(credentials: Credentials | None) -> str:
    """Name of the Secret with these credentials; empty where none is named."""
    return credentials.secret_ref.name if credentials is not None and credentials.secret_ref is not None else ""


def _of_sink(spec: TunnelSpec) -> Iterator[SecretUse]:
    affected = ("CredentialsValid", "SinkReady")
    if (table := spec.sink.tablestore) is not None:
        path, name = "spec.sink.tablestore.credentials.secretRef", secret_name(table.credentials)
        yield SecretUse(path, name, ACCESS_KEY, "sink", affected, by_operator=True)
    if (files := spec.sink.files) is not None and files.credentials is not None:
        path, name = "spec.sink.files.credentials.secretRef", secret_name(files.credentials)
        yield SecretUse(path, name, ACCESS_KEY, "sink", affected)
