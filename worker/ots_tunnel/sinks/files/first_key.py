"""The first key of a published file, in whichever format it was written.

The document's format may have changed since, so the end of the file's name tells which it is.
"""

from __future__ import annotations

from typing import IO

from ots_tunnel.errors import CodecError
from ots_tunnel.model import PrimaryKey
from ots_tunnel.sinks.files.json_lines import COMPRESSIONS, first_key_of_lines


def first_key(name: str, file: IO[bytes]) -> PrimaryKey:
    """Key of the first record in a file of this name.

    Raises:
        CodecError: no format has such names, or the file was not written in the format of its name.
        OSError: the disk failed.
    """
    suffix = name.split(".", 2)[2]  # behind the position and the number of records
    if suffix in COMPRESSIONS:
        return first_key_of_lines(file, COMPRESSIONS[suffix])
    if suffix != "parquet":
        raise CodecError(f"allowed are the ends {', '.join((*COMPRESSIONS, 'parquet'))}")
    from ots_tunnel.sinks.files.parquet import first_key_of_rows  # takes time and memory

    return first_key_of_rows(file)
