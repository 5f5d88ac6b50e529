from __future__ import annotations

import asyncio
import gc
import weakref

from ots_tunnel.sinks.python.callbacks import CallbackThread


class Argument:
    """An object that a weak reference can watch."""


async def test_arguments_of_a_call_are_not_held_until_the_next_call() -> None:
    thread = CallbackThread("test")
    argument = Argument()
    held = weakref.ref(argument)
    await thread.call(id, argument)
    del argument
    # The thread releases the arguments after it reports the end of the call; a second, empty call comes after that.
    assert await thread.idle(1)
    await _until_let_go(held)
    thread.close()


async def _until_let_go(held: weakref.ref[Argument]) -> None:
    async with asyncio.timeout(5):
        while held() is not None:
            gc.collect()
            await asyncio.sleep(0.01)
