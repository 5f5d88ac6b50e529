"""What is copied: reports in any order, repeated or late, never go back and never count twice."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ots_tunnel.errors import CodecError
from ots_tunnel.model import PrimaryKey
from ots_tunnel.protocol.plainbuffer.codec import encode_primary_key
from ots_tunnel.snapshot import cursors
from ots_tunnel.snapshot.copied import Copied, Report
from ots_tunnel.snapshot.splits import Split, SplitList


def key(value: int | str) -> PrimaryKey:
    return (("k", value),)


SPLITS = SplitList(("k",), tuple(encode_primary_key(key(value)) for value in (100, 200)))
FIRST, SECOND, THIRD = SPLITS.splits()


def test_a_split_resumes_at_its_cursor() -> None:
    copied = Copied().after([Report(1, key(100), key(140), 40, 2)], SPLITS)

    assert copied.cursors == {1: key(140)}
    assert copied.omitted == 2
    assert copied.pending(SPLITS) == [Split(1, key(140), key(200)), FIRST, THIRD]
    finished = copied.after([Report(1, key(140), None, 60, 1)], SPLITS)
    assert (finished.done, finished.cursors, finished.omitted) == (frozenset({1}), {}, 3)
    assert finished.pending(SPLITS) == [FIRST, THIRD]


@given(st.lists(st.sampled_from(range(5)), max_size=30))
def test_reports_that_come_twice_or_late_change_nothing(order: list[int]) -> None:
    steps = [100, 120, 140, 160, 180, None]
    reports = [Report(1, key(start), None if end is None else key(end), 1, 1) for start, end in pairwise(steps)]
    copied, furthest = Copied(), 0
    for number in order:
        copied = copied.after([reports[number]], SPLITS)
        furthest += number == furthest

        assert copied.omitted == furthest
        assert copied.done == ({1} if furthest == 5 else set())
        assert copied.cursors == ({1: key(steps[furthest])} if 0 < furthest < 5 else {})


def test_a_cursor_without_room_does_not_count(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ots_tunnel.snapshot.copied.MAX_BYTES", 2 * cursors.key_bytes(key(140)))
    reports = [
        Report(split.index, split.start, key(at), 1, 1)
        for split, at in zip(SPLITS.splits(), (40, 140, 240), strict=True)
    ]

    copied = Copied().after(reports, SPLITS)

    assert copied.cursors == {0: key(40), 1: key(140)}
    assert copied.omitted == 2
    # a split that is finished makes room
    copied = copied.after([Report(0, key(40), None, 1, 0), reports[2]], SPLITS)
    assert copied.cursors == {1: key(140), 2: key(240)}


def test_a_single_cursor_has_room_whatever_its_length() -> None:
    splits = SplitList(("k",), ())
    whole, long = splits.split(0), "x" * (cursors.MAX_BYTES + 1)

    assert Copied().after([Report(0, whole.start, key(long), 1, 0)], splits).cursors == {0: key(long)}


def test_cells_that_an_earlier_release_did_not_count_stay_unknown() -> None:
    assert Copied(omitted=None).after([Report(1, key(100), None, 1, 4)], SPLITS).omitted is None


def test_cursors_are_read_back() -> None:
    found = {2: key(250), 0: key(-5)}

    assert cursors.deserialise(cursors.serialise(found), SPLITS) == found
    assert cursors.deserialise(b"", SPLITS) == {}
    assert cursors.serialise(found) == cursors.serialise(dict(sorted(found.items())))


@pytest.mark.parametrize("wrong", [{0: key(100)}, {1: key(99)}, {3: key(1)}, {1: (("other", 150),)}])
def test_a_cursor_outside_of_its_split_is_damage(wrong: dict[int, PrimaryKey]) -> None:
    with pytest.raises(CodecError, match="cursors"):
        cursors.deserialise(cursors.serialise(wrong), SPLITS)


@pytest.mark.parametrize("payload", [b"x", cursors.serialise({1: key(150)})[:-6]])
def test_damaged_cursors_are_refused(payload: bytes) -> None:
    with pytest.raises(CodecError, match="cursors: damaged"):
        cursors.deserialise(payload, SPLITS)
