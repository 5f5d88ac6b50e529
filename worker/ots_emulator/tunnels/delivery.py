"""Delivery of records: where channels start, their pages, and the consume point after a checkpoint.

Theory of operation
-------------------
Parts. `base_channels` and `stream_channels` make the channels of a new tunnel. `PageReader` reads one page for one
call. `record_checkpoint` moves rows and consume point of a channel. `opening_token` answers GetCheckpoint.
`expire_by_clock` expires a tunnel whose log is gone. Reading changes no channel, so a client may read the same token
again and gets the same records.

Base channels. The table is cut between partition keys into slices of about `Settings.base_split_bytes`, at least as
many as it has partitions. A page holds the rows that exist at the time of the read, not of the tunnel's creation. The
next token holds the bound right after the last key, so a row that is inserted there is still delivered.

Stream channels. A channel reads one partition of the log from a position on. A BaseAndStream tunnel starts at the log's
end of its creation: everything written during the base phase is delivered. A Stream tunnel may start in the past.

A page ends with the first of these cases (docs/protocol.md 4.7):

1. `Settings.page_rows` records, or the record that reaches `Settings.page_bytes`: the next token continues there.
2. The end of the slice, the end of a closed partition, or the tunnel's end time: the next token is ``finished``.
3. The end of an open partition: the next token holds the same position, and the client asks again later.

Consume points (docs/architecture.md 3.5). The token of a page carries a time in nanoseconds: the commit time of its
last record, or the time of the read where the page reached the log's end (case 3, `Settings.idle_advance`). A
checkpoint moves the consume point to the time in its token. A checkpoint of ``finished`` moves it to the time at which
the partition was closed, or to the end time. No record may come at or before a time that was handed out like this, also
where the clock steps back: the log is notified of it (`ChangeLog.promise`). A restart makes the promises of the consume
points that are stored.

Records beyond the retention. What happens to a channel whose next record is gone is a setting, because the service's
documents name several ways (`settings.AfterRetention`, docs/protocol.md 4.8).

Finished pages are cached under everything they depend on: the table's revision for base pages, the positions in the
log for stream pages, which never change.

Example: a partition has entries 0 to 4 with commit times 10 to 14 s, `page_rows` is 3, the clock says 20 s. The start
token is position 0. The first page has entries 0 to 2; its token is position 3 at 12 s, and more follows. The second
page has entries 3 and 4 and reaches the log's end; its token is position 5 at 20 s. A checkpoint with that token moves
the consume point to 20 s: everything until then was read.

Source: docs/protocol.md 2.4, 4.1, 4.6, 4.7.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import pairwise

from ots_emulator.pages import Body, PageCache
from ots_emulator.refusal import parameter_invalid, records_trimmed, tunnel_expired
from ots_emulator.settings import AfterRetention, Settings
from ots_emulator.tables.changelog import ChangeLog
from ots_emulator.tables.keys import BOTTOM_KEY, TOP_KEY, Key
from ots_emulator.tables.partition import Partition
from ots_emulator.tables.table import Table
from ots_emulator.tunnels.channel import BaseSlice, TunnelChannel
from ots_emulator.tunnels.tokens import (
    BaseCursor,
    StreamCursor,
    base_token,
    read_base_token,
    read_stream_token,
    stream_token,
)
from ots_emulator.tunnels.tunnel import Tunnel
from ots_emulator.wire import page_tail, record_head
from ots_tunnel.model import FINISHED, Action, ChannelId, ChannelStatus, StreamConfig, Token, TunnelType
from ots_tunnel.protocol.plainbuffer.tags import HEADER


def base_channels(table: Table, settings: Settings) -> list[TunnelChannel]:
    """Cut the table into base channels: by size, at least one per partition."""
    by_size = -(-table.size_bytes // settings.base_split_bytes)
    starts = [BOTTOM_KEY, *table.quantiles(max(by_size, len(table.partition_starts()), 1))]
    return [
        TunnelChannel(
            ChannelId(f"BaseData_{number}"), BaseSlice(start, end), base_token(table.schema, BaseCursor(start, 0))
        )
        for number, (start, end) in enumerate(pairwise([*starts, TOP_KEY]))
    ]


def stream_channels(
    log: ChangeLog, tunnel_type: TunnelType, config: StreamConfig | None, now_us: int
) -> list[TunnelChannel]:
    """Return a channel for each partition that has records from the tunnel's start on, and for all that came of it.

    A partition may be split before it has a record. Its children wait for its parents only if it has a channel, too.
    The stream of a BaseAndStream tunnel starts at its creation, so nothing written during the base phase is lost;
    only Stream tunnels may start in the past.
    """
    past = config if tunnel_type is TunnelType.Stream else None
    channels: dict[str, TunnelChannel] = {}
    for partition in log.partitions.values():  # parents before their children
        if past is not None and past.earliest:
            position = log.first_position(partition, now_us)
        elif past is not None and past.start_offset_ns:
            position = max(partition.position_at(past.start_offset_ns // 1000), log.first_position(partition, now_us))
        else:
            position = partition.end
        waits = any(parent in channels for parent in partition.parents)
        if partition.closed_us is None or position < partition.end or waits:
            channels[partition.id] = stream_channel(partition, position)
    return list(channels.values())


def stream_channel(partition: Partition, position: int) -> TunnelChannel:
    """Return the channel of one partition, starting at a position of its log."""
    return TunnelChannel(ChannelId(partition.id), partition, stream_token(partition.id, StreamCursor(position, 0, 0)))


@dataclass(frozen=True, slots=True)
class PageReader:
    """Reads pages of one channel for one call; `pages` holds pages that can no longer change."""

    tunnel: Tunnel
    channel: TunnelChannel
    table: Table
    settings: Settings
    pages: PageCache
    now_us: int

    def read(self, token: Token) -> Body:
        """Return the page at a token.

        Raises:
            Refusal: the token belongs to another channel, or its records are gone.
        """
        if token == FINISHED:
            return _page([], FINISHED, may_more=False)
        if isinstance(self.channel.source, BaseSlice):
            return self._base_page(self.channel.source, _base_cursor(token, self.table, self.channel.source))
        return self._stream_page(self.channel.source, token)

    def _base_page(self, part: BaseSlice, cursor: BaseCursor) -> Body:
        table, settings = self.table, self.settings
        table.expire(self.now_us // 1000)
        # Any change of any row gives the table another revision.
        name = (table.revision, part.start, part.end, cursor, settings.page_rows, settings.page_bytes)
        kept = self.pages.get(name)
        if kept is not None:
            return kept
        records: list[bytes] = []
        size = 0
        last: Key = ()
        for key, image in table.scan(cursor.key, part.end, self.now_us // 1000):
            length = len(image)
            records.append(record_head(Action.PUT, length + len(HEADER)) + HEADER + image)
            size += length
            last = key
            if size >= settings.page_bytes or len(records) >= settings.page_rows:
                break
        else:
            self.channel.total_rows = cursor.rows + len(records)
            return _page(records, FINISHED, may_more=False)
        # The bound right after the last row, not the next row: a row inserted between them is still delivered.
        following = BaseCursor(table.schema.after(last), cursor.rows + len(records))
        page = _page(records, base_token(table.schema, following), may_more=True)
        self.pages.put(name, page, settings.page_cache_bytes)
        return page

    def _stream_page(self, partition: Partition, token: Token) -> Body:
        tunnel, settings, now_us = self.tunnel, self.settings, self.now_us
        cursor = _stream_cursor(token, partition)
        log = self._log_of(partition, cursor)
        if log is None:
            return _page([], FINISHED, may_more=False)
        if cursor.position < log.first_position(partition, now_us):
            cursor = self._after_retention(cursor, partition, log)
        end_us = _end_us(tunnel)
        # Entries between two positions never change, and partition ids are unique.
        name = (partition.id, cursor.position, cursor.rows, end_us, settings.page_rows, settings.page_bytes)
        kept = self.pages.get(name)
        if kept is not None:
            return kept
        page = log.read(partition, cursor.position, rows=settings.page_rows, size=settings.page_bytes, end_us=end_us)
        rows = cursor.rows + len(page.entries)
        until = partition.end if end_us is None else min(partition.end, partition.position_at(end_us))
        caught_up = page.next_position >= until
        if caught_up and self._is_ended(partition, log, end_us):
            self.channel.total_rows = rows
            return _page(page.entries, FINISHED, may_more=False)
        time_ns = cursor.time_ns if page.last_us is None else page.last_us * 1000
        if caught_up and settings.idle_advance:
            log.promise(now_us)
            time_ns = max(time_ns, now_us * 1000)
        following = stream_token(partition.id, StreamCursor(page.next_position, rows, time_ns))
        body = _page(page.entries, following, may_more=not caught_up)
        if not caught_up:
            self.pages.put(name, body, settings.page_cache_bytes)
        return body

    def _is_ended(self, partition: Partition, log: ChangeLog, end_us: int | None) -> bool:
        """Whether no record of the tunnel can come any more."""
        if partition.closed_us is not None:
            return True
        if end_us is None or max(self.now_us, log.complete_us) < end_us:
            return False
        log.promise(end_us)
        return True

    def _log_of(self, partition: Partition, cursor: StreamCursor) -> ChangeLog | None:
        """The log of a partition; None where it ended beyond the retention and nothing is missing, or the setting goes
        on without it."""
        log = self.table.log
        if log is not None:
            log.expire(self.now_us)
        if log is not None and partition.id in log.partitions:
            return log
        if log is not None and partition.closed_us is not None:
            if cursor.position == partition.end:
                return None
            match self.settings.after_retention:
                case AfterRetention.OLDEST | AfterRetention.LATEST:
                    return None
                case AfterRetention.LATEST_AT_OPEN:
                    raise records_trimmed()
        raise tunnel_expired()

    def _after_retention(self, cursor: StreamCursor, partition: Partition, log: ChangeLog) -> StreamCursor:
        """Where a read goes on whose next records are beyond the retention."""
        match self.settings.after_retention:
            case AfterRetention.OLDEST:
                return replace(cursor, position=log.first_position(partition, self.now_us))
            case AfterRetention.LATEST:
                return replace(cursor, position=partition.end)
            case AfterRetention.LATEST_AT_OPEN:
                raise records_trimmed()
        # It can never continue then (docs/protocol.md 4.8). A token older than the checkpoint tells nothing of that.
        self.tunnel.expired = _has_lost_records(self.channel, log, self.now_us)
        raise tunnel_expired()


def _page(records: list[bytes], next_token: Token, *, may_more: bool) -> Body:
    """Join encoded records to an answer."""
    return Body(b"".join((*records, page_tail(next_token, may_more=may_more))))


def expire_by_clock(tunnel: Tunnel, table: Table, settings: Settings, now_us: int) -> None:
    """Expire a tunnel that has a checkpoint before the first retained entry, if the setting says so."""
    log = table.log
    if tunnel.expired or log is None or settings.after_retention is not AfterRetention.EXPIRE:
        return
    log.expire(now_us)
    tunnel.expired = any(_has_lost_records(channel, log, now_us) for channel in tunnel.channels.values())


def opening_token(channel: TunnelChannel, table: Table, settings: Settings, now_us: int) -> Token:
    """Return the cursor for GetCheckpoint; the stored one, unless the setting moves a trimmed one to the log's end."""
    log, source = table.log, channel.source
    if log is None or isinstance(source, BaseSlice) or settings.after_retention is not AfterRetention.LATEST_AT_OPEN:
        return channel.token
    log.expire(now_us)
    if not _is_trimmed(channel, log, now_us):
        return channel.token
    if source.id not in log.partitions:
        return FINISHED
    rows = read_stream_token(channel.token, source.id).rows
    log.promise(now_us)
    return stream_token(source.id, StreamCursor(source.end, rows, now_us * 1000))


def _has_lost_records(channel: TunnelChannel, log: ChangeLog, now_us: int) -> bool:
    """Whether a channel is to be read on, and its next records are beyond the retention."""
    return channel.status is not ChannelStatus.TERMINATED and _is_trimmed(channel, log, now_us)


def _is_trimmed(channel: TunnelChannel, log: ChangeLog, now_us: int) -> bool:
    """Whether the next records of a channel's checkpoint are beyond the retention."""
    if isinstance(channel.source, BaseSlice) or channel.token == FINISHED:
        return False
    position = read_stream_token(channel.token, channel.source.id).position
    if channel.source.id not in log.partitions:
        # It is emptied and keeps its end, so a channel that has read everything misses nothing. One that never closed
        # left with a log that was switched off.
        return channel.source.closed_us is None or position < channel.source.end
    return position < log.first_position(channel.source, now_us)


def record_checkpoint(tunnel: Tunnel, channel: TunnelChannel, token: Token, table: Table, now_us: int) -> None:
    """Move rows and consume point of a channel to those of its new checkpoint.

    The consume point stays within what can have been read: a token may be of a clock whose shift is lost, or forged.

    Raises:
        Refusal: the token belongs to another channel.
    """
    if isinstance(channel.source, BaseSlice):
        channel.rows = channel.total_rows if token == FINISHED else _base_cursor(token, table, channel.source).rows
        return
    if token == FINISHED:
        channel.rows = channel.total_rows or channel.rows
        reached_ns = _promised_ns(_ended_ns(tunnel, channel.source), table.log, now_us)
        channel.consume_point_ns = max(channel.consume_point_ns, reached_ns)
        return
    cursor = _stream_cursor(token, channel.source)
    channel.rows = cursor.rows
    channel.consume_point_ns = _promised_ns(cursor.time_ns, table.log, now_us)


def _promised_ns(time_ns: int, log: ChangeLog | None, now_us: int) -> int:
    """Return a consume point that is not in the future of clock and log; no later record is at or before it."""
    if log is None:
        return time_ns
    reached_ns = min(time_ns, max(now_us, log.complete_us) * 1000)
    log.promise(reached_ns // 1000)
    return reached_ns


def _base_cursor(token: Token, table: Table, part: BaseSlice) -> BaseCursor:
    return read_base_token(token, table.schema, part.start, part.end)


def _stream_cursor(token: Token, partition: Partition) -> StreamCursor:
    cursor = read_stream_token(token, partition.id)
    if cursor.position > partition.end:
        raise parameter_invalid(f"[tunnelservice] invalid token: position {cursor.position} is behind the log's end")
    return cursor


def _end_us(tunnel: Tunnel) -> int | None:
    offset_ns = tunnel.config.end_offset_ns if tunnel.config is not None else 0
    return offset_ns // 1000 if offset_ns else None


def _ended_ns(tunnel: Tunnel, partition: Partition) -> int:
    ends = [time_us for time_us in (partition.closed_us, _end_us(tunnel)) if time_us is not None]
    return min(ends) * 1000 if ends else 0
