"""Endpoint, instance and keys of one side, chosen from the places that name them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from ots_tunnel.config.problems import shown
from ots_tunnel.console.explanations import Place
from ots_tunnel.credentials import CredentialsProvider
from ots_tunnel.endpoint import ENDPOINT_WORDS, INSTANCE, INSTANCE_WORDS, is_endpoint
from ots_tunnel.errors import ConfigError

#: What each origin may name, in the order of messages.
PARTS = ("endpoint", "instance", "credentials")


@dataclass(frozen=True, slots=True)
class Origin:
    """What one place names; None for what it does not name.

    Args:
        credentials: returns the keys.
        names: how messages call `endpoint`, `instance` and `credentials`, and the keys `accessKeyId` and
            `accessKeySecret` where they have another name.
    """

    endpoint: str | None = None
    instance: str | None = None
    credentials: CredentialsProvider | None = field(default=None, repr=False)
    names: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Connection:
    """One side of a command.

    Args:
        names: as those of an `Origin`, of the origin that each part comes from.
    """

    endpoint: str
    instance: str
    credentials: CredentialsProvider = field(repr=False)
    names: Mapping[str, str] = field(default_factory=dict)

    def place(self, table: str = "", tunnel: str = "") -> Place:
        """The names that messages need."""
        where = self.names["credentials"]
        return Place(self.endpoint, self.instance, where, table, tunnel, settings="", names=self.names)


def choose(origins: Iterable[Origin], ways: Mapping[str, str]) -> Connection:
    """Each part from the first origin that names it. The keys are read once.

    Args:
        origins: the most important one first; none is asked for once every part is found.
        ways: the ways to name each part, for the message that it is missing.

    Raises:
        ConfigError: a part is named nowhere, or is malformed, or the keys cannot be read; names every such part.
    """
    chosen: dict[str, Origin] = {}
    for origin in origins:
        chosen = {part: origin for part in PARTS if getattr(origin, part) is not None} | chosen
        if len(chosen) == len(PARTS):
            break
    if missing := [ways[part] for part in PARTS if part not in chosen]:
        raise ConfigError(f"missing {'; missing '.join(missing)}")
    names = dict(chosen["credentials"].names) | {part: chosen[part].names[part] for part in PARTS}
    endpoint, instance = chosen["endpoint"].endpoint, chosen["instance"].instance
    credentials = chosen["credentials"].credentials
    assert endpoint is not None
    assert instance is not None
    assert credentials is not None
    if problems := list(_problems(endpoint, instance, names)):
        raise ConfigError("; ".join(problems))
    credentials()  # missing files are a wrong option, not a failed call
    return Connection(endpoint, instance, credentials, names)


def _problems(endpoint: str, instance: str, names: Mapping[str, str]) -> Iterator[str]:
    if not is_endpoint(endpoint):
        yield f"{names['endpoint']}: found {shown(endpoint)}, allowed is {ENDPOINT_WORDS}"
    if not re.fullmatch(INSTANCE, instance):
        yield f"{names['instance']}: found {shown(instance)}, allowed is {INSTANCE_WORDS}"
