"""Interface for user code that processes records: a processor per channel, made by a factory.

The interface follows the vendor's workers (`SimpleProcessFactory`, `IChannelProcessor`) without their defects. Every
channel has its own processor, its calls never overlap, and `shutdown` comes once and after the last `process`. The
channel is finished when its records are confirmed, not when `process` was called.

Source: docs/protocol.md 5.8, 6.1 G8 and G11, 6.2 J6.
"""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from ots_tunnel.errors import ConfigError
from ots_tunnel.model import ChannelId, ChannelType, Token
from ots_tunnel.protocol.record import Record

#: Confirms that every record of a `process` call is processed. Any thread may call it; a second call does nothing.
Confirm = Callable[[], None]


@dataclass(frozen=True, slots=True)
class ChannelContext:
    """The channel a processor works for.

    Args:
        start: the checkpoint at which it was opened; every record after it is processed.
        custom_value: the value given to the factory.
    """

    channel_id: ChannelId
    channel_type: ChannelType
    start: Token
    custom_value: Any = None

    def __repr__(self) -> str:
        return f"ChannelContext({self.channel_id}, {self.channel_type})"


class ChannelProcessor(Protocol):
    """Processes the records of one channel; functions or coroutines, never two of them at the same time.

    Functions run in a thread of their channel, so they may block. Coroutines run in the worker's event loop, so they
    must not block.
    """

    def initialize(self, context: ChannelContext) -> Awaitable[None] | None:
        """Called once, before the first records."""
        ...

    def process(
        self, context: ChannelContext, records: Sequence[Record], confirm: Confirm | None
    ) -> Awaitable[None] | None:
        """Process records in their order.

        Args:
            confirm: None with automatic checkpoints: the records count as processed when this returns. With manual
                ones, call it when they are processed, also after this has returned and more records have come.

        Returns:
            Nothing, or what is awaited until the records are processed. What tells that they are not, such as a
            generator, the future of a pool or an exception, counts as raised.

        Raises:
            Exception: the channel is opened again at its last checkpoint; records after it are processed again.
        """
        ...

    def shutdown(self, context: ChannelContext) -> Awaitable[None] | None:
        """Called once, after the last `process` has returned."""
        ...


class ProcessorFactory(Protocol):
    """Makes the processor of each channel that is opened.

    `manual_checkpoints` decides whether `process` gets a `confirm`.
    """

    custom_value: Any
    manual_checkpoints: bool

    def create(self, context: ChannelContext) -> ChannelProcessor | Awaitable[ChannelProcessor]:
        """A processor for one channel.

        A function runs in the thread of the channel's callbacks, a coroutine function in the event loop.
        """
        ...


class SimpleProcessorFactory:
    """Processors made of functions or coroutine functions.

    Args:
        process: called as process(context, records), or process(context, records, confirm) with manual checkpoints.
        custom_value: available as `context.custom_value`.
        shutdown: called as shutdown(context) when a channel closes.
        initialize: called as initialize(context) when a channel opens.
        manual_checkpoints: records count as processed when `confirm` is called, not when `process` returns.

    Raises:
        ConfigError: a callback has a `yield`: calling it runs none of its code.
    """

    def __init__(
        self,
        process: Callable[..., Awaitable[None] | None],
        *,
        custom_value: Any = None,
        shutdown: Callable[[ChannelContext], Awaitable[None] | None] | None = None,
        initialize: Callable[[ChannelContext], Awaitable[None] | None] | None = None,
        manual_checkpoints: bool = False,
    ) -> None:
        for name, callback in (("process", process), ("initialize", initialize), ("shutdown", shutdown)):
            _runs_when_called(name, callback)
        self.custom_value = custom_value
        self.manual_checkpoints = manual_checkpoints
        self._process = process
        self._shutdown = shutdown
        self._initialize = initialize

    def __repr__(self) -> str:
        return f"SimpleProcessorFactory({getattr(self._process, '__qualname__', self._process)})"

    async def create(self, context: ChannelContext) -> ChannelProcessor:
        """See `ProcessorFactory.create`."""
        return _Functions(self._process, self._shutdown, self._initialize)


@dataclass(frozen=True, slots=True)
class _Functions:
    on_process: Callable[..., Awaitable[None] | None]
    on_shutdown: Callable[[ChannelContext], Awaitable[None] | None] | None
    on_initialize: Callable[[ChannelContext], Awaitable[None] | None] | None

    def initialize(self, context: ChannelContext) -> Awaitable[None] | None:
        return self.on_initialize(context) if self.on_initialize is not None else None

    def process(
        self, context: ChannelContext, records: Sequence[Record], confirm: Confirm | None
    ) -> Awaitable[None] | None:
        return self.on_process(context, records) if confirm is None else self.on_process(context, records, confirm)

    def shutdown(self, context: ChannelContext) -> Awaitable[None] | None:
        return self.on_shutdown(context) if self.on_shutdown is not None else None


def _runs_when_called(name: str, callback: Callable[..., Any] | None) -> None:
    if inspect.isgeneratorfunction(callback) or inspect.isasyncgenfunction(callback):
        found = getattr(callback, "__qualname__", callback)
        raise ConfigError(
            f"{name}: found a generator function, {found!r}, of which nothing runs when it is called, allowed is a "
            "function or a coroutine function without yield"
        )
