"""Names of published files, and which files a replay replaces; pure (docs/architecture.md rule 16).

    stream channel  <epoch>-<microseconds>-<index>.<records>.<suffix>
                    0000000001-00001700000000000000-0000000003.250.jsonl
    base channel    <number>.<records>.<suffix>
                    0000000007.250.jsonl

A stream file has the sequence of the first record that was read for it, padded with zeros as in DataX, so that names
sort in commit order. Records of existing rows have no sequence: their files are numbered from 0, and the first record
of a file tells where it starts. The number of records is part of a name, so that a file that a paused worker publishes
late never replaces a longer one.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from urllib.parse import quote

from ots_tunnel.model import FINISHED, ChannelId, PrimaryKey, SequenceInfo, Token, TunnelId
from ots_tunnel.protocol.plainbuffer.codec import decode_primary_key
from ots_tunnel.protocol.token import parse_token

_STREAM_NAME = re.compile(r"^(\d{10})-(\d{20})-(\d{10})\.\d+\.")
_BASE_NAME = re.compile(r"^(\d{10})\.\d+\.")


def folder_of(tunnel_id: TunnelId, channel_id: ChannelId) -> str:
    """The folder of a channel's files, relative to the sink's own; different ids have different folders."""
    return f"{_folder_name(tunnel_id)}/{_folder_name(channel_id)}"


def _folder_name(name: str) -> str:
    """A name for a folder of its own: no separators, neither the folder itself nor the one above, and not empty."""
    quoted = quote(name, safe="")
    if quoted.strip(".") or len(quoted) > 2:
        return quoted
    return quoted.replace(".", "%2E") or "%"


def position_text(start: SequenceInfo) -> str:
    """The beginning of the name of a stream channel's file; it sorts before every file at this position or after it."""
    return f"{start.epoch:010d}-{start.timestamp_us:020d}-{start.row_index:010d}"


def stream_name(start: SequenceInfo, rows: int, suffix: str) -> str:
    """Name of a stream channel's file.

    Args:
        start: position of the first record that was read for it.
        rows: records in it.
        suffix: of its format, without the dot.
    """
    return f"{position_text(start)}.{rows}.{suffix}"


def base_name(ordinal: int, rows: int, suffix: str) -> str:
    """Name of a base channel's file, numbered from 0."""
    return f"{ordinal:010d}.{rows}.{suffix}"


def stream_names(names: Iterable[str]) -> list[tuple[SequenceInfo, str]]:
    """The files of a stream channel, sorted by position; other names are left out."""
    found = []
    for name in names:
        if match := _STREAM_NAME.match(name):
            epoch, timestamp_us, row_index = map(int, match.groups())
            found.append((SequenceInfo(epoch, timestamp_us, row_index), name))
    return sorted(found)


def base_names(names: Iterable[str]) -> list[tuple[int, str]]:
    """The files of a base channel, sorted by number; other names are left out."""
    return sorted((int(match.group(1)), name) for name in names if (match := _BASE_NAME.match(name)))


def stale_names(names: Iterable[str], start: SequenceInfo) -> list[str]:
    """The files of a stream channel that a replay from `start` replaces."""
    return [name for position, name in stream_names(names) if position >= start]


def start_key(token: Token) -> PrimaryKey | None:
    """The key at which a base channel resumes; None where its token holds none.

    Existing rows come in key order, and the token holds the key of the next one (docs/protocol.md 2.4).

    Raises:
        CodecError: the token is malformed.
    """
    if not token or token == FINISHED:
        return None
    encoded = parse_token(token).primary_key
    return decode_primary_key(encoded) if encoded is not None else None
