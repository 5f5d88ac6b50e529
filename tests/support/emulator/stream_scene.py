"""A table with a stream on an emulator, and clients of the Stream API in the same process."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from ots_emulator import Emulator, Settings
from ots_tunnel.client.caller import ServiceCaller
from ots_tunnel.protocol.http.operations import TABLE_OPERATIONS
from ots_tunnel.stream.calls.client import StreamClient
from ots_tunnel.transport.inprocess import InProcessTransport
from tests.support.emulator.emulator_scene import (
    CREDENTIALS,
    TABLE,
    EmulatorScene,
    Handle,
    create_table_request,
)

HOST = "http://emulator"


class StreamScene(EmulatorScene):
    """The table's stream is on; `handle` answers calls in place of the emulator where it is given."""

    async def create_stream(self) -> str:
        """Create the table and return its stream's id."""
        request = create_table_request(TABLE)
        request.stream_spec.enable_stream, request.stream_spec.expiration_time = True, 24
        await self.caller.call(TABLE_OPERATIONS["CreateTable"], request)
        return (await self.stream_client().stream_of(TABLE)).stream_id

    def stream_client(self, handle: Handle | None = None) -> StreamClient:
        return StreamClient(HOST, "demo", CREDENTIALS, caller=quick_caller(handle or self.emulator.handle))


def quick_caller(handle: Handle) -> ServiceCaller:
    """A caller that repeats without a pause."""
    return ServiceCaller(InProcessTransport(handle), "demo", CREDENTIALS, sleep=no_pause)


async def no_pause(seconds: float) -> None:
    """Return at once."""


@asynccontextmanager
async def stream_scene() -> AsyncIterator[StreamScene]:
    """An emulator without a table."""
    async with Emulator(settings=Settings(init_delay=0.01)) as emulator:
        yield StreamScene(emulator)
