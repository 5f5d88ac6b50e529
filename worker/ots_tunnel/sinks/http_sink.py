"""A web service as the sink: signed batches of CloudEvents, in order per key (docs/sinks.md).

2xx                         the whole batch is stored
425, 429                    sent again after a pause, not before Retry-After
408, 5xx, no answer         the same, and not before D is over
400, 413, 422               one event may be the cause: the batch is halved until it is found
any other                   the batch is refused for good

A batch may still be stored after an answer that does not come from the service (`http_answer`): a proxy may have passed
it on. It is in doubt for D, and neither it nor a later event of its keys is sent before, because nothing may be
overtaken (docs/architecture.md rule 4).
"""

from __future__ import annotations

import asyncio
import hashlib
import random
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Self

import aiohttp

from ots_tunnel.config import DeliveryConfig, HttpSinkConfig, SinkDocument
from ots_tunnel.errors import ConfigError, SinkRejected
from ots_tunnel.fence import Guard, RequestFence
from ots_tunnel.sinks import Batch, Contact, Immediate, OnRefused, PageCost
from ots_tunnel.sinks.cloud_events import (
    CONTENT_TYPE,
    Event,
    Events,
    batch_body,
    hmac_key,
    producer_of,
    signature_headers,
)
from ots_tunnel.sinks.contact import Tries, Writes
from ots_tunnel.sinks.feed import SliceFeed
from ots_tunnel.sinks.grouping import Grouping, Limits
from ots_tunnel.sinks.http_answer import (
    BODY_SECONDS,
    MAX_BODY,
    UNQUOTED,
    Answer,
    plain_words,
    retry_after,
    why_silent,
)
from ots_tunnel.sinks.key_text import key_text
from ots_tunnel.sinks.lanes import fill_lanes
from ots_tunnel.sinks.retries import write_backoff
from ots_tunnel.sinks.slices import Turns
from ots_tunnel.sinks.tally import Tally
from ots_tunnel.transport.authorities import Authorities
from ots_tunnel.transport.guarded_body import GuardedBody


class HttpSink(Immediate):
    """Posts records to one URL.

    Args:
        source: names the table in every event, such as ``ots://instance/table``.
        producer: begins the id of every event, see `producer_of`.
        delivery: size of a batch and pauses between tries.
        lanes: requests in flight per channel; those of one key are sent in sequence.
        deadline: D, the most seconds that a request may take (docs/architecture.md rule 4).
        clock: Unix seconds.

    Raises:
        ConfigError: the file of the secret or of authorities is missing or empty.
    """

    cost = PageCost(6, 250)

    def __init__(
        self,
        config: HttpSinkConfig,
        source: str,
        producer: str,
        *,
        delivery: DeliveryConfig,
        lanes: int,
        deadline: float,
        clock: Callable[[], float] = time.time,
        entropy: Callable[[], float] = random.random,
    ) -> None:
        self._url = config.url
        #: For messages: the parameters of an address may hold keys of the service.
        self._where = config.url.partition("?")[0]
        self._secret_file = config.hmac_secret_file
        self._timeout = min(config.timeout_seconds, deadline)
        self._deadline = deadline
        self._source = source
        self._producer = producer
        self._limits = Limits(delivery.batch_max_rows, delivery.batch_max_bytes)
        self._backoff = write_backoff(delivery.retry)
        self._lanes = lanes
        self._clock = clock
        self._entropy = entropy
        self._secret()  # a missing file fails the start, not the first batch
        self._authorities = Authorities(config.ca_file, "sink.http.caFile") if config.ca_file is not None else None
        self._session: aiohttp.ClientSession | None = None
        self._turns = Turns()
        self._writes = Writes(clock)
        self.retries = 0

    @classmethod
    def from_config(cls, config: SinkDocument, section: HttpSinkConfig) -> Self:
        """The sink of a worker's document.

        Raises:
            ConfigError: the file of the secret is missing or empty.
        """
        return cls(
            section,
            f"ots://{config.source.instance}/{config.source.table}",
            producer_of(config.source.tunnel_id, config.delivery.columns),
            delivery=config.delivery,
            lanes=config.client.lanes_per_channel,
            deadline=config.client.write_deadline,
        )

    def __repr__(self) -> str:
        return f"HttpSink({self._where})"

    async def open(self) -> None:
        """Prepare connections; the first batch is the first call of the service."""
        self._session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=0), cookie_jar=aiohttp.DummyCookieJar()
        )

    async def write(self, batch: Batch, guard: Guard) -> None:
        """Post every record; see `Immediate.write`.

        Raises:
            CodecError: a record is malformed.
        """
        grouping: Grouping[Event] = Grouping(self._limits)
        events = Events(batch.channel_id, self._source, self._producer)
        feed = SliceFeed(batch.records, events.of, grouping, self._limits, self._turns)

        async def deliver(taken: tuple[Event, ...]) -> None:
            await self._deliver(taken, guard, batch.on_refused)
            grouping.settle(taken)

        await fill_lanes(self._lanes, lambda: deliver(taken) if (taken := grouping.take()) else None, prepare=feed.fill)

    async def close(self) -> None:
        """Close the connections."""
        if self._session is not None:
            await self._session.close()

    def tally(self) -> Tally:
        """See `Channels.tally`."""
        return Tally(write_retries=self.retries)

    def contact(self) -> Contact:
        """See `Channels.contact`."""
        return self._writes.contact

    async def _deliver(self, events: tuple[Event, ...], guard: Guard, on_refused: OnRefused | None) -> None:
        refusal = await self._post(events, guard)
        if refusal is None:
            return
        code, sentence = f"HTTP {refusal.status}", refusal.refusal(self._where)
        if not refusal.is_about_one_event:
            raise SinkRejected(code, sentence)  # no row is to blame
        if len(events) == 1:
            if on_refused is None:
                raise SinkRejected(code, sentence, (key_text(events[0].key),))
            return on_refused(events[0].record, code, sentence)
        middle = len(events) // 2
        await self._deliver(events[:middle], guard, on_refused)
        await self._deliver(events[middle:], guard, on_refused)

    async def _post(self, events: tuple[Event, ...], guard: Guard) -> Answer | None:
        """Post until the service accepts or refuses; return a refusal, None for a success."""
        with self._writes.tries() as tries:
            refusal = await self._post_until_answered(events, guard, tries)
        if refusal is None:
            self._writes.confirmed()
        return refusal

    async def _post_until_answered(self, events: tuple[Event, ...], guard: Guard, tries: Tries) -> Answer | None:
        body = batch_body(events)
        message_id = f"msg_{hashlib.sha256(body).hexdigest()[:32]}"
        attempt = 0
        fence = RequestFence(guard, self._deadline)
        while True:
            answer = await self._post_once(body, message_id, fence, is_single=len(events) == 1)
            if answer.is_success:
                return None
            if answer.is_refusal:
                return answer
            doubt = fence.in_doubt if answer.is_in_doubt else 0.0
            pause = max(self._backoff.delay(attempt, self._entropy()), answer.retry_after, doubt)
            tries.failed("the web service does not accept a batch, which is tried again", str(answer), url=self._where)
            self.retries += 1
            attempt += 1
            await asyncio.sleep(pause)

    async def _post_once(self, body: bytes, message_id: str, guard: Guard, *, is_single: bool) -> Answer:
        """Send one request; with a refusal that is told comes what the service says."""
        assert self._session is not None, "open() comes first"
        headers = {"content-type": CONTENT_TYPE, "accept-encoding": "identity"}
        headers |= signature_headers(body, message_id, self._clock(), self._secret())
        guarded = GuardedBody(body, guard.check, self._timeout)
        try:
            async with self._session.post(
                self._url,
                data=guarded,
                headers=headers,
                timeout=aiohttp.ClientTimeout(total=self._timeout),
                allow_redirects=False,
                # the status counts, whether what follows can be unpacked or not
                auto_decompress=False,
                ssl=self._authorities.context if self._authorities is not None else True,
            ) as answer:
                is_early = not guarded.is_complete
                if is_early:
                    await guarded.give_up()
                else:
                    guarded.answered()
                pause = retry_after(answer.headers.get("retry-after", ""), self._clock())
                found = Answer(answer.status, pause, is_early)
                # otherwise its halves are posted, and what is said of them is told
                is_told = found.is_refusal and (is_single or not found.is_about_one_event)
                return replace(found, words=await self._words(answer)) if is_told else found
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            await guarded.give_up()
            if guarded.refusal is not None:
                raise guarded.refusal from None
            return Answer(cause=why_silent(error, self._timeout))
        except BaseException:
            await guarded.give_up()
            raise

    async def _words(self, answer: aiohttp.ClientResponse) -> str:
        """What the service says with a refusal, as far as it comes: the refusal counts without it, too."""
        if "?" in self._url:
            # a page of an error repeats its address, and escapes it in ways that nobody can list
            return UNQUOTED.format("it may repeat the parameters of the address")
        if answer.headers.get("content-encoding", "identity").strip().lower() not in ("identity", ""):
            return UNQUOTED.format("it is compressed")
        body = b""
        with suppress(aiohttp.ClientError, TimeoutError, OSError):
            async with asyncio.timeout(BODY_SECONDS):
                async for chunk in answer.content.iter_any():
                    body += chunk
                    if len(body) >= MAX_BODY:
                        break
        return plain_words(body[:MAX_BODY], answer.charset)

    def _secret(self) -> bytes | None:
        path: Path | None = self._secret_file
        if path is None:
            return None
        try:
            secret = path.read_bytes().strip()
        except OSError as error:
            raise ConfigError(f"sink.http.hmacSecretFile: {path}: {error.strerror}") from error
        if not secret:
            raise ConfigError(f"sink.http.hmacSecretFile: {path}: is empty")
        try:
            return hmac_key(secret)
        except ValueError as error:
            raise ConfigError(f"sink.http.hmacSecretFile: {path}: {error}") from None
