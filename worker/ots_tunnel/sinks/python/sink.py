"""The user's own code as the sink: a processor per channel (docs/sinks.md, `python`)."""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any

from ots_tunnel.config import PythonSinkConfig, SinkDocument
from ots_tunnel.console.exit_codes import OTHER_ERROR
from ots_tunnel.errors import OwnershipLost, ProcessorFailed
from ots_tunnel.fence import Guard
from ots_tunnel.log_actions import LogAction
from ots_tunnel.model import ChannelId, ChannelType, Token
from ots_tunnel.processor import ChannelContext, ChannelProcessor, Confirm, ProcessorFactory, SimpleProcessorFactory
from ots_tunnel.sinks import Batch, Channels, Confirmation, Contact, Deferred, Immediate, PageCost, Sink
from ots_tunnel.sinks.contact import Writes
from ots_tunnel.sinks.python.callbacks import CallbackThread, keeping
from ots_tunnel.sinks.python.factory import load_factory
from ots_tunnel.sinks.python.unfinished import unfinished

logger = logging.getLogger(__name__)


def end_process(channel_id: str) -> None:
    """End the process at once: a callback that hangs may still write, so its channel must not go to another worker."""
    logger.critical(
        "a processor does not return: the process ends",
        extra={"action": LogAction.PROCESSOR_HANGS, "channel_id": channel_id},
    )
    logging.shutdown()
    os._exit(OTHER_ERROR)


@dataclass(slots=True)
class _Channel:
    context: ChannelContext
    processor: ChannelProcessor
    callbacks: CallbackThread
    unconfirmed: set[Confirmation] = field(default_factory=set)


class _ProcessorChannels(Channels):
    """The processors of the open channels.

    Args:
        factory: makes a processor per channel.
        patience: D, seconds that a callback may take to return once its channel is closed.
        on_hang: called with the channel's id when a callback takes longer.
    """

    #: A processor may decode every cell, which is kept with its record: a cell of 25 bytes takes 120.
    cost = PageCost(10, 150)

    def __init__(
        self, factory: ProcessorFactory, *, patience: float = 10.0, on_hang: Callable[[str], None] = end_process
    ) -> None:
        self._factory = factory
        self._patience = patience
        self._on_hang = on_hang
        self._writes = Writes()
        self._channels: dict[ChannelId, _Channel] = {}
        #: Processors that are being shut down; the next one of the same channel waits for them.
        self._shutting_down: dict[ChannelId, asyncio.Task[None]] = {}

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._factory!r}, {len(self._channels)} channels)"

    async def open(self) -> None:
        """Nothing to open: every processor is initialized in `begin`."""

    async def begin(self, channel_id: ChannelId, channel_type: ChannelType, start: Token) -> None:
        """Make and initialize the channel's processor, once its previous one is shut down.

        Raises:
            ProcessorFailed: the factory or `initialize` raised.
        """
        await self._until_shut_down(channel_id)
        context = ChannelContext(channel_id, channel_type, start, self._factory.custom_value)
        callbacks = CallbackThread(f"processor {channel_id}")
        channel = _Channel(context, await self._made(context, callbacks), callbacks)
        self._channels[channel_id] = channel
        try:
            await self._call(channel, "initialize", channel.processor.initialize, context)
        except BaseException:
            await self.end(channel_id, abandoned=True)
            raise
        self._writes.looked()

    async def _made(self, context: ChannelContext, callbacks: CallbackThread) -> ChannelProcessor:
        """A new processor: what it takes to make one must keep no heartbeat from being sent."""
        if type(self._factory) is SimpleProcessorFactory:
            return await self._factory.create(context)  # it only takes the functions together
        made: list[ChannelProcessor] = []
        try:
            await callbacks.call(keeping(self._factory.create, made), context)
        except BaseException as error:
            # a separate task: one that is made too late is shut down also when the caller is cancelled again
            ending = asyncio.create_task(self._end_of(context, made, callbacks), name=f"unmade {context.channel_id}")
            self._shutting_down[context.channel_id] = ending
            await self._until_shut_down(context.channel_id)
            if isinstance(error, Exception):
                raise _failed("create", error) from error
            raise
        return made[0]

    async def _end_of(self, context: ChannelContext, made: list[ChannelProcessor], callbacks: CallbackThread) -> None:
        """Wait for what a factory makes in vain, and shut it down."""
        if not await callbacks.idle(self._patience):
            self._on_hang(context.channel_id)
            callbacks.close()
        elif made:
            await self._shut_down(_Channel(context, made[0], callbacks))
        else:
            callbacks.close()

    def contact(self) -> Contact:
        """See `Channels.contact`; a processor that is initialized counts as found ready."""
        return self._writes.contact

    def checkpointed(self, channel_id: ChannelId, page: int) -> None:
        """Nothing waits for it."""

    async def end(self, channel_id: ChannelId, *, abandoned: bool) -> None:
        """Wait for the user's confirmations unless abandoned, then shut the processor down.

        A callback under way has to return first; one that does not return within `patience` hangs.
        """
        channel = self._channels.get(channel_id)
        if channel is None:
            return
        try:
            if not abandoned and channel.unconfirmed:
                await asyncio.wait(channel.unconfirmed)
        finally:
            self._channels.pop(channel_id, None)
            # A separate task: the processor is shut down also when the caller is cancelled.
            self._shutting_down[channel_id] = asyncio.create_task(
                self._shut_down(channel), name=f"shut down {channel_id}"
            )
            await self._until_shut_down(channel_id)

    async def close(self) -> None:
        """Shut down the remaining processors."""
        for channel_id in list(self._channels):
            await self.end(channel_id, abandoned=True)
        for channel_id in list(self._shutting_down):
            await self._until_shut_down(channel_id)

    async def _until_shut_down(self, channel_id: ChannelId) -> None:
        task = self._shutting_down.get(channel_id)
        if task is None:
            return
        await asyncio.shield(task)
        if self._shutting_down.get(channel_id) is task:
            del self._shutting_down[channel_id]

    async def _shut_down(self, channel: _Channel) -> None:
        context = channel.context
        if not await channel.callbacks.idle(self._patience):
            self._on_hang(context.channel_id)
            return
        try:
            async with asyncio.timeout(self._patience) as limit:
                await channel.callbacks.call(channel.processor.shutdown, context)
        except Exception:  # a failed clean-up does not change what is confirmed
            if limit.expired():
                self._on_hang(context.channel_id)
                return
            logger.exception(
                "a processor's shutdown raised",
                extra={"action": LogAction.PROCESSOR_FAILED, "channel_id": context.channel_id},
            )
        finally:
            channel.callbacks.close()

    async def _process(self, batch: Batch, guard: Guard, confirm: Confirm | None) -> None:
        channel = self._channels[batch.channel_id]
        guard.check()
        result = await self._call(
            channel, "process", channel.processor.process, channel.context, batch.records, confirm
        )
        if found := unfinished(result, is_confirmed_later=confirm is not None):
            raise ProcessorFailed(
                f"process returned a {found}, whose work is not done, so its records do not count as processed: "
                "allowed is None or an awaitable"
            )

    async def _call(
        self, channel: _Channel, name: str, callback: Callable[..., Awaitable[None] | None], *arguments: object
    ) -> Any:
        try:
            return await channel.callbacks.call(callback, *arguments)
        except (OwnershipLost, ProcessorFailed):
            raise
        except Exception as error:
            raise _failed(name, error) from error


class ProcessorSink(_ProcessorChannels, Immediate):
    """Hands records to processors that have processed them when `process` returns."""

    async def write(self, batch: Batch, guard: Guard) -> None:
        """See `Immediate.write`.

        Raises:
            ProcessorFailed: the processor raised. OwnershipLost: another client may own the channel.
        """
        await self._process(batch, guard, None)
        self._writes.confirmed()


class ManualProcessorSink(_ProcessorChannels, Deferred):
    """Hands records to processors that confirm them when they want to."""

    async def take(self, batch: Batch, guard: Guard) -> Confirmation:
        """See `Deferred.take`; the user's code ends the confirmation.

        Raises:
            ProcessorFailed: the processor raised. OwnershipLost: another client may own the channel.
        """
        confirmation: Confirmation = asyncio.get_running_loop().create_future()
        confirmation.add_done_callback(self._confirmation_ended)
        channel = self._channels[batch.channel_id]
        channel.unconfirmed.add(confirmation)
        confirmation.add_done_callback(channel.unconfirmed.discard)
        await self._process(batch, guard, _confirm_of(confirmation))
        return confirmation

    def _confirmation_ended(self, confirmation: Confirmation) -> None:
        if not confirmation.cancelled():
            self._writes.confirmed()


def processor_sink(factory: ProcessorFactory, *, patience: float = 10.0) -> ProcessorSink | ManualProcessorSink:
    """The sink of a factory: of the kind that its `manual_checkpoints` asks for."""
    kind = ManualProcessorSink if factory.manual_checkpoints else ProcessorSink
    return kind(factory, patience=patience)


class Processors:
    """The sinks of documents that name a factory."""

    @staticmethod
    def from_config(config: SinkDocument, section: PythonSinkConfig) -> Sink:
        """The sink of a worker's document.

        Raises:
            ConfigError: the factory cannot be imported or made.
        """
        return processor_sink(load_factory(section.factory), patience=config.client.write_deadline)


def _failed(name: str, error: Exception) -> ProcessorFailed:
    return ProcessorFailed(f"{name} raised {type(error).__name__}: {error}")


def _confirm_of(confirmation: Confirmation) -> Confirm:
    loop = confirmation.get_loop()

    def confirm() -> None:
        try:
            loop.call_soon_threadsafe(_settle, confirmation)
        except RuntimeError:
            # The worker has ended: no checkpoint can follow, and the records come again.
            if not loop.is_closed():
                raise

    return confirm


def _settle(confirmation: Confirmation) -> None:
    if not confirmation.done():
        confirmation.set_result(None)
