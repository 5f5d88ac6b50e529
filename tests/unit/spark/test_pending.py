"""The splits of one job on their way from the driver to Spark's planner."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ots_tunnel.errors import CodecError
from ots_tunnel.model import PrimaryKey
from ots_tunnel.protocol.plainbuffer.codec import encode_primary_key
from ots_tunnel.snapshot.record import SPLITS_KEY
from ots_tunnel.snapshot.splits import SplitList
from ots_tunnel.spark.pending import read_pending, write_pending


def split_list(splits: int) -> SplitList:
    keys: list[PrimaryKey] = [(("k", number),) for number in range(1, splits)]
    return SplitList(("k",), tuple(encode_primary_key(key) for key in keys))


@given(st.data())
def test_the_pending_splits_arrive_and_no_other(tmp_path_factory: pytest.TempPathFactory, data: st.DataObject) -> None:
    splits = split_list(data.draw(st.integers(1, 40)))
    pending = data.draw(st.sets(st.integers(0, len(splits) - 1)))
    folder = tmp_path_factory.mktemp("splits")

    write_pending(folder, splits, pending)

    assert read_pending(folder) == [splits.split(index) for index in sorted(pending)]


def test_a_damaged_list_is_an_error(tmp_path: Path) -> None:
    write_pending(tmp_path, split_list(3), [1])
    (tmp_path / SPLITS_KEY).write_bytes(b"no gzip")

    with pytest.raises(CodecError, match="split list: damaged"):
        read_pending(tmp_path)
