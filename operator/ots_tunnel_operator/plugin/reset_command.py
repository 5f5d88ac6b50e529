"""The command `kubectl ott reset`."""

from __future__ import annotations

import functools
import secrets
import sys
import time
from collections.abc import Callable
from typing import Any, TypeVar

import click

from ots_tunnel_operator.plugin.edits import Refused
from ots_tunnel_operator.plugin.flags import with_flags
from ots_tunnel_operator.plugin.kubectl import RESOURCE, Kubectl
from ots_tunnel_operator.plugin.options import kubectl_options, object_argument, wait_options
from ots_tunnel_operator.plugin.reset_edit import outcome, refuse_while_consumed, reset
from ots_tunnel_operator.reset.request import TOKEN, TOKEN_WORDS, Existing, Form, Request, Unreadable, read_request
from ots_tunnel_operator.times import timestamp

Command = TypeVar("Command", bound=Callable[..., Any])

#: Seconds between two looks at what became of a request.
LOOK_SECONDS = 1.0
#: What `--rewind` takes beside a time.
EARLIEST = "Earliest"


def _request_options(command: Command) -> Command:
    """Add the options that say which reset; the command gets them as a `Request`."""

    @functools.wraps(command)
    def wrapped(
        *, new_tunnel: bool, rewind: str | None, new_base: bool, existing: str | None, token: str, **rest: Any
    ) -> Any:
        forms = {Form.NEW_TUNNEL: new_tunnel, Form.REWIND: rewind is not None, Form.NEW_BASE: new_base}
        wanted = [form for form, is_wanted in forms.items() if is_wanted]
        if len(wanted) != 1:
            raise click.UsageError("one of --new-tunnel, --rewind TIME and --new-base is needed")
        start = None if rewind in (None, EARLIEST) else rewind
        request = Request(token or _new_token(), wanted[0], start, Existing(existing or Existing.KEEP))
        return command(request=_checked(request), **rest)

    for option in reversed(_OPTIONS):
        wrapped = option(wrapped)
    return wrapped  # type: ignore[return-value]  # click's decorators keep the callable


_OPTIONS = (
    click.option("--new-tunnel", is_flag=True, help="Changes from now on, by a new tunnel; those in between are lost."),
    click.option("--rewind", metavar="TIME", help="Changes again, from a time on, or from Earliest on."),
    click.option("--new-base", is_flag=True, help="Existing rows again, then changes."),
    click.option(
        "--delete-tunnel",
        "existing",
        flag_value=Existing.DELETE.value,
        help="Delete the present tunnel, if it was created for the object.",
    ),
    click.option(
        "--adopt-tunnel",
        "existing",
        flag_value=Existing.ADOPT.value,
        help="With --new-tunnel: use the tunnel that has taken the name.",
    ),
    click.option("--token", default="", help="Name of this request, which is carried out once; made up without one."),
)


@click.command(
    "reset",
    epilog="Examples: kubectl ott reset orders-copy --new-base --delete-tunnel --dry-run; "
    "kubectl ott reset orders-copy --rewind 2026-11-20T00:00:00Z --delete-tunnel --wait",
)
@object_argument
@kubectl_options
@_request_options
@click.option("--dry-run", is_flag=True, help="Say what it would do, write and lose, and change nothing.")
@click.option("--yes", "-y", is_flag=True, help="Ask nothing.")
@wait_options("the reset is done")
def reset_(kubectl: Kubectl, name: str, request: Request, dry_run: bool, yes: bool, wait: bool, timeout: int) -> None:
    """Reset NAME where it cannot go on, or shall begin again: another tunnel, for changes alone or with existing rows.

    Only a suspended object is reset. What the reset does, writes and loses is said first.
    """
    ott = kubectl.object(name)
    edit = reset(ott, request, time.time())
    _say(tuple(with_flags(line, kubectl.flags) for line in edit.words))
    if dry_run:
        return
    refuse_while_consumed(ott)
    _confirm(yes=yes)
    assert edit.patch is not None
    kubectl.patch(RESOURCE, ott.name, ott.namespace, edit.patch)
    if wait:
        _await(kubectl, name, request.token, timeout)
    else:
        click.echo("The operator has been asked; status.reset says what becomes of it.")


def _checked(request: Request) -> Request:
    """The request as the operator will read it."""
    if not TOKEN.fullmatch(request.token):
        raise click.BadParameter(f"found {request.token!r}, allowed are {TOKEN_WORDS}", param_hint="--token")
    found = read_request(request.annotation())
    if isinstance(found, Unreadable):
        raise click.UsageError(found.message)
    return found


def _new_token() -> str:
    return f"{timestamp(time.time())}-{secrets.token_hex(3)}"


def _confirm(*, yes: bool) -> None:
    if yes:
        return
    if not sys.stdin.isatty():
        raise Refused("nobody can be asked here, so nothing was changed: add --yes, or --dry-run to see it only")
    click.confirm("Reset it?", abort=True)


def _await(kubectl: Kubectl, name: str, token: str, seconds: int) -> None:
    """Wait until the operator has carried the request out.

    Raises:
        Refused: the operator refuses it, or has not carried it out in time.
    """
    give_up = time.monotonic() + seconds
    while not (asked := outcome(kubectl.object(name), token)).is_over:
        if time.monotonic() > give_up:
            raise Refused(f"the reset is not over after {seconds} s; status.reset and the conditions say what it needs")
        time.sleep(LOOK_SECONDS)
    if not asked.is_done:
        raise Refused(asked.message)
    click.echo(asked.message)


def _say(lines: tuple[str, ...]) -> None:
    for line in lines:
        click.echo(line)
