"""Interface of a file format: how records become a file."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Protocol, TypeVar

from ots_tunnel.model import ChannelId


class Sized(Protocol):
    """An entry of a file: a record, or an object that holds one."""

    @property
    def size(self) -> int:
        """Bytes of the record as it came."""
        ...


Item_contra = TypeVar("Item_contra", bound=Sized, contravariant=True)


class FileWriter(Protocol[Item_contra]):
    """One file that is being filled."""

    def write(self, items: Sequence[Item_contra], channel_id: ChannelId) -> None:
        """Add records.

        Raises:
            CodecError: a record is malformed. OSError: the disk is full or failed.
        """
        ...

    def close(self) -> None:
        """Write what is held; the file is complete afterwards.

        Raises:
            OSError: the disk is full or failed.
        """
        ...


class FileFormat(Protocol[Item_contra]):
    """A way to write records into a file."""

    @property
    def suffix(self) -> str:
        """End of the file's name, without the dot; `first_key` reads each that there is."""
        ...

    def create(self, path: Path) -> FileWriter[Item_contra]:
        """Begin a file."""
        ...
