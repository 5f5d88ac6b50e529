"""Options that several commands share: where kubectl goes, and whether to wait."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, TypeVar

import click

from ots_tunnel_operator.plugin.edits import Refused
from ots_tunnel_operator.plugin.flags import with_flags
from ots_tunnel_operator.plugin.kubectl import Kubectl

Command = TypeVar("Command", bound=Callable[..., Any])

#: kubectl's own flags that are handed on as they are, with their help.
_FLAGS = {
    "kubeconfig": "Path of the kubeconfig file.",
    "context": "Context of the kubeconfig.",
    "cluster": "Cluster of the kubeconfig.",
    "user": "User of the kubeconfig.",
    "as": "User to impersonate.",
    "as-group": "Group to impersonate.",
}


#: What may stand before the name of an object, as kubectl prints it.
_KINDS = frozenset({"ott", "tablestoretunnel", "tablestoretunnels"})


def object_argument(command: Command) -> Command:
    """Add the argument NAME."""
    return click.argument("name", callback=lambda context, parameter, value: _object_name(value))(command)


def objects_argument(command: Command) -> Command:
    """Add the argument NAME..., one object at least."""
    return click.argument(
        "names",
        metavar="NAME...",
        nargs=-1,
        required=True,
        callback=lambda context, parameter, values: tuple(map(_object_name, values)),
    )(command)


def optional_object_argument(command: Command) -> Command:
    """Add the argument [NAME]."""
    return click.argument(
        "name", required=False, callback=lambda context, parameter, value: value and _object_name(value)
    )(command)


def _object_name(value: str) -> str:
    """The name of an object; `ott/NAME` is its name as well."""
    kind, slash, name = value.rpartition("/")
    if not name or (slash and kind.partition(".")[0] not in _KINDS):
        raise click.BadParameter(f"found {value!r}, allowed is NAME or ott/NAME")
    return name


def kubectl_options(command: Command) -> Command:
    """Add `--namespace` and kubectl's own flags; the command gets them as a `Kubectl`."""

    @functools.wraps(command)
    def wrapped(*, namespace: str, **options: Any) -> Any:
        given = {flag: options.pop(flag.replace("-", "_") + "_flag") for flag in _FLAGS}
        flags = tuple(f"--{flag}={value}" for flag, value in given.items() if value)
        try:
            return command(kubectl=Kubectl(flags, namespace), **options)
        except Refused as error:
            raise Refused(with_flags(str(error), flags)) from error

    for flag, text in reversed(_FLAGS.items()):
        parameter = flag.replace("-", "_") + "_flag"
        wrapped = click.option(f"--{flag}", parameter, metavar=flag.upper(), default="", help=text)(wrapped)
    text = "Namespace; without it, that of kubectl's context."
    return click.option("--namespace", "-n", default="", help=text)(wrapped)  # type: ignore[return-value]  # click's decorators keep the callable


def everywhere_option(command: Command) -> Command:
    """Add `--all-namespaces`."""
    return click.option("--all-namespaces", "-A", "everywhere", is_flag=True, help="Objects of every namespace.")(
        command
    )


def wait_options(until: str) -> Callable[[Command], Command]:
    """Add `--wait` and `--timeout`.

    Args:
        until: what is waited for, for the help.
    """

    def add(command: Command) -> Command:
        seconds = click.option(
            "--timeout", type=click.IntRange(1), default=300, show_default=True, help="Seconds to wait at most."
        )
        return click.option("--wait", is_flag=True, help=f"Return when {until}.")(seconds(command))

    return add
