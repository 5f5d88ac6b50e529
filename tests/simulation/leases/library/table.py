"""The library's calls of the table of leases."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Any

from ots_tunnel.client.caller import ServiceCaller
from ots_tunnel.client.table_calls import get_range_page, get_range_request
from ots_tunnel.errors import ServiceError, TunnelError
from ots_tunnel.protocol import table_pb2 as pb
from ots_tunnel.protocol.http.operations import TABLE_OPERATIONS
from ots_tunnel.protocol.plainbuffer.codec import decode_row, decode_rows
from ots_tunnel.stream.calls.answers import service_answer
from ots_tunnel.stream.lease import requests
from ots_tunnel.stream.lease.change import Change, Kind
from ots_tunnel.stream.lease.lease import Lease
from ots_tunnel.stream.lease.row import COUNTER, decode_lease, encode_lease, lease_range
from ots_tunnel.stream.shards import ShardId

#: Tries of a call, and seconds of one.
TRIES, TIMEOUT = 11, 10.0
_CONDITION_FAILED = "OTSConditionCheckFail"


class DependencyFailed(Exception):
    """The library's DependencyException: the service does not answer, or refuses."""


def change_request(table: str, change: Change) -> pb.UpdateRowRequest:
    """Make a change: of the state before, the library asks for the counter, and only a steal asks for the owner."""
    message = requests.change_request(table, replace(change, takes_released=False))
    if change.kind is not Kind.STEAL:
        counter = requests.equal(COUNTER, change.before.counter)
        message.condition.column_condition = counter.SerializeToString()
    return message


class LibraryTable:
    """The leases of one stream."""

    def __init__(self, caller: ServiceCaller, name: str, stream_id: str) -> None:
        self._caller = caller
        self.name = name
        self.stream_id = stream_id

    async def list(self) -> list[Lease]:
        """Every whole lease."""
        start, end = lease_range(self.stream_id)
        found: list[Any] = []
        while True:
            answer = await self.call("GetRange", get_range_request(self.name, start, end, max_versions=1))
            page = get_range_page(answer)
            found += map(decode_lease, decode_rows(page.rows))
            if page.next_start is None:
                return [lease for lease in found if isinstance(lease, Lease)]
            start = page.next_start

    async def get(self, shard: ShardId) -> Lease | None:
        """One lease."""
        answer = await self.call("GetRow", requests.get_request(self.name, self.stream_id, shard))
        found = decode_lease(decode_row(answer.row)) if answer.row else None
        return found if isinstance(found, Lease) else None

    async def apply(self, change: Change) -> Lease | None:
        """Make a change; None where the condition failed, also by the change's own first try."""
        try:
            await self.call("UpdateRow", change_request(self.name, change))
        except ServiceError:
            return None
        return change.after

    async def create(self, lease: Lease) -> None:
        """Write a lease, in any case."""
        message = requests.create_request(self.name, lease)
        message.condition.row_existence = pb.IGNORE
        message.row = encode_lease(lease)
        await self.call("PutRow", message)

    async def delete(self, lease: Lease) -> None:
        """Delete a lease, in any case."""
        message = requests.delete_request(self.name, lease)
        message.condition.ClearField("column_condition")
        await self.call("DeleteRow", message)

    async def call(self, name: str, message: Any) -> Any:
        """One call of the instance, repeated.

        Raises:
            ServiceError: the condition of a write failed. DependencyFailed: anything else, in every try.
        """

        async def send() -> Any:
            operation = TABLE_OPERATIONS[name]
            return (await self._caller.call(operation, message, timeout=TIMEOUT, parse=service_answer))[0]

        return await retried(send)


async def retried(send: Callable[[], Awaitable[Any]]) -> Any:
    """Make a call as the library's strategy repeats it.

    Raises:
        ServiceError: the condition of a write failed. DependencyFailed: anything else, in every try.
    """
    for number in range(TRIES):
        try:
            return await send()
        except TunnelError as error:
            if isinstance(error, ServiceError) and error.code == _CONDITION_FAILED:
                raise
            last = error
        await asyncio.sleep(min(0.1 * (number + 1), 1.0))
    raise DependencyFailed(str(last)) from last
