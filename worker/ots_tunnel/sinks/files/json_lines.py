"""Files of JSON lines: one object per record."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import IO, Generic

import pyarrow as pa

from ots_tunnel.errors import CodecError
from ots_tunnel.model import ChannelId, PrimaryKey
from ots_tunnel.sinks.files.format import FileWriter, Item_contra
from ots_tunnel.sinks.json_record import key_of_json

#: Bytes read at a time for the first line of a file.
READ_BYTES = 65_536

#: Ends of the names, and pyarrow's names of the compressions.
COMPRESSIONS = {"jsonl": None, "jsonl.gz": "gzip", "jsonl.zst": "zstd"}


#: Makes the lines of entries, several at a time; their member `key` is that of `json_form`.
Lines = Callable[[Sequence[Item_contra], ChannelId], Iterable[bytes]]


class JsonLines(Generic[Item_contra]):
    """One JSON object per record and line.

    Args:
        compression: of the whole file: none, gzip or zstd.
    """

    def __init__(self, lines: Lines[Item_contra], compression: str = "none") -> None:
        self._lines = lines
        self._compression = None if compression == "none" else compression
        self.suffix = next(suffix for suffix, name in COMPRESSIONS.items() if name == self._compression)

    def create(self, path: Path) -> FileWriter[Item_contra]:
        """See `FileFormat.create`."""
        return _JsonLinesWriter(self._lines, pa.output_stream(str(path), compression=self._compression))


def first_key_of_lines(file: IO[bytes], compression: str | None) -> PrimaryKey:
    """Key of the first record in a file of JSON lines.

    Args:
        compression: pyarrow's name; None for none.

    Raises:
        CodecError: it is none, or has another compression. OSError: the disk failed.
    """
    try:
        with pa.input_stream(file, compression=compression, buffer_size=READ_BYTES) as stream:
            line = _first_line(stream)
        return key_of_json(json.loads(line)["key"])
    except (ValueError, KeyError, TypeError, AttributeError, OSError) as error:
        if isinstance(error, OSError) and error.errno is not None:
            raise  # from the disk; those about the content, which pyarrow raises, have no number
        raise CodecError(f"not a file of JSON lines: {error}") from error


def _first_line(stream: pa.NativeFile) -> bytes:
    """The first line, of at most a few MB, as records are."""
    line = b""
    while b"\n" not in line and (part := stream.read(READ_BYTES)):
        line += part
    return line.partition(b"\n")[0]


class _JsonLinesWriter(Generic[Item_contra]):
    def __init__(self, lines: Lines[Item_contra], stream: pa.NativeFile) -> None:
        self._lines = lines
        self._stream = stream

    def write(self, items: Sequence[Item_contra], channel_id: ChannelId) -> None:
        for portion in self._lines(items, channel_id):
            self._stream.write(portion)

    def close(self) -> None:
        self._stream.close()
