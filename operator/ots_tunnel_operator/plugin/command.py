"""The command `kubectl ott`, whose program is `kubectl-ott` on the PATH."""

from __future__ import annotations

import functools
import signal
import sys
import time
from collections.abc import Callable, Sequence
from typing import Any

import click

from ots_tunnel_operator.plugin.channels import channels_lines
from ots_tunnel_operator.plugin.edits import Edit, Refused, pause, restart, resume
from ots_tunnel_operator.plugin.events.view import events_lines
from ots_tunnel_operator.plugin.flags import with_flags
from ots_tunnel_operator.plugin.fleet import fleet_lines
from ots_tunnel_operator.plugin.kubectl import RESOURCE, Kubectl, KubectlFailed
from ots_tunnel_operator.plugin.live import Course, fleet_frame, follow, object_frame
from ots_tunnel_operator.plugin.options import (
    everywhere_option,
    kubectl_options,
    object_argument,
    objects_argument,
    optional_object_argument,
    wait_options,
)
from ots_tunnel_operator.plugin.ott import Ott
from ots_tunnel_operator.plugin.reset_command import reset_
from ots_tunnel_operator.plugin.terminal import draw, taken_terminal, wait_for_key
from ots_tunnel_operator.plugin.text.screen import Screen
from ots_tunnel_operator.plugin.why.view import why_lines


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="ots-tunnel", prog_name="kubectl ott")
def cli() -> None:
    """Show what TablestoreTunnel objects do and why, and pause, resume, restart or reset them.

    Every call is one of kubectl, with the rights and the context of the caller.
    """


@cli.command("list", epilog="Example: kubectl ott list -A")
@kubectl_options
@everywhere_option
@click.option("--selector", "-l", default="", help="Only objects with these labels, such as team=shop.")
def list_(kubectl: Kubectl, everywhere: bool, selector: str) -> None:
    """List objects: state, workers, channels, lag, and why one is not ready."""
    objects = kubectl.objects(everywhere=everywhere, selector=selector)
    servings = kubectl.servings(objects)
    _say(
        fleet_lines(objects, _screen(), time.time(), with_namespace=everywhere, servings=servings, flags=kubectl.flags)
    )


@cli.command(epilog="Example: kubectl ott channels orders-copy -n shop")
@object_argument
@kubectl_options
@click.option("--output", "-o", type=click.Choice(["table", "wide"]), default="table", help="wide: ids in full.")
def channels(kubectl: Kubectl, name: str, output: str) -> None:
    """Show the channels of NAME: which worker has which, and a bar for the lag of each.

    The workers are asked through the API server, which needs the right to get pods/proxy. Without it the figures of
    the status are shown.
    """
    ott = kubectl.object(name)
    _say(channels_lines(ott, kubectl.reports(ott), _screen(), time.time(), full_ids=output == "wide"))


@cli.command(epilog="Example: kubectl ott why orders-copy -n shop")
@object_argument
@kubectl_options
def why(kubectl: Kubectl, name: str) -> None:
    """Say in sentences what NAME does now, what it waits for, what was decided last, and what to do next."""
    ott = kubectl.object(name)
    notes = []
    try:
        posted = kubectl.events(ott)
    except KubectlFailed as error:
        posted, notes = [], [f"Its events could not be read: {error}"]
    serving = kubectl.serving(ott)
    if serving is not None and serving.failure:
        notes.append(f"Whether its operator runs could not be read: {serving.failure}")
    shown = why_lines(ott, _screen(), time.time(), events=posted, serving=serving, notes=notes, flags=kubectl.flags)
    _say(shown)


@cli.command(epilog="Example: kubectl ott events orders-copy -n shop")
@object_argument
@kubectl_options
def events(kubectl: Kubectl, name: str) -> None:
    """Show what happened to NAME, its workers and its copy by Spark, in order of time; and the way out of warnings that
    still hold.

    Events that say the same are one line. Kubernetes keeps an event for an hour by default.
    """
    ott = kubectl.object(name)
    _say(events_lines(ott, kubectl.namespace_events(ott), _screen(), time.time(), flags=kubectl.flags))


@cli.command("pause", epilog="Example: kubectl ott pause orders-copy --wait")
@objects_argument
@kubectl_options
@wait_options("nothing is consumed any more")
def pause_(kubectl: Kubectl, names: Sequence[str], wait: bool, timeout: int) -> None:
    """Pause NAME: its workers finish what they hold and end. Changes wait in the stream, checkpoints are kept."""
    for name in names:
        ott = kubectl.object(name)
        _carry_out(kubectl, ott, pause(ott))
    if wait:
        _await(kubectl, names, "Suspended", timeout)


@cli.command("resume", epilog="Example: kubectl ott resume orders-copy --wait")
@objects_argument
@kubectl_options
@wait_options("it is Ready")
def resume_(kubectl: Kubectl, names: Sequence[str], wait: bool, timeout: int) -> None:
    """Resume NAME: its workers start and go on at the checkpoints."""
    for name in names:
        ott = kubectl.object(name)
        _carry_out(kubectl, ott, resume(ott))
    if wait:
        _await(kubectl, names, "Ready", timeout)


@cli.command("restart", epilog="Example: kubectl ott restart orders-copy")
@objects_argument
@kubectl_options
@wait_options("every worker is replaced")
def restart_(kubectl: Kubectl, names: Sequence[str], wait: bool, timeout: int) -> None:
    """Replace the workers of NAME one by one, as `kubectl rollout restart` does."""
    restarted = []
    for name in names:
        ott = kubectl.object(name)
        deployment = kubectl.deployment(ott)
        edit = restart(ott, deployment, time.time())
        assert edit.patch is not None
        kubectl.patch("deployments.apps", ott.name, ott.namespace, edit.patch)
        _say_edit(kubectl, edit)
        restarted.append(ott)
    if wait:
        for ott in restarted:
            kubectl.wait_for_rollout(ott, timeout)
            click.echo(f"{ott.namespace}/{ott.name}: every worker is replaced")


cli.add_command(reset_)


@cli.command(epilog="Examples: kubectl ott top -A; kubectl ott top orders-copy")
@optional_object_argument
@kubectl_options
@everywhere_option
@click.option("--interval", type=click.FloatRange(0.2, 3600), default=2.0, show_default=True, help="Seconds.")
@click.option("--count", "looks", type=click.IntRange(1), help="End after this many looks; without a terminal 1.")
def top(kubectl: Kubectl, name: str | None, everywhere: bool, interval: float, looks: int | None) -> None:
    """Follow all objects, those in trouble first; or the channels of NAME. The key q ends it."""
    if name and everywhere:
        raise click.UsageError("NAME and --all-namespaces exclude each other")
    course = Course()
    frame = functools.partial(_frame, kubectl, name, everywhere, course)
    if sys.stdout.isatty():
        with taken_terminal():
            follow(frame, draw, wait_for_key, interval=interval, looks=looks)
    else:
        follow(frame, _say, _pause_between, interval=interval, looks=looks or 1)


def _frame(kubectl: Kubectl, name: str | None, everywhere: bool, course: Course) -> list[str]:
    if name:
        ott = kubectl.object(name)
        course.add([ott])
        servings = kubectl.servings([ott])
        return object_frame(ott, kubectl.reports(ott), course, _screen(), time.time(), servings=servings)
    objects = kubectl.objects(everywhere=everywhere)
    course.add(objects)
    servings = kubectl.servings(objects)
    return fleet_frame(
        objects, course, _screen(), time.time(), everywhere=everywhere, servings=servings, flags=kubectl.flags
    )


def _carry_out(kubectl: Kubectl, ott: Ott, edit: Edit) -> None:
    """Send the patch, then say what it does."""
    if edit.patch is not None:
        kubectl.patch(RESOURCE, ott.name, ott.namespace, edit.patch)
    _say_edit(kubectl, edit)


def _await(kubectl: Kubectl, names: Sequence[str], condition: str, timeout: int) -> None:
    for name in names:
        ott = kubectl.object(name)
        kubectl.wait(ott, condition, timeout)
        click.echo(f"{ott.namespace}/{ott.name}: {condition} is True")


def _say_edit(kubectl: Kubectl, edit: Edit) -> None:
    _say([with_flags(line, kubectl.flags) for line in edit.words])


def _screen() -> Screen:
    return Screen.of(sys.stdout)


def _say(lines: Sequence[str]) -> None:
    for line in lines:
        click.echo(line, color=True)


def _pause_between(seconds: float) -> str:
    time.sleep(seconds)
    return ""


def main() -> None:
    """Run the command line. Exit codes: 0; 1 kubectl or the plugin refused; 2 wrong options; 130 by Ctrl-C."""
    if hasattr(signal, "SIGPIPE"):
        # `kubectl ott list | head` ends quietly
        signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    sys.exit(run(lambda: cli.main(prog_name="kubectl ott", standalone_mode=False)))


def run(command: Callable[[], Any]) -> int:
    """Run a command and tell its errors in one line each; the exit code."""
    try:
        command()
    except click.exceptions.Exit as ended:
        return ended.exit_code
    except click.ClickException as error:
        error.show()
        return error.exit_code
    except (click.Abort, KeyboardInterrupt):
        return 130
    except (KubectlFailed, Refused) as error:
        click.echo(f"error: {error}", err=True)
        return 1
    return 0
