"""The table of leases: list, create, change, delete.

Theory of operation
-------------------
Every write has a condition (`lease.change`), so an answer of the service tells whether this worker or another one was
faster. Without an answer that is open, and no guess is made:

    change   the row is read again, and `lease.settling` judges: made, lost, or open, when the write is sent again
    create   sent again: a lease that is there is what was wanted
    delete   sent again: a row that is gone is what was wanted

A write of an earlier call that stayed open can be carried out at any later time, and then moves the counter under a
later change. So a caller keeps the changes that were sent since its last answer (`doubted`), and hands them to its next
call; if the row is as one of them leaves it, the new change is made on top of it. It never passes for the new change,
even if both write the same: it is not known when it was carried out, and a renewal counts from a time before it was
sent. A change that is made on top of another one is sent in another form, and it is this form that stays in doubt.

Calls end within about `SCHEDULE.total` and a try for each of the calls they make. An error that leaves tells by
`retryable` whether a later call can succeed.

Example: a renewal from 7 to 8 times out. The row is read: counter 8, our id, so the renewal was made. Or it has 7: the
renewal is sent again, fails its condition, since the first try was carried out meanwhile, and the row tells so.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable, MutableSequence, Sequence
from dataclasses import dataclass, replace
from typing import Any

from google.protobuf.message import Message

from ots_tunnel.client.caller import ServiceCaller
from ots_tunnel.client.table_calls import get_range_page, get_range_request
from ots_tunnel.errors import CodecError, LeaseTableNotFound, ObjectNotExist, ServiceError, TunnelError
from ots_tunnel.model import PrimaryKey
from ots_tunnel.protocol import table_pb2 as pb
from ots_tunnel.protocol.backoff import Backoff
from ots_tunnel.protocol.http.operations import TABLE_OPERATIONS
from ots_tunnel.protocol.plainbuffer.codec import DecodedRow, decode_row, decode_rows
from ots_tunnel.protocol.service_codes import is_refusal
from ots_tunnel.stream.calls.answers import service_answer
from ots_tunnel.stream.lease import requests
from ots_tunnel.stream.lease.change import Change, Kind
from ots_tunnel.stream.lease.lease import HalfLease, Lease
from ots_tunnel.stream.lease.row import decode_lease, lease_range
from ots_tunnel.stream.lease.settling import Settled, is_made, settle
from ots_tunnel.stream.shards import ShardId

#: Between the tries of one call. A lease lasts 20 s and is renewed every 6 s by default: a longer call is
#: too late for its renewal.
SCHEDULE = Backoff(initial=0.1, factor=2, cap=1, jitter=0.33, total=5)
#: Seconds of one try.
TIMEOUT = 3.0
_CONDITION_FAILED = "OTSConditionCheckFail"


@dataclass(frozen=True, slots=True)
class Listing:
    """The leases of one stream, the rows that are not whole, and what is wrong with rows that are no leases."""

    leases: tuple[Lease, ...]
    half: tuple[HalfLease, ...] = ()
    unreadable: tuple[CodecError, ...] = ()

    @property
    def is_empty(self) -> bool:
        """Whether the stream has no row yet."""
        return not (self.leases or self.half or self.unreadable)


class LeaseTable:
    """The leases of one table; coroutines.

    Args:
        caller: calls the instance. Its transport should have no limit: a renewal must not wait for other calls.
        name: of the table.
        schedule: pauses between tries, and the time after which no further one begins.
        timeout: seconds of one try.
        sleep, entropy: replaced in tests.
    """

    def __init__(
        self,
        caller: ServiceCaller,
        name: str,
        *,
        schedule: Backoff = SCHEDULE,
        timeout: float = TIMEOUT,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
        entropy: Callable[[], float] = random.random,
    ) -> None:
        self.name = name
        self._caller = caller
        self._schedule = schedule
        self._timeout = timeout
        self._sleep = sleep
        self._entropy = entropy

    def __repr__(self) -> str:
        return f"LeaseTable({self.name})"

    async def list(self, stream_id: str) -> Listing:
        """Every lease of a stream; a row that is none does not hide the others.

        Raises:
            ObjectNotExist: the table does not exist. CodecError: the answer cannot be read.
        """
        found = [_lease_or_error(row) for row in await self.rows(*lease_range(stream_id))]
        return Listing(
            tuple(each for each in found if isinstance(each, Lease)),
            tuple(each for each in found if isinstance(each, HalfLease)),
            tuple(each for each in found if isinstance(each, CodecError)),
        )

    async def rows(self, start: PrimaryKey, end: PrimaryKey) -> Sequence[DecodedRow]:
        """Every row from a key on, before another one; errors as of `list`."""
        found: MutableSequence[DecodedRow] = []
        while True:
            answer = await self.call("GetRange", get_range_request(self.name, start, end, max_versions=1))
            if answer.next_token:
                raise CodecError(f"row of a lease in table {self.name!r}: found one that is larger than an answer")
            page = get_range_page(answer)
            found.extend(decode_rows(page.rows))
            if page.next_start is None:
                return found
            start = page.next_start

    async def get(self, stream_id: str, shard_id: ShardId) -> Lease | HalfLease | None:
        """One lease; None if there is no row.

        Raises:
            ObjectNotExist: the table does not exist. CodecError: the row is not a lease.
        """
        answer = await self.call("GetRow", requests.get_request(self.name, stream_id, shard_id))
        return decode_lease(decode_row(answer.row)) if answer.row else None

    async def create(self, lease: Lease, over: HalfLease | None = None) -> None:
        """Write a new lease; one that is there stays as it is.

        Args:
            over: the half row that it replaces.
        """
        await self.put(requests.create_request(self.name, lease, over))

    async def put(self, message: pb.PutRowRequest) -> None:
        """Write a row under a condition, until it is answered; where the condition fails, the row stays as it is."""
        await self._answered("PutRow", message)

    async def remove(self, message: pb.DeleteRowRequest) -> None:
        """Delete a row under a condition, until it is answered; where the condition fails, the row stays."""
        await self._answered("DeleteRow", message)

    async def delete(self, lease: Lease) -> bool:
        """Delete a lease if counter and owner are as seen; whether there is none any more."""
        if await self._answered("DeleteRow", requests.delete_request(self.name, lease)):
            return True
        return await self.get(lease.stream_id, lease.shard_id) is None

    async def apply(
        self,
        change: Change,
        *,
        doubted: MutableSequence[Change] | None = None,
        wanted: Callable[[], bool] = lambda: True,
    ) -> Lease | None:
        """Make a change; the lease afterwards, or None where another worker was faster, or the change is not wanted.

        The time at which the lease is renewed is that before the call: an answer may be late.

        Args:
            doubted: the changes of this lease that were sent since the last call with an answer. What this call sends
                is added before it is sent, since the call may fail or be cancelled.
            wanted: asked before each try: a call that takes long must not move a counter that is no longer its own.

        Raises:
            TunnelError: it is not known whether the change was made, unless `is_refusal` holds for the error.
        """
        began, attempt = asyncio.get_running_loop().time(), 0
        sent: MutableSequence[Change] = [] if doubted is None else doubted
        earlier, unanswered = list(sent), False
        while wanted():
            if change not in sent:
                sent.append(change)
            failure = await self._try("UpdateRow", requests.change_request(self.name, change))
            if failure is None:
                return change.after
            refused = _failed_condition(failure)
            unanswered = unanswered or not refused
            if not unanswered and not earlier:
                return None
            row = await self.get(change.before.stream_id, change.before.shard_id)
            if not isinstance(row, Lease):
                return None
            late = _late_write(row, change, earlier)
            if late is not None:
                earlier.remove(late)
                change = replace(change, before=row)
                continue
            settled = settle(change, row)
            if settled is Settled.MADE:
                return row
            if settled is Settled.LOST or refused:
                return None
            await self._pause(attempt, began, failure)
            attempt += 1
        return None

    async def call(self, name: str, message: Message) -> Any:
        """One call of the table service, repeated where that does no harm; see `client.retry`.

        Raises:
            LeaseTableNotFound: the table does not exist. TunnelError: the call failed.
        """
        try:
            answer, _ = await self._caller.call(
                TABLE_OPERATIONS[name], message, retry=self._schedule, timeout=self._timeout, parse=service_answer
            )
        except ObjectNotExist as error:
            raise LeaseTableNotFound(
                error.code, f"table of leases {self.name!r}: {error.message}", error.request_id, error.http_status
            ) from error
        return answer

    async def _try(self, name: str, message: Message) -> TunnelError | None:
        """Send a conditional write; the error where the condition failed or the outcome is open."""
        try:
            await self.call(name, message)
        except TunnelError as error:
            if is_refusal(error) and not _failed_condition(error):
                raise
            return error
        return None

    async def _answered(self, name: str, message: Message) -> bool:
        """Send a conditional write until it is answered; whether its condition held."""
        began, attempt = asyncio.get_running_loop().time(), 0
        while (failure := await self._try(name, message)) is not None:
            if _failed_condition(failure):
                return False
            await self._pause(attempt, began, failure)
            attempt += 1
        return True

    async def _pause(self, attempt: int, began: float, failure: TunnelError) -> None:
        delay = self._schedule.delay(attempt, self._entropy())
        if not self._schedule.may_retry(asyncio.get_running_loop().time() - began, delay):
            raise failure
        await self._sleep(delay)


def _lease_or_error(row: DecodedRow) -> Lease | HalfLease | CodecError:
    try:
        return decode_lease(row)
    except CodecError as error:
        return error


def _late_write(row: Lease, change: Change, earlier: Sequence[Change]) -> Change | None:
    """The write of an earlier call that moved the counter, and left the lease to its owner; None if none did.

    An earlier take made this worker the owner, which the new one wants to be.
    """
    owners = {change.before.owner, change.worker} if change.kind is Kind.TAKE else {change.before.owner}
    if row.owner not in owners:
        return None
    return next((each for each in earlier if is_made(each, row)), None)


def _failed_condition(error: TunnelError) -> bool:
    return isinstance(error, ServiceError) and error.code == _CONDITION_FAILED
