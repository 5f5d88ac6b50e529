"""The checkpoint of one channel: makes confirmed progress durable, and nothing else.

A token is kept until the service has acknowledged it (docs/protocol.md 6.1, G6 and G7). An unanswered call may have
been executed. When the sequence number does not match, the stored token is therefore ours if it is one that was tried
since the last acknowledged one; any other was written by another client.

A sink may hold a part back until the part before it is behind a checkpoint, as files do. While a channel runs, that is
one part an interval. A channel that ends has to wait for each of them: from then on (`hurry`) a token is stored as soon
as it is confirmed.

Source: docs/protocol.md 4.6, 5.10; docs/architecture.md rules 1 and 2.
"""

from __future__ import annotations

import asyncio
import logging
import math
from collections.abc import Awaitable, Callable, Mapping
from types import MappingProxyType
from typing import Protocol

from ots_tunnel.errors import (
    OwnershipLost,
    ReadTimeout,
    SequenceNumberMismatch,
    ServerUnavailable,
    TransportError,
    TunnelError,
)
from ots_tunnel.log_actions import LogAction
from ots_tunnel.model import Checkpoint, Token

logger = logging.getLogger(__name__)

#: Seconds between tries of the last checkpoint of a channel; own choice, several fit into the shortest D.
FLUSH_RETRY = 0.5
#: Most seconds between tries while a channel ends and may wait for a checkpoint; own choice.
HURRIED_RETRY = 2.0
#: Times that one flush takes over the stored number. One follows a lost answer; a second one, a call of ours that was
#: carried out between our read and our write.
ADOPTIONS = 2


class CheckpointStore(Protocol):
    """The service's cursor of one channel."""

    async def get(self) -> Checkpoint:
        """The stored cursor."""
        ...

    async def put(self, checkpoint: Checkpoint) -> None:
        """Store a cursor under the next sequence number; a failure is not repeated."""
        ...


def belongs_to_us(stored: Token, durable: Token, tried: frozenset[Token]) -> bool:
    """Whether a stored token comes from a call of this client."""
    return stored == durable or stored in tried


class Checkpointer:
    """Writes the newest confirmed token, at most once per interval, and at the end.

    Args:
        start: the cursor at which the channel was opened.
        interval: seconds between checkpoints.
        sleep, clock: replaced in tests.
        on_stored: called with the seconds that a stored checkpoint took.
        on_durable: called with the number of the last page before the durable token; see `confirmed`.
        log_ids: tunnel, client and channel, for log lines.
    """

    def __init__(
        self,
        store: CheckpointStore,
        start: Checkpoint,
        interval: float,
        *,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
        clock: Callable[[], float] | None = None,
        on_stored: Callable[[float], None] | None = None,
        on_durable: Callable[[int], None] | None = None,
        log_ids: Mapping[str, str] = MappingProxyType({}),
    ) -> None:
        self._store = store
        #: Why the stored number has to be read before the next one is tried, also behind a try that was broken off.
        self._refused: SequenceNumberMismatch | None = None
        self._interval = interval
        self._sleep = sleep
        self._clock = clock or asyncio.get_running_loop().time
        self._on_stored = on_stored
        self._on_durable = on_durable
        self._log_ids = log_ids
        self._confirmed = start.token
        #: Number of the last page before the confirmed token.
        self._page = 0
        self._durable = start.token
        self._sequence = start.sequence_number
        #: Tokens of calls since the last acknowledged one, each with the number of the last page before it.
        self._tried: dict[Token, int] = {}
        self._durable_page = 0
        self._stored_at = self._clock()
        self._is_hurried = self._is_ended = False
        #: Set when the next checkpoint is due before the interval is over.
        self._due = asyncio.Event()
        self._one_at_a_time = asyncio.Lock()
        #: Time at which `flush_within` gives up.
        self._give_up_at = math.inf

    def __repr__(self) -> str:
        return f"Checkpointer(sequence={self._sequence}, pending={self._confirmed != self._durable})"

    @property
    def durable(self) -> Token:
        """The token the service has acknowledged."""
        return self._durable

    @property
    def stored(self) -> Checkpoint:
        """The same token with its sequence number."""
        return Checkpoint(self._durable, self._sequence)

    def confirmed(self, token: Token, page: int = 0) -> None:
        """Everything before `token` is confirmed by the sink.

        Args:
            page: number of the last page before it; pages are numbered in the order in which they were read.
        """
        self._confirmed = token
        self._page = page
        if self._is_hurried:
            self._due.set()

    def hurry(self) -> None:
        """The channel ends: from now on a confirmed token is stored at once, and not once an interval."""
        self._is_hurried = True
        self._due.set()

    def end(self) -> None:
        """Let `run` return, behind a call under way: breaking one off leaves open whether it was carried out."""
        self._is_ended = True
        self._due.set()

    def age(self) -> float:
        """Seconds for which confirmed progress has not been durable; 0 when all is."""
        return self._clock() - self._stored_at if self._confirmed != self._durable else 0.0

    async def run(self) -> None:
        """Store a checkpoint once per interval until `end`; a failed call is repeated at the next interval.

        Raises:
            OwnershipLost: another client writes this channel's checkpoints, or the fence is closed.
            ServiceError: the service refuses permanently.
        """
        while True:
            await self._until_due()
            if self._is_ended:
                return
            try:
                await self.flush()
            except (TransportError, ServerUnavailable) as error:
                logger.warning(
                    "checkpoint failed and is repeated",
                    extra={"action": LogAction.CHECKPOINT_FAILED, **self._log_ids, "error": str(error)},
                )

    async def _until_due(self) -> None:
        is_tried_again = self._is_hurried and self._confirmed != self._durable
        sleeping = asyncio.ensure_future(
            self._sleep(min(self._interval, HURRIED_RETRY) if is_tried_again else self._interval)
        )
        due = asyncio.ensure_future(self._due.wait())
        try:
            await asyncio.wait((sleeping, due), return_when=asyncio.FIRST_COMPLETED)
        finally:
            sleeping.cancel()
            due.cancel()
        if not self._is_ended:
            self._due.clear()

    async def flush(self) -> None:
        """Make everything confirmed so far durable.

        Raises:
            OwnershipLost: the stored token is not ours.
            TransportError, ServiceError: it could not be stored; it is still pending. ServerUnavailable also where the
                service refuses every number, the one after that which it has stored included.
        """
        async with self._one_at_a_time:
            adopted = 0
            while self._confirmed != self._durable:
                try:
                    if self._refused is None:
                        await self._write(self._confirmed, self._page)
                except SequenceNumberMismatch as mismatch:
                    self._refused = mismatch
                if self._refused is None:
                    continue
                if adopted == ADOPTIONS:
                    message = f"number {self._sequence + 1} is refused, although {self._sequence} is stored"
                    raise ServerUnavailable(self._refused.code, message, self._refused.request_id) from self._refused
                await self._adopt_stored(self._refused)
                self._refused = None
                adopted += 1

    async def flush_within(self, seconds: float, try_seconds: float | None = None) -> None:
        """Like `flush`, but repeats failed calls for `seconds`.

        Args:
            try_seconds: that one try may take. Reading the stored number, which follows a lost answer, repeats its call
                for longer than a drain may take.

        Raises:
            OwnershipLost, TransportError, ServiceError: as `flush`; TransportError only after the time is over.
        """
        self._give_up_at = self._clock() + seconds
        while True:
            try:
                return await self._flush_once(try_seconds)
            except (TransportError, ServerUnavailable):
                if self._clock() + FLUSH_RETRY > self._give_up_at:
                    raise
            await self._sleep(FLUSH_RETRY)

    def give_up_within(self, seconds: float) -> None:
        """Shorten the time of a `flush_within` that runs; one that begins later has its own."""
        self._give_up_at = min(self._give_up_at, self._clock() + seconds)

    async def _flush_once(self, seconds: float | None) -> None:
        """A call that is broken off is one without an answer: whether it was carried out is found out by its number."""
        try:
            async with asyncio.timeout(seconds) as limit:
                await self.flush()
        except TimeoutError as error:
            if not limit.expired():
                raise
            raise ReadTimeout(f"the checkpoint was not stored within {seconds:g} s") from error

    async def _write(self, token: Token, page: int) -> None:
        began = self._clock()
        self._tried[token] = page
        await self._store.put(Checkpoint(token, self._sequence + 1))
        self._sequence += 1
        self._acknowledge(token, page)
        if self._on_stored is not None:
            self._on_stored(self._clock() - began)

    async def _adopt_stored(self, mismatch: TunnelError) -> None:
        stored = await self._store.get()
        if not belongs_to_us(stored.token, self._durable, frozenset(self._tried)):
            raise OwnershipLost("the stored checkpoint was written by another client") from mismatch
        logger.info("sequence number adopted", extra={"action": LogAction.CHECKPOINT_ADOPTED, **self._log_ids})
        self._sequence = stored.sequence_number
        self._acknowledge(stored.token, self._tried.get(stored.token, self._durable_page))

    def _acknowledge(self, token: Token, page: int) -> None:
        self._durable, self._durable_page = token, page
        self._tried = {}
        self._stored_at = self._clock()
        if self._on_durable is not None:
            self._on_durable(page)
