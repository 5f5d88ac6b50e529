"""Progress of a comparison in one line."""

from __future__ import annotations

from ots_tunnel.console.progress_bar import duration
from ots_tunnel.verify.meter import VerifyMeter


def test_progress_in_one_line() -> None:
    meter = VerifyMeter(
        slices=40, slices_done=20, slices_before=10, rows=3_000, rows_before=1_000, differences=2, suspects=5
    )

    assert meter.line(10) == ("3,000 rows, 200 rows/s, slices 20/40, 2 differences, 5 rows to recheck, about 0:20 left")
    assert VerifyMeter(slices=4).seconds_left(10) is None
    assert VerifyMeter(slices=4, slices_done=4).seconds_left(10) is None
    assert (duration(59.6), duration(3_725)) == ("1:00", "1:02:05")
