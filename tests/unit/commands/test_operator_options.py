"""Options of the operator's process that hold more than one value: what they mean, and what they refuse."""

from __future__ import annotations

import click
import pytest

from ots_tunnel_operator.__main__ import read_labels, read_network
from ots_tunnel_operator.settings import WorkerNetwork

CONTEXT = click.Context(click.Command("run"))
OPTION = click.Option(["--option"])


def test_labels_are_pairs_and_a_value_may_hold_the_sign() -> None:
    assert read_labels(CONTEXT, OPTION, ("release=prometheus", "a=b=c", "empty=")) == (
        ("release", "prometheus"),
        ("a", "b=c"),
        ("empty", ""),
    )


@pytest.mark.parametrize("value", ["release", "=prometheus", ""])
def test_a_label_without_a_key_is_refused(value: str) -> None:
    with pytest.raises(click.BadParameter, match=f"found {value!r}, allowed is KEY=VALUE"):
        read_labels(CONTEXT, OPTION, (value,))


def test_what_a_policy_allows_is_read_from_json() -> None:
    assert read_network(CONTEXT, OPTION, None) is None
    assert read_network(CONTEXT, OPTION, '{"from": [{"a": 1}]}') == WorkerNetwork(({"a": 1},))
    # no rule at all is not the same as no limit
    assert read_network(CONTEXT, OPTION, '{"from": [], "egress": []}') == WorkerNetwork((), ())


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("{", "found no JSON"),
        ("[]", 'allowed is an object with "from"'),
        ('{"egress": []}', 'allowed is an object with "from"'),
        ('{"from": [], "ingress": []}', 'allowed is an object with "from"'),
        ('{"from": {}}', "from: allowed is a list of objects"),
        ('{"from": [], "egress": ["443"]}', "egress: allowed is a list of objects"),
    ],
)
def test_another_form_is_refused(text: str, words: str) -> None:
    with pytest.raises(click.BadParameter, match=words):
        read_network(CONTEXT, OPTION, text)
