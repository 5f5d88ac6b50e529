"""Requests for leases, byte for byte as the vendor's Java Stream Client 1.0.0 sent them to an emulator."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from ots_tunnel.protocol import table_pb2 as pb
from ots_tunnel.protocol.plainbuffer.codec import decode_row
from ots_tunnel.stream.lease import change
from ots_tunnel.stream.lease.change import Change
from ots_tunnel.stream.lease.lease import TRIM_HORIZON, Lease, Position, WorkerId
from ots_tunnel.stream.lease.requests import change_request, create_request, create_table_request, equal
from ots_tunnel.stream.lease.row import decode_lease, encode_lease
from ots_tunnel.stream.shards import ShardId
from tests.simulation.leases.library import table

SENT = {
    name: bytes.fromhex(text)
    for name, text in json.loads((Path(__file__).parent / "stream" / "java-requests.json").read_text()).items()
}
STREAM = "events_1795697390183192"
JAVA_A, JAVA_B = WorkerId("java-a"), WorkerId("java-b")
FIRST = Lease(STREAM, ShardId("564d4bf9-a5a8-483c-a3dc-f64523517269_1795697390183192"))
CHILD = Lease(
    STREAM,
    ShardId("24ececf8-a1ff-464c-ad10-d0dd7642d067_1795697390183192"),
    parents=frozenset({ShardId("5787f476-426a-44cd-bb4b-dd9e23f78574_1795697390183192")}),
)
STOLEN = Lease(STREAM, ShardId("736c42ee-c467-4081-ba84-5313f5d694a0_1795697390183192"), 30, JAVA_A)

CHANGES = {
    "take": change.take(FIRST, JAVA_A),
    "renew": change.renew(replace(FIRST, counter=1, owner=JAVA_A)),
    "checkpoint": change.store(replace(FIRST, counter=4, owner=JAVA_A), Position(f"{FIRST.shard_id}:16")),
    "steal": change.steal(STOLEN, JAVA_B),
    "transfer": change.transfer(replace(CHILD, counter=222, owner=JAVA_A, stealer=JAVA_B)),
}


@pytest.mark.parametrize("name", CHANGES)
def test_the_library_of_the_simulation_sends_a_change_as_java_does(name: str) -> None:
    assert table.change_request("leases", CHANGES[name]).SerializeToString() == SENT[name]


@pytest.mark.parametrize("name", CHANGES)
def test_a_change_is_sent_as_java_sends_it_besides_its_condition(name: str) -> None:
    as_java = replace(CHANGES[name], takes_released=False)
    request, sent = change_request("leases", as_java), pb.UpdateRowRequest.FromString(SENT[name])
    if CHANGES[name].kind is not change.Kind.STEAL:
        assert request.condition.row_existence == sent.condition.row_existence
        request.condition.CopyFrom(sent.condition)

    assert request.SerializeToString() == SENT[name]


def test_a_take_also_says_that_the_owner_takes_released_leases() -> None:
    columns = decode_row(change_request("leases", CHANGES["take"]).row_change).columns
    of_java = decode_row(pb.UpdateRowRequest.FromString(SENT["take"]).row_change).columns

    assert columns[:-1] == of_java
    assert (columns[-1].name, columns[-1].value) == ("TakesReleased", JAVA_A)


@pytest.mark.parametrize("made", [made for made in CHANGES.values() if made.kind is not change.Kind.STEAL])
def test_a_change_asks_for_the_counter_as_java_does_and_for_the_owner(made: Change) -> None:
    asked = pb.Filter.FromString(change_request("leases", made).condition.column_condition)
    both = pb.CompositeColumnValueFilter.FromString(asked.filter)

    assert asked.type == pb.FT_COMPOSITE_COLUMN_VALUE
    assert both.combinator == pb.LO_AND
    assert list(both.sub_filters) == [
        equal("LeaseCounter", made.before.counter),
        equal("LeaseOwner", made.before.owner),
    ]


def test_every_change_of_java_has_a_recording() -> None:
    ours = {change.Kind.HAND_OVER, change.Kind.RELEASE, change.Kind.RESTORE}

    assert {each.kind for each in CHANGES.values()} == set(change.Kind) - ours


def test_a_row_is_written_as_java_writes_it() -> None:
    sent = pb.PutRowRequest.FromString(SENT["create"])

    assert encode_lease(CHILD) == sent.row
    assert decode_lease(decode_row(sent.row)) == CHILD
    assert CHILD.checkpoint == TRIM_HORIZON


def test_a_lease_is_created_by_javas_request_besides_its_condition_and_what_the_row_says_of_it() -> None:
    request = create_request("leases", CHILD)
    assert request.condition.row_existence == pb.EXPECT_NOT_EXIST
    created = decode_lease(decode_row(request.row))
    assert isinstance(created, Lease)
    assert created.created_if_missing

    request.condition.row_existence = pb.IGNORE
    request.row = encode_lease(CHILD)

    assert request.SerializeToString() == SENT["create"]


def test_the_table_is_created_as_java_creates_it() -> None:
    assert create_table_request("leases").SerializeToString() == SENT["create table"]


@pytest.mark.parametrize("name", CHANGES)
def test_what_is_sent_is_what_the_change_says(name: str) -> None:
    made: Change = CHANGES[name]
    sent = decode_row(pb.UpdateRowRequest.FromString(SENT[name]).row_change)
    row = decode_row(encode_lease(made.before))
    merged = {column.name: column for column in (*row.columns, *sent.columns)}

    assert decode_lease(replace(row, columns=tuple(merged.values()))) == made.after
