"""Store, format and limits that the channels of a files sink share."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from ots_tunnel.protocol.backoff import Backoff
from ots_tunnel.sinks.contact import Writes
from ots_tunnel.sinks.files.format import FileFormat, Sized
from ots_tunnel.sinks.files.store import THREADS, FileStore
from ots_tunnel.threads import DaemonThreads

Item = TypeVar("Item", bound=Sized)


@dataclass(frozen=True, slots=True)
class FileSettings(Generic[Item]):
    """Settings of all files of a sink.

    Args:
        max_bytes: bytes of records, as they came, at which a file is published.
        max_seconds: age at which a file is published.
        backoff: pauses between tries to publish.
        entropy: uniform in [0, 1).
        threads: fill and read files.
        writes: what is known of the store.
        is_in_step: whether a file waits for the checkpoint behind the file before it.
    """

    store: FileStore
    form: FileFormat[Item]
    max_bytes: int
    max_seconds: float
    backoff: Backoff
    entropy: Callable[[], float] = random.random
    writes: Writes = field(default_factory=Writes)
    threads: DaemonThreads = field(default_factory=lambda: DaemonThreads("files", THREADS))
    is_in_step: bool = True
