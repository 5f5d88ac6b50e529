"""The sink that a document names, behind what the document puts around it.

Each implementation is imported where it is chosen: a worker never loads the libraries of sinks it does not use.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from ots_tunnel.config import WorkerConfig
from ots_tunnel.errors import ConfigError
from ots_tunnel.sinks import Sink
from ots_tunnel.sinks.middleware.transform import Transform, TransformingSink
from ots_tunnel.transport import Transport


def open_sink(config: WorkerConfig, *, transport: Transport | None = None) -> Sink:
    """The sink that the document names behind its transform, not yet opened.

    Args:
        config: the worker's document.
        transport: used for a destination table; None makes one that keeps connections alive.

    Raises:
        ConfigError: no sink is named, or the one that is cannot be made.
    """
    # Refusals are gathered over whole pages, so they are dealt with around the pace, not inside of it.
    sink = _tolerating(_paced(_named_sink(config, transport), config), config)
    transform = Transform.of(config.delivery)
    if transform is None:
        return sink
    return TransformingSink(sink, transform)


def _paced(sink: Sink, config: WorkerConfig) -> Sink:
    limit = config.delivery.rate_limit
    if limit is None or not limit.rows_per_second:
        return sink
    from ots_tunnel.sinks.middleware.rate_limit import PacedSink

    return PacedSink(sink, limit.rows_per_second, sliced=config.sink.files is None)


def _tolerating(sink: Sink, config: WorkerConfig) -> Sink:
    if config.delivery.on_permanent_error == "Fail":
        return sink
    from ots_tunnel.sinks.middleware.permanent_errors import ToleratingSink

    letters = config.delivery.dead_letter
    if letters is None:
        return ToleratingSink(sink)
    with _extra("files", "delivery.deadLetter.files"):
        from ots_tunnel.sinks.middleware.dead_letters import open_dead_letters

        return ToleratingSink(sink, open_dead_letters(config, letters.files))


@contextmanager
def _extra(name: str, field: str) -> Iterator[None]:
    """The block imports what the package's extra `name` brings, because `field` of the document asks for it."""
    try:
        yield
    except ModuleNotFoundError as error:
        raise ConfigError(
            f"{field}: {error.name} is not installed, it comes with the extra {name}: pip install 'ots-tunnel[{name}]'"
        ) from error


def _named_sink(config: WorkerConfig, transport: Transport | None) -> Sink:
    if config.sink.tablestore is not None:
        from ots_tunnel.sinks.table.sink import TablestoreSink

        return TablestoreSink.from_config(config, config.sink.tablestore, transport=transport)
    if config.sink.files is not None:
        with _extra("files", "sink.files"):
            from ots_tunnel.sinks.files import FilesSink

            return FilesSink.from_config(config, config.sink.files)
    if config.sink.http is not None:
        from ots_tunnel.sinks.http_sink import HttpSink

        return HttpSink(
            config.sink.http,
            f"ots://{config.source.instance}/{config.source.table}",
            delivery=config.delivery,
            lanes=config.client.lanes_per_channel,
            deadline=config.client.write_deadline,
        )
    if config.sink.kafka is not None:
        with _extra("kafka", "sink.kafka"):
            from ots_tunnel.sinks.kafka import KafkaSink

            return KafkaSink.from_config(config, config.sink.kafka)
    if config.sink.python is not None:
        from ots_tunnel.sinks.python.factory import load_factory
        from ots_tunnel.sinks.python.sink import ProcessorSink

        return ProcessorSink(load_factory(config.sink.python.factory), patience=config.client.write_deadline)
    if config.sink.stdout is not None:
        from ots_tunnel.sinks.stdout import StdoutSink

        return StdoutSink()
    if config.sink.count is not None:
        from ots_tunnel.sinks.count import CountSink

        return CountSink()
    raise ConfigError("sink: exactly one member is needed, found none")
