"""Options that say which instance a command calls, and with which keys."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from pathlib import Path
from typing import Any, TypeVar

import click
from click.shell_completion import CompletionItem

from ots_tunnel.connections import Connection, Origin, choose
from ots_tunnel.connections.environment import PROFILE, environment_origin
from ots_tunnel.connections.kubectl import Kubectl
from ots_tunnel.connections.kubernetes_object import NamedObject, TableOrigin
from ots_tunnel.connections.profiles import default_origin, profile_origin, profiles_path, read_profiles
from ots_tunnel.credentials import FileCredentials
from ots_tunnel.errors import ConfigError

Command = TypeVar("Command", bound=Callable[..., Any])


@dataclass(frozen=True)
class ObjectOptions:
    """The object of `--from-object`, read once, when it is first asked for.

    Args:
        reference: NAMESPACE/NAME; None without the option.
        context: of the kubeconfig; empty means the current one.
    """

    reference: str | None
    context: str = ""

    @property
    def is_given(self) -> bool:
        """Whether there is an object."""
        return self.reference is not None

    @cached_property
    def named(self) -> NamedObject:
        """The object.

        Raises:
            ConfigError: there is none of this name, or no kubectl. KubectlFailed: the API server refused.
        """
        assert self.reference is not None
        return NamedObject(self.reference, Kubectl(self.context))

    @cached_property
    def source(self) -> TableOrigin:
        """The source's side; errors as those of `named`."""
        return self.named.source()

    @property
    def table(self) -> str:
        """The source table; errors as those of `named`."""
        return self.source.table

    @cached_property
    def destination(self) -> TableOrigin:
        """The destination's side; errors as those of `NamedObject.destination`."""
        return self.named.destination()

    def source_origins(self) -> list[Origin]:
        """What the object says about the source; nothing without an object."""
        return [self.source.origin] if self.is_given else []

    def destination_origins(self) -> list[Origin]:
        """What the object says about the destination; nothing without an object."""
        return [self.destination.origin] if self.is_given else []


@dataclass(frozen=True, slots=True)
class SideOptions:
    """The options of one side; None where one is not given.

    Args:
        prefix: of the options' names, such as `to-`.
    """

    endpoint: str | None
    instance: str | None
    credentials: Path | None
    profile: str | None
    prefix: str = ""

    @property
    def _own(self) -> Origin:
        """What the options themselves name."""
        names = {part: f"--{self.prefix}{part}" for part in ("endpoint", "instance")}
        keys = None if self.credentials is None else FileCredentials(self.credentials)
        return Origin(self.endpoint, self.instance, keys, {**names, "credentials": str(self.credentials)})

    def connection(self, from_object: Sequence[Origin]) -> Connection:
        """Endpoint, instance and keys, see `ots_tunnel.connections`.

        Args:
            from_object: what an object names.

        Raises:
            click.UsageError: options exclude each other.
            ConfigError: a part is missing or wrong.
        """
        return choose(self._origins(from_object), _ways(self.prefix))

    def connection_like(self, other: Connection, from_object: Sequence[Origin]) -> Connection:
        """The same for a second side: what is not named is that of the `other` one."""
        rest = Origin(other.endpoint, other.instance, other.credentials, other.names)
        return choose(chain(self._named(from_object, self.profile), [rest]), _ways(self.prefix))

    def _origins(self, from_object: Sequence[Origin]) -> Iterator[Origin]:
        """The places that name a part, the most important one first; each is read when it is asked for."""
        profile = self.profile or (None if from_object else os.environ.get(PROFILE))
        yield from self._named(from_object, profile)
        yield environment_origin(os.environ)
        if not (from_object or profile):
            yield default_origin(profiles_path(os.environ))

    def _named(self, from_object: Sequence[Origin], profile: str | None) -> Iterator[Origin]:
        if from_object and self.profile is not None:
            raise click.UsageError(f"--{self.prefix}profile and --from-object exclude each other")
        yield self._own
        yield from from_object
        if profile:
            yield profile_origin(profiles_path(os.environ), profile)


def _ways(prefix: str) -> dict[str, str]:
    """The ways to name each part, for the message that one is missing."""
    rest = f"--{prefix}profile or --from-object"
    return {
        "endpoint": f"the endpoint: --{prefix}endpoint, OTS_ENDPOINT, {rest}",
        "instance": f"the instance: --{prefix}instance, OTS_INSTANCE, {rest}",
        "credentials": f"the keys: --{prefix}credentials, OTS_ACCESS_KEY_ID and OTS_ACCESS_KEY_SECRET, {rest}",
    }


def side_options() -> Callable[[Command], Command]:
    """Add `--endpoint`, `--instance`, `--credentials` and `--profile`."""

    def add(command: Command) -> Command:
        for option in (
            profile_option("--profile", "Profile of the profiles' file."),
            click.option(
                "--credentials",
                type=click.Path(path_type=Path),
                help="Folder with the files accessKeyId, accessKeySecret and optional securityToken.",
            ),
            click.option("--instance", help="Instance name."),
            click.option("--endpoint", help="Instance endpoint, http(s)://host[:port]."),
        ):
            command = option(command)
        return command

    return add


def object_options(command: Command) -> Command:
    """Add `--from-object` and `--context`."""
    for option in (
        click.option("--context", default="", help="Context of the kubeconfig, for --from-object."),
        click.option(
            "--from-object",
            metavar="NAMESPACE/NAME",
            help="Take everything from a TablestoreTunnel object and its Secrets, by kubectl with your rights.",
        ),
    ):
        command = option(command)
    return command


def profile_option(name: str, text: str) -> Callable[[Command], Command]:
    """An option that names a profile, with the names that exist for the shell's completion."""
    return click.option(name, shell_complete=_profile_names, help=text)


def _profile_names(_: click.Context, __: click.Parameter, incomplete: str) -> list[CompletionItem]:
    try:
        names = read_profiles(profiles_path(os.environ)).profiles
    except ConfigError:
        return []  # a shell shows no message while it completes; the command itself does
    return [CompletionItem(name) for name in names if name.startswith(incomplete)]
