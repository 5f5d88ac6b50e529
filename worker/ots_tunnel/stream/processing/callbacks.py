"""Calls of a processor that end with the permission to write.

Theory of operation. A processor may write anywhere, so it may run only while the shard's fence is open. A call that is
under way when the fence closes is cancelled, D before another worker may take the lease. A coroutine ends there, and
what it has sent is in doubt for D. A function runs on, since a thread cannot be cancelled; if it has not returned after
D, the process ends, as with the processors of a tunnel (docs/architecture.md rule 4).

What a call that has raised had sent is in doubt for D as well: a request that timed out may still be carried out.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

from ots_tunnel.errors import ProcessorFailed, TunnelError
from ots_tunnel.fence import ChannelFence, Fence
from ots_tunnel.sinks.python.callbacks import CallbackThread
from ots_tunnel.sinks.python.unfinished import unfinished

#: A method of a processor.
Method = Callable[[Any], Awaitable[None] | None]


class ProcessorCalls:
    """The calls of one processor, one after the other.

    Args:
        lease: the fence of the lease. shard: that of the shard, which learns what is in doubt.
        on_hang: called with the shard when a call does not return within D although it has to.
    """

    def __init__(self, shard_id: str, lease: Fence, shard: ChannelFence, on_hang: Callable[[str], None]) -> None:
        self._shard_id = shard_id
        self._lease = lease
        self._shard = shard
        self._on_hang = on_hang
        self._thread = CallbackThread(f"processor {shard_id}")

    def __repr__(self) -> str:
        return f"ProcessorCalls({self._shard_id})"

    async def call(self, name: str, method: Method, argument: object) -> None:
        """Call one method.

        Raises:
            OwnershipLost: the fence is closed, or closes meanwhile.
            ProcessorFailed: the method raised, or returned what is not done.
            TunnelError: the method raised it, as a checkpoint does.
        """
        await self._call(name, method, argument, judge=_judge)

    async def make(self, name: str, function: Callable[[], Any]) -> Any:
        """Call one function whose result is wanted, and return it; errors as of `call`."""
        return await self._call(name, function, judge=_result)

    async def _call(
        self,
        name: str,
        method: Callable[..., Any],
        *arguments: object,
        judge: Callable[[str, asyncio.Future[Any]], Any],
    ) -> Any:
        self._shard.check()
        self._shard.begin_write()
        calling = asyncio.ensure_future(self._thread.call(method, *arguments))
        try:
            while not calling.done():
                await asyncio.wait((calling,), timeout=max(self._lease.left(), 0))
                if not calling.done():
                    self._shard.check()
            result = judge(name, calling)
            self._shard.confirm_writes()
            return result
        finally:
            calling.cancel()
            self._shard.abandon_write()

    async def last(self, name: str, method: Method, argument: object) -> None:
        """Call one method that may come when the fence is closed, for D at most, also when this call is cancelled."""
        calling = asyncio.ensure_future(self._thread.call(method, argument))
        try:
            await asyncio.wait((calling,), timeout=self._lease.deadline)
        finally:
            has_ended = calling.done()
            if not has_ended:
                calling.cancel()
                await self.idle()
        if has_ended:
            _judge(name, calling)

    async def idle(self) -> None:
        """Wait until no call is under way, also when this call is cancelled; a coroutine is cancelled."""
        waiting = asyncio.ensure_future(self._thread.idle(self._lease.deadline))
        try:
            await asyncio.shield(waiting)
        finally:
            if not await waiting:
                self._on_hang(self._shard_id)

    def close(self) -> None:
        """End the thread."""
        self._thread.close()


def _result(name: str, calling: asyncio.Future[Any]) -> Any:
    """What a call has returned; its error as one of a processor."""
    try:
        return calling.result()
    except TunnelError:
        raise
    except Exception as error:
        raise ProcessorFailed(f"{name} raised {type(error).__name__}: {error}") from error


def _judge(name: str, calling: asyncio.Future[Any]) -> None:
    """As `_result`; work that is left undone is an error as well."""
    if found := unfinished(_result(name, calling)):
        raise ProcessorFailed(f"{name} returned a {found}, whose work is not done: allowed is None or an awaitable")
