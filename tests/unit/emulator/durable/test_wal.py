"""Damage in a write-ahead log is told from what a kill leaves."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from ots_emulator.durable.wal import damage_in

PAGE_BYTES = 512
FRAME_BYTES = 24 + PAGE_BYTES
HEADER_BYTES = 32


@pytest.fixture
def log(tmp_path: Path) -> bytes:
    """A log of three commits; the last one has more than one page."""
    with closing(sqlite3.connect(tmp_path / "db", isolation_level=None)) as db:
        for pragma in (f"page_size = {PAGE_BYTES}", "journal_mode = WAL", "wal_autocheckpoint = 0"):
            db.execute(f"PRAGMA {pragma}")
        db.execute("CREATE TABLE t(v)")
        db.execute("INSERT INTO t VALUES (1)")
        db.execute("INSERT INTO t VALUES (zeroblob(3000))")
        return (tmp_path / "db-wal").read_bytes()


def flipped(log: bytes, place: int) -> bytes:
    return log[:place] + bytes((log[place] ^ 1,)) + log[place + 1 :]


def commits(log: bytes) -> list[int]:
    """Where the frames start that end a commit."""
    starts = range(HEADER_BYTES, len(log), FRAME_BYTES)
    return [start for start in starts if any(log[start + 4 : start + 8])]


def test_a_whole_log_is_not_damaged(log: bytes) -> None:
    assert len(commits(log)) == 3
    assert commits(log)[-1] - commits(log)[-2] > FRAME_BYTES
    assert damage_in(log) is None
    assert damage_in(b"") is None


def test_a_log_that_ends_early_looks_like_one_of_a_killed_process(log: bytes) -> None:
    assert [damage_in(log[:size]) for size in range(0, len(log), 100)] == [None] * len(range(0, len(log), 100))


@pytest.mark.parametrize("offset", [0, 4, 8, 16, 23, 24, FRAME_BYTES - 1])
def test_damage_before_a_later_commit_is_found(log: bytes, offset: int) -> None:
    for start in range(HEADER_BYTES, commits(log)[-2], FRAME_BYTES):
        assert damage_in(flipped(log, start + offset)) == start


@pytest.mark.parametrize("place", [0, 9, 16, 31])
def test_a_damaged_header_hides_every_commit(log: bytes, place: int) -> None:
    assert damage_in(flipped(log, place)) == 0


def test_the_rest_of_a_commit_that_was_cut_short_is_no_damage(log: bytes) -> None:
    """A kill may leave it; a later commit overwrites its beginning."""
    cut = log[: commits(log)[-1]]

    assert damage_in(flipped(cut, commits(log)[-2] + FRAME_BYTES)) is None


def test_frames_of_an_earlier_use_are_no_damage(log: bytes) -> None:
    """SQLite begins at the front again, with other salts, and leaves the rest of the file as it is."""
    first, second, _ = commits(log)
    earlier = b"".join(
        frame[:8] + bytes(8) + frame[16:]
        for frame in (log[start : start + FRAME_BYTES] for start in range(first, len(log), FRAME_BYTES))
    )

    assert damage_in(log[: second + FRAME_BYTES] + earlier) is None
