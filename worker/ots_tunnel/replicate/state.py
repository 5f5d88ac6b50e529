"""The file in which a job keeps the table that its tunnel delivers to, so that a later run notices another one.

The tunnel itself cannot tell: the service knows how far its channels were consumed, not by whom or where to. The file
belongs to one tunnel by its id, so that of a deleted tunnel says nothing about a new one of the same name.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

from pydantic import ValidationError

from ots_tunnel.config import ConfigModel
from ots_tunnel.config.messages.describing import describe
from ots_tunnel.endpoint import is_vendor_host, region_of, table_identity
from ots_tunnel.errors import ConfigError
from ots_tunnel.job_file import JobFile
from ots_tunnel.model import TunnelId
from ots_tunnel.verify.state_document import TablePlace
from ots_tunnel.verify.state_file import StateFile, read_state_file

#: Value of the field `format`; the number changes when older versions cannot read the document.
FORMAT = "ots-tunnel replicate 1"


class StateDocument(ConfigModel):
    """The whole file: a tunnel, and the table that its rows are written to."""

    format: str
    tunnel_id: str
    destination: TablePlace


class JobState:
    """The state of one job.

    Args:
        path: the file; None keeps no state.
    """

    def __init__(self, path: Path | None) -> None:
        self._path = path

    def __repr__(self) -> str:
        return f"JobState({self._path})"

    def destination_of(self, tunnel: TunnelId) -> TablePlace | None:
        """The table that this tunnel delivers to; None if that is not known.

        Raises:
            ConfigError: the file cannot be read, or is not the state of a job.
        """
        text = None if self._path is None else read_state_file(self._path)
        if text is None:
            return None
        document = self._parsed(text)
        return document.destination if document.tunnel_id == tunnel else None

    def keep(self, tunnel: TunnelId, destination: TablePlace, *, replace: bool = False) -> TablePlace | None:
        """Note that this tunnel delivers to this table.

        Args:
            replace: also where another table is noted; without it the first of several runs decides.

        Returns:
            The other table that is noted, and stays; None where `destination` is noted now.

        Raises:
            ConfigError: the file cannot be read or written, or is not the state of a job.
        """
        if self._path is None:
            return None
        document = StateDocument(format=FORMAT, tunnel_id=tunnel, destination=destination)
        text = json.dumps(document.model_dump(by_alias=True), indent=2) + "\n"
        with _locked(self._path.parent):
            known = None if replace else self.destination_of(tunnel)
            if known is not None and is_same(known, destination) is False:
                return known
            StateFile(self._path, lambda: text).write()
        return None

    def _parsed(self, text: str) -> StateDocument:
        way_out = "name another file with --state, or delete it"
        try:
            document = StateDocument.model_validate_json(text)
        except ValidationError as error:
            found = describe(error, StateDocument, "")
            raise ConfigError(f"{self._path}: not the state of a replication: {found}; {way_out}") from error
        if document.format != FORMAT:
            found = f"format: found {document.format!r}, allowed is {FORMAT!r}"
            raise ConfigError(f"{self._path}: not the state of a replication: {found}; {way_out}")
        return document


@contextmanager
def _locked(folder: Path) -> Iterator[None]:
    """Keep other runs from a folder's states; without effect where the folder cannot be locked.

    The folder is locked, because the file is replaced with each write.
    """
    with ExitStack() as held:
        # some network file systems lock no folders: a state that is kept there helps every run but one at this moment
        with suppress(OSError):
            descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
            held.callback(os.close, descriptor)
            fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield


def default_name(job: JobFile) -> str:
    """Default name of the state file: the source's table, and a digest of its place and the tunnel's name."""
    reader = job.reader
    place = (*table_identity(reader.endpoint, reader.instance_name, reader.table_name), reader.tunnel_name)
    return f"replicate-{reader.table_name}-{hashlib.sha256(json.dumps(place).encode()).hexdigest()[:8]}.json"


def writer_place(job: JobFile) -> TablePlace:
    """The destination that a job names."""
    writer = job.writer
    return TablePlace(endpoint=writer.endpoint.rstrip("/"), instance=writer.instance_name, table=writer.table_name)


def is_same(one: TablePlace, other: TablePlace) -> bool | None:
    """Whether two places are one table; None where only their hosts differ, which may lead to the same instance."""
    if (one.instance, one.table) != (other.instance, other.table):
        return False
    if region_of(one.endpoint) == region_of(other.endpoint):
        return True
    # A proxy or another name may lead to any region; two regions of the vendor are never the same.
    return False if is_vendor_host(one.endpoint) and is_vendor_host(other.endpoint) else None
