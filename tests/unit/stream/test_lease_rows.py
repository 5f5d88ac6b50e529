"""Rows and leases: every lease survives its row, and a row that is not a lease says what is wrong."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ots_tunnel.errors import CodecError
from ots_tunnel.model import PrimaryKey, Value
from ots_tunnel.protocol.plainbuffer.codec import DecodedRow, decode_row
from ots_tunnel.protocol.plainbuffer.column import Column
from ots_tunnel.stream.lease.lease import SHARD_END, HalfLease, Lease, Position, WorkerId
from ots_tunnel.stream.lease.row import ATTRIBUTES, LARGEST_COUNTER, decode_lease, encode_lease, lease_key
from ots_tunnel.stream.shards import ShardId

TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
IDS = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\n"), min_size=1, max_size=12)
LEASES = st.builds(
    Lease,
    stream_id=TEXTS,
    shard_id=IDS.map(ShardId),
    counter=st.integers(0, LARGEST_COUNTER - 1),
    owner=TEXTS.map(WorkerId),
    stealer=TEXTS.map(WorkerId),
    checkpoint=TEXTS.map(Position),
    parents=st.frozensets(IDS.map(ShardId), max_size=3),
).filter(lambda lease: lease.shard_id not in lease.parents)
KEY = lease_key("s", ShardId("a"))
WHOLE: dict[str, Value] = {
    "LeaseCounter": 3,
    "LeaseOwner": "me",
    "LeaseStealer": "",
    "Checkpoint": "i",
    "ParentShardIds": "q\n\np\n",
}


def row(values: dict[str, Value], key: PrimaryKey = KEY) -> DecodedRow:
    return DecodedRow(key, tuple(Column(name, value, 5) for name, value in values.items()), False, None)


@given(LEASES)
def test_a_lease_survives_its_row(lease: Lease) -> None:
    assert decode_lease(decode_row(encode_lease(lease))) == lease


def test_parents_in_any_order_and_empty_pieces_are_read() -> None:
    parents = frozenset({ShardId("p"), ShardId("q")})

    assert decode_lease(row(WHOLE)) == Lease(
        "s", ShardId("a"), 3, WorkerId("me"), checkpoint=Position("i"), parents=parents
    )


@pytest.mark.parametrize(("value", "says"), [(True, True), (False, False), ("true", False), (1, False)])
def test_a_row_says_that_it_was_created_because_there_was_none(value: Value, says: bool) -> None:
    found = decode_lease(row({**WHOLE, "CreatedIfMissing": value}))

    assert isinstance(found, Lease)
    assert found.created_if_missing is says
    assert found.counter == 3


@pytest.mark.parametrize(("value", "says"), [("me", True), ("other", False), (True, False)])
def test_a_row_says_that_its_owner_takes_released_leases_as_long_as_it_names_the_owner(
    value: Value, says: bool
) -> None:
    found = decode_lease(row({**WHOLE, "TakesReleased": value}))

    assert isinstance(found, Lease)
    assert found.takes_released is says
    assert decode_lease(decode_row(encode_lease(found))) == found


def test_the_newest_version_counts_and_other_attributes_are_ignored() -> None:
    columns = (Column("LeaseCounter", 4, 9), *row(WHOLE).columns, Column("other", 1, 5))

    found = decode_lease(DecodedRow(KEY, columns, False, None))

    assert isinstance(found, Lease)
    assert found.counter == 4


@pytest.mark.parametrize("name", ATTRIBUTES)
def test_a_row_without_an_attribute_is_half_a_lease(name: str) -> None:
    rest = {other: value for other, value in WHOLE.items() if other != name}

    assert decode_lease(row(rest)) == HalfLease("s", ShardId("a"), (name,))


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("LeaseCounter", "3", "LeaseCounter of shard 'a': found str, allowed is an integer"),
        ("LeaseCounter", True, "LeaseCounter of shard 'a': found bool, allowed is an integer"),
        ("LeaseCounter", -1, "LeaseCounter of shard 'a': found -1, allowed is 0 to 9223372036854775806"),
        (
            "LeaseCounter",
            2**63 - 1,
            "LeaseCounter of shard 'a': found 9223372036854775807, allowed is 0 to 9223372036854775806",
        ),
        ("ParentShardIds", "p\na\n", "ParentShardIds of shard 'a': found the shard itself, none is its own ancestor"),
        ("LeaseOwner", 1, "LeaseOwner of shard 'a': found int, allowed is text"),
        ("Checkpoint", b"i", "Checkpoint of shard 'a': found bytes, allowed is text"),
    ],
)
def test_an_attribute_that_no_lease_has_is_refused(name: str, value: Value, message: str) -> None:
    with pytest.raises(CodecError) as caught:
        decode_lease(row(WHOLE | {name: value}))

    assert str(caught.value) == message


@pytest.mark.parametrize(
    "key",
    [
        (("pk", "a"),),
        (("StreamId", 1), ("StatusType", "LeaseKey"), ("StatusValue", "a")),
        (("StreamId", "s"), ("StatusType", "CheckpointForDataxReader"), ("StatusValue", "a")),
        (("StreamId", "s"), ("StatusType", "LeaseKey"), ("StatusValue", 7)),
    ],
)
def test_the_key_of_another_program_is_refused(key: PrimaryKey) -> None:
    with pytest.raises(CodecError, match="allowed are StreamId, StatusType, StatusValue"):
        decode_lease(row(WHOLE, key))


def test_a_line_feed_in_a_parents_id_is_refused() -> None:
    with pytest.raises(CodecError, match="ParentShardIds of shard 'a'"):
        encode_lease(Lease("s", ShardId("a"), parents=frozenset({ShardId("p\nq")})))


def test_a_lease_says_whether_it_is_finished_or_handed_over() -> None:
    me, other = WorkerId("me"), WorkerId("other")

    assert Lease("s", ShardId("a"), checkpoint=SHARD_END).is_finished
    assert not Lease("s", ShardId("a")).is_finished
    assert Lease("s", ShardId("a"), owner=me, stealer=me).is_handed_over
    assert not Lease("s", ShardId("a"), owner=me, stealer=other).is_handed_over
    assert not Lease("s", ShardId("a")).is_handed_over


def test_a_checkpoint_is_not_printed() -> None:
    assert "secret" not in repr(Lease("s", ShardId("a"), checkpoint=Position("secret")))
