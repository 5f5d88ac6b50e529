"""The Secrets that an object names, and the commands that write them. Pure.

`api.secrets` is the operator's list of them; the plugin reads the object as it is, without the operator's models. A
test holds the two together.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from ots_tunnel_operator.plugin.ott import Ott
from ots_tunnel_operator.plugin.why import commands
from ots_tunnel_operator.plugin.why.step import Step

_ACCESS_KEY = ("accessKeyId", "accessKeySecret")
_TOKEN = "securityToken"
_LOGIN = ("username", "password")
#: Fields that refer to one key of a Secret, with the key that the definition fills in.
_ONE_KEY = {"caRef": "ca.crt", "hmacSecretRef": "secret"}


@dataclass(frozen=True, slots=True)
class Named:
    """A Secret in one role: place of the reference in the object, name, and keys that have to be there."""

    path: str
    name: str
    keys: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class WriteSecrets:
    """Write Secrets from files of the present folder, each of which has the name of its key.

    Args:
        text: what to do.
        rest: end of each command.
    """

    text: str
    rest: str = ""

    def steps(self, ott: Ott, message: str) -> list[Step]:
        """The step about the Secrets that a message names; about all of the object where it names none.

        Every key that the object reads from a Secret is written.
        """
        found = tuple(named_secrets(ott.spec))
        meant = {each.name for each in found if f"{each.path}.name {each.name!r}" in message}
        keys: dict[str, dict[str, None]] = {}
        for each in found:
            if not meant or each.name in meant:
                # the token may be there, and is written only where it is what cannot be used
                is_token = meant and each.keys == _ACCESS_KEY and f"{_TOKEN} of the Secret has" in message
                token = (_TOKEN,) if is_token else ()
                keys.setdefault(each.name, {}).update(dict.fromkeys((*each.keys, *token)))
        return [Step(self.text, tuple(_command(ott, name, tuple(of)) + self.rest for name, of in keys.items()))]


def named_secrets(spec: Mapping[str, Any]) -> Iterator[Named]:
    """Every Secret that source, sink and delivery name, in the order of the spec."""
    for part in ("source", "sink", "delivery"):
        yield from _below(f"spec.{part}", spec.get(part))


def _below(path: str, value: Any) -> Iterator[Named]:
    for field, item in value.items() if isinstance(value, Mapping) else ():
        place = f"{path}.{field}"
        if field == "secretRef":
            yield Named(place, str(item["name"]), _LOGIN if path.endswith(".sasl") else _ACCESS_KEY)
        elif field in _ONE_KEY:
            yield Named(place, str(item["name"]), (str(item.get("key") or _ONE_KEY[field]),))
        else:
            yield from _below(place, item)


def _command(ott: Ott, name: str, keys: tuple[str, ...]) -> str:
    files = " ".join(f"--from-file={key}" for key in keys)
    return commands.kubectl(ott, f"create secret generic {name} {files}")
