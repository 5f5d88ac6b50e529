"""The end time of a stream channel: which records of a page lie before it, and when the channel is done.

The service bounds a tunnel only by a time in the past; for any other end time the worker stops by itself. A stream
channel is done when it has seen a later record, or an empty read that was answered after the end. The page with the
boundary is written up to it and its token is never stored, so every resume reads it again (docs/architecture.md 3.4).

That a later record ends a channel takes the clocks of two epochs for equal: a record of a new epoch that is from before
the end, but comes on a page behind the boundary, is not read.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from ots_tunnel.client.page import Page
from ots_tunnel.protocol.page import reached_log_end
from ots_tunnel.protocol.record import Record


@dataclass(frozen=True, slots=True)
class CutPage:
    """A page up to the end time.

    Args:
        page: without later records.
        done: whether the channel needs no further read.
        whole: whether no record was cut off: only then may the token behind it be stored.
    """

    page: Page
    done: bool
    whole: bool


def cut_page(page: Page, end_us: int, known_time: float | None) -> CutPage:
    """Leave out records committed after `end_us` (Unix microseconds).

    Args:
        page: as it was read.
        end_us: the end time.
        known_time: the service's clock in an answer that arrived before this read was sent, Unix seconds; None without.

    Raises:
        CodecError: a record of a stream channel has no position.
    """
    if not page.records:
        has_passed = known_time is not None and known_time * 1e6 > end_us
        return CutPage(page, has_passed and reached_log_end(page.may_more, page.rows), True)
    if _commit_time_us(page.records[-1]) <= end_us:
        # A later one of a former epoch is written with it: to stop here would lose what the new epoch has behind it.
        return CutPage(page, False, True)
    # Entries are ordered by their epoch first (docs/protocol.md 3.3), so one of a new epoch may be earlier.
    kept = [record for record in page.records if _commit_time_us(record) <= end_us]
    # What was cut off lies before the log's end, so this page does not show what the log looks like there.
    return CutPage(replace(page, records=kept, may_more=True), True, False)


def _commit_time_us(record: Record) -> int:
    sequence = record.sequence
    return 0 if sequence is None else sequence.timestamp_us
