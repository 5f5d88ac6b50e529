"""The views of an object that reads a stream by leases."""

from __future__ import annotations

from typing import Any

import pytest

from ots_tunnel_operator.plugin.channels import channels_lines
from ots_tunnel_operator.plugin.edits import Refused
from ots_tunnel_operator.plugin.ott import Ott
from ots_tunnel_operator.plugin.reset_edit import reset
from ots_tunnel_operator.plugin.text.screen import Screen
from ots_tunnel_operator.plugin.why.advice import steps_for
from ots_tunnel_operator.plugin.why.state import now_sentences, title
from ots_tunnel_operator.reasons import Reason
from ots_tunnel_operator.reset.request import Existing, Form, Request
from tests.support.operator.plugin_objects import NOW, body, reports, status

LEASES = "ots-tunnel stream leases orders orders_leases --from-object shop/orders-copy"
DELETE = "kubectl -n shop delete ott orders-copy"


def by_leases(**changes: Any) -> Ott:
    found = body(source__tunnel=None, source__stream={"leaseTable": "orders_leases"})
    tunnel = {"id": "orders_17", "type": "Stream", "leaseTable": "orders_leases", "createdByOperator": False}
    found["status"] = status(**({"tunnel": tunnel, "base": {}} | changes))
    return Ott(found)


def test_it_reads_changes() -> None:
    assert title(by_leases()).startswith("shop/orders-copy: changes of table orders in shop -> ")


def test_shards_have_their_word() -> None:
    text = " ".join(now_sentences(by_leases(), NOW))
    lines = channels_lines(by_leases(channels={"total": 5, "open": 4, "unowned": 1}), reports(), Screen(), NOW)

    assert "5 shards are read" in text
    assert "The slowest shard is 12 s behind" in text
    assert lines[0].startswith("shop/orders-copy: 5 shards: 4 open, 1 unowned")
    assert "SHARD" in lines[2]
    assert "channel" not in text
    assert "channel" not in " ".join(lines).lower()


def test_what_was_not_looked_at_is_said() -> None:
    unseen = by_leases(lag={"byCheckpoint": 2, "notLookedAt": 1, "slowest": []})

    assert "Its lag is not known: no worker reports 1 shard, and no look" in " ".join(now_sentences(unseen, NOW))
    text = " ".join(channels_lines(unseen, (), Screen(), NOW))
    assert "No worker reports 2 shards by the checkpoint of the lease, and the lag of 1 shard is not known." in text


@pytest.mark.parametrize(
    ("reason", "command"),
    [
        (Reason.NO_STREAM, DELETE),
        (Reason.STREAM_REPLACED, DELETE),
        (Reason.LEASE_TABLE_IN_USE, "kubectl ott list -A"),
        (Reason.LEASE_TABLE_UNUSABLE, LEASES),
        (Reason.FOREIGN_CLIENT, LEASES),
        (Reason.DESTINATION_BEHIND_TUNNEL, DELETE),
        (
            Reason.POSSIBLE_GAP,
            "kubectl -n shop patch ott orders-copy --type merge -p "
            '\'{"spec":{"source":{"stream":{"onPossibleGap":"Continue"}}}}\'',
        ),
    ],
)
def test_what_to_type(reason: Reason, command: str) -> None:
    assert command in [text for step in steps_for(by_leases(), reason) for text in step.commands]


@pytest.mark.parametrize("form", Form)
def test_every_form_of_a_reset_is_refused(form: Form) -> None:
    with pytest.raises(Refused, match=r"spec\.source: found stream, needed is tunnel"):
        reset(by_leases(), Request("t-1", form, None, Existing.KEEP), NOW)


@pytest.mark.parametrize("reason", [Reason.NO_STREAM, Reason.STREAM_REPLACED])
@pytest.mark.parametrize(("start", "is_warned"), [("Earliest", False), ("Latest", True)])
def test_what_the_new_stream_has_is_not_left_out_by_latest(reason: Reason, start: str, is_warned: bool) -> None:
    found = by_leases()
    found.body["spec"]["source"]["stream"]["startFrom"] = start

    text = " ".join(step.text for step in steps_for(found, reason))

    assert ("startFrom Earliest" in text) is is_warned


def test_the_table_of_leases_of_an_object_is_not_to_be_edited() -> None:
    first, second = steps_for(by_leases(), Reason.LEASE_TABLE_UNUSABLE)

    assert (first.commands, second.commands) == ((LEASES,), (DELETE,))
    assert "apply it again with another table of leases" in second.text


@pytest.mark.parametrize(
    "reason",
    [Reason.POSSIBLE_GAP, Reason.LEASE_TABLE_UNUSABLE, Reason.DESTINATION_BEHIND_TUNNEL, Reason.NO_STREAM],
)
@pytest.mark.parametrize(("start", "is_warned"), [("Earliest", False), ("Latest", True)])
def test_where_latest_would_leave_out_changes_another_start_is_named(
    reason: Reason, start: str, is_warned: bool
) -> None:
    found = by_leases()
    found.body["spec"]["source"]["stream"]["startFrom"] = start

    text = " ".join(step.text for step in steps_for(found, reason))

    assert ("startFrom Earliest" in text) is is_warned


def test_a_table_that_is_gone_is_created_before_the_object_is_applied_again() -> None:
    first, second = steps_for(by_leases(), Reason.NO_STREAM)

    assert first.text.startswith("Create the table, if it is gone, and switch the stream of the table on")
    assert second.commands == (DELETE,)


def test_what_was_not_observed_is_waited_for() -> None:
    (step,) = steps_for(by_leases(), Reason.UNKNOWN, "the lag is not known yet")

    assert step.text == "Nothing but to wait; watch it:"
