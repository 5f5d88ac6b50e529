"""Opens the sink that a document names, behind the middleware that the document asks for.

A new sink is one entry in `IMPLEMENTATIONS`, beside its section in `ots_tunnel.config.sinks`. Each implementation is
imported only when a document names it: a worker never loads the libraries of sinks that it does not use.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Protocol

from ots_tunnel.config import SinkDocument
from ots_tunnel.errors import ConfigError
from ots_tunnel.sinks import Sink
from ots_tunnel.sinks.middleware.base import behind, deferred
from ots_tunnel.sinks.middleware.transform import Transform
from ots_tunnel.sinks.middleware.transformed import Transformed


class SinkClass(Protocol):
    """The class of a sink that a document can name."""

    def from_config(self, config: SinkDocument, section: Any) -> Sink:
        """Make the sink; nothing is opened and no call is made.

        Args:
            config: the worker's document.
            section: the document's member of `sink`, such as `config.sink.kafka`.

        Raises:
            ConfigError: a file that the section names cannot be used.
        """
        ...


@dataclass(frozen=True, slots=True)
class Implementation:
    """Where a sink is implemented.

    Args:
        location: `package.module:class`; the class is a `SinkClass`.
        extra: the extra of this project that installs its libraries; None where it needs none.
        whole_pages: a page reaches the sink in one batch, also behind a rate limit.
    """

    location: str
    extra: str | None = None
    whole_pages: bool = False

    def load(self) -> SinkClass:
        """Import the class."""
        module, _, name = self.location.partition(":")
        found: SinkClass = getattr(importlib.import_module(module), name)
        return found


#: Member of the document's `sink` to its implementation.
IMPLEMENTATIONS: Mapping[str, Implementation] = {
    "tablestore": Implementation("ots_tunnel.sinks.table.sink:TablestoreSink"),
    "files": Implementation("ots_tunnel.sinks.files:FilesSink", extra="files", whole_pages=True),
    "http": Implementation("ots_tunnel.sinks.http_sink:HttpSink"),
    "kafka": Implementation("ots_tunnel.sinks.kafka:KafkaSink", extra="kafka"),
    "python": Implementation("ots_tunnel.sinks.python.sink:Processors"),
    "stdout": Implementation("ots_tunnel.sinks.stdout:StdoutSink"),
    "count": Implementation("ots_tunnel.sinks.count:CountSink"),
}


def open_sink(config: SinkDocument) -> Sink:
    """Make the sink that the document names behind its middleware; `Channels.open` is still to be called.

    Raises:
        ConfigError: the sink's library is not installed, or a file that the document names cannot be used.
    """
    kind = config.sink.kind
    implementation = IMPLEMENTATIONS[kind]
    with _explain_missing(implementation.extra, f"sink.{kind}"):
        sink = implementation.load().from_config(config, config.sink.section)
    # Inside out: refused records are collected over a whole page, so they are handled outside of the rate limit.
    sink = _limit_rate(sink, config, whole_pages=implementation.whole_pages)
    sink = _tolerate_errors(sink, config)
    transform = Transform.of(config.delivery)
    return sink if transform is None else behind(Transformed(transform), sink)


def _limit_rate(sink: Sink, config: SinkDocument, *, whole_pages: bool) -> Sink:
    limit = config.delivery.rate_limit
    if limit is None or not limit.rows_per_second:
        return sink
    from ots_tunnel.sinks.middleware.rate_limit import Paced

    return behind(Paced(limit.rows_per_second, whole_pages=whole_pages), sink)


def _tolerate_errors(sink: Sink, config: SinkDocument) -> Sink:
    if config.delivery.on_permanent_error == "Fail":
        return sink
    from ots_tunnel.sinks.middleware.permanent_errors import LetteringSink, Tolerant

    letters = config.delivery.dead_letter
    if letters is None:
        return behind(Tolerant(), sink)
    with _explain_missing("files", "delivery.deadLetter.files"):
        from ots_tunnel.sinks.middleware.dead_letters import open_dead_letters

        return LetteringSink(deferred(sink), open_dead_letters(config, letters.files))


@contextmanager
def _explain_missing(extra: str | None, field: str) -> Iterator[None]:
    """Say which extra installs a library that is missing, and which field of the document needs it."""
    try:
        yield
    except ModuleNotFoundError as error:
        if extra is None:
            raise
        raise ConfigError(
            f"{field}: {error.name} is not installed, it comes with the extra {extra}: "
            f"pip install 'ots-tunnel[{extra}]'"
        ) from error
