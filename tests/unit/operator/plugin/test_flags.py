"""A command that is shown goes to the cluster that was asked."""

from __future__ import annotations

import shlex

import pytest

from ots_tunnel_operator.plugin.events.view import events_lines
from ots_tunnel_operator.plugin.flags import with_flags
from ots_tunnel_operator.plugin.fleet import fleet_lines
from ots_tunnel_operator.plugin.text.screen import Screen
from ots_tunnel_operator.plugin.why.advice import next_steps, steps_for
from ots_tunnel_operator.plugin.why.remedies import REMEDIES
from ots_tunnel_operator.plugin.why.view import why_lines
from ots_tunnel_operator.times import timestamp
from tests.support.operator.plugin_objects import NOW, STATES, UID, expired, late

FLAGS = ("--context=prod", "--as=on call")
GIVEN = "--context=prod '--as=on call'"


@pytest.mark.parametrize(
    ("text", "flags", "shown"),
    [
        ("kubectl -n shop edit ott a", FLAGS, f"kubectl {GIVEN} -n shop edit ott a"),
        ("kubectl ott why a -n shop", FLAGS, f"kubectl ott why {GIVEN} a -n shop"),
        ("kubectl apply --server-side -f crds/", FLAGS, f"kubectl {GIVEN} apply --server-side -f crds/"),
        (
            "kubectl -n shop create secret generic x -o yaml | kubectl replace -f -",
            ("--context=prod",),
            "kubectl --context=prod -n shop create secret generic x -o yaml | kubectl --context=prod replace -f -",
        ),
        (
            "ots-tunnel channels --from-object shop/a",
            ("--context=prod",),
            "ots-tunnel channels --from-object shop/a --context=prod",
        ),
        (
            "delete it by `ots-tunnel tunnel delete t a --from-object shop/a`, then `kubectl ott pause a -n shop`",
            ("--kubeconfig=/k",),
            "delete it by `KUBECONFIG=/k ots-tunnel tunnel delete t a --from-object shop/a`, then "
            "`kubectl ott pause --kubeconfig=/k a -n shop`",
        ),
        ("kubectl ott why a -n shop", (), "kubectl ott why a -n shop"),
        ("kubectl refused", FLAGS, "kubectl refused"),
    ],
)
def test_flags_are_where_each_program_takes_them(text: str, flags: tuple[str, ...], shown: str) -> None:
    assert with_flags(text, flags) == shown


@pytest.mark.parametrize(
    "text",
    sorted(
        {command for make in STATES.values() for step in next_steps(make()) for command in step.commands}
        | {command for reason in REMEDIES for step in steps_for(late(), reason) for command in step.commands}
    ),
)
def test_every_command_of_an_advice_has_the_context(text: str) -> None:
    for command in with_flags(text, ("--context=prod",)).split(" | "):
        assert "--context=prod" in shlex.split(command)


@pytest.mark.parametrize("name", sorted(STATES))
def test_no_view_shows_a_command_without_it(name: str) -> None:
    ott = STATES[name]()
    warning = {
        "involvedObject": {"kind": "TablestoreTunnel", "uid": UID},
        "type": "Warning",
        "reason": ott.condition("Ready").reason,
        "lastTimestamp": timestamp(NOW - 60),
    }
    views = [
        why_lines(ott, Screen(), NOW, flags=("--context=prod",)),
        events_lines(ott, [warning], Screen(), NOW, flags=("--context=prod",)),
        fleet_lines([ott], Screen(), NOW, flags=("--context=prod",))[-1:],
    ]

    for lines in views:
        text = " ".join(" ".join(lines).split())
        assert text == with_flags(text.replace(" --context=prod", ""), ("--context=prod",))


def test_the_summary_of_a_list_leads_to_the_same_cluster() -> None:
    lines = fleet_lines([expired()], Screen(), NOW, flags=("--context=prod",))

    assert lines[-1].endswith("kubectl ott why --context=prod orders-copy -n shop")
