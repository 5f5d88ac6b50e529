"""What a channel that waits has to show before nobody waits for it any more."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest

from ots_tunnel.client.page import Page
from ots_tunnel.errors import CodecError, ConnectionLost, ParameterInvalid, ServerUnavailable, TunnelError
from ots_tunnel.model import FINISHED, ChannelId, Checkpoint, Token
from ots_tunnel.protocol.token import TokenContent, build_token
from ots_tunnel.worker.pages.budget import ByteBudget
from ots_tunnel.worker.session.waiting import EMPTY_PAGES, WaitingChannels
from tests.support.records import page_of_times

END_US = 60_000_000
CHANNEL = ChannelId("child")
START = build_token(TokenContent(iterator="start"))


class Service:
    """Answers reads with pages, one after the other; the last one again and again."""

    def __init__(self, *pages: Page, token: Token = START, error: TunnelError | None = None):
        self._pages = list(pages)
        self._token = token
        self._error = error
        self.reads: list[Token] = []

    async def get_checkpoint(self, *ids: str) -> Checkpoint:
        return Checkpoint(self._token, 0)

    async def read_records(self, tunnel_id: str, client_id: str, channel_id: str, token: Token) -> Page:
        self.reads.append(token)
        if self._error is not None:
            raise self._error
        return self._pages.pop(0) if len(self._pages) > 1 else self._pages[0]

    def waiting(self) -> WaitingChannels:
        worker = SimpleNamespace(budget=ByteBudget(1))
        settings = SimpleNamespace(tunnel_id="t")
        ids = {"client": self, "client_id": "me", "settings": settings, "worker": worker}
        context = SimpleNamespace(**ids, log_fields=lambda action, channel_id: {"channel_id": channel_id})
        return WaitingChannels(cast(Any, context), END_US)


def empty(*, may_more: bool | None) -> Page:
    return page_of_times(next_token="next", may_more=may_more)


def committed(*times_us: int) -> Page:
    return page_of_times(*times_us)


@pytest.mark.parametrize(
    ("service", "is_passed"),
    [
        pytest.param(Service(empty(may_more=False)), True, id="nothing at all"),
        pytest.param(
            Service(empty(may_more=None)), True, id="nothing, and the service does not say whether more comes"
        ),
        pytest.param(Service(committed(END_US + 1)), True, id="only later changes"),
        pytest.param(Service(committed(END_US, END_US + 1)), False, id="a change at the end time"),
        pytest.param(Service(empty(may_more=True), committed(END_US)), False, id="a change behind an empty page"),
        pytest.param(Service(empty(may_more=True), committed(END_US + 1)), True, id="later ones behind an empty page"),
        pytest.param(Service(token=FINISHED), True, id="read to its end"),
        pytest.param(Service(page_of_times(next_token=FINISHED)), True, id="ended without a change"),
        pytest.param(Service(error=ParameterInvalid("OTSParameterInvalid", "no")), False, id="unreadable"),
    ],
)
async def test_a_channel_is_passed_by_what_it_holds(service: Service, is_passed: bool) -> None:
    found = await service.waiting().passed([CHANNEL], 61.0, settled=True)

    assert found == ({CHANNEL} if is_passed else set())


async def test_a_refusal_that_stays_is_logged_once(caplog: pytest.LogCaptureFixture) -> None:
    waiting = Service(error=ParameterInvalid("OTSParameterInvalid", "no")).waiting()
    for _ in range(2):
        await waiting.passed([CHANNEL], 61.0, settled=True)

    assert [(line.levelname, vars(line)["channel_id"]) for line in caplog.records] == [("WARNING", CHANNEL)]


@pytest.mark.parametrize("passing", [ServerUnavailable("OTSServerUnavailable", "busy"), ConnectionLost("reset")])
async def test_what_passes_is_not_logged(passing: TunnelError, caplog: pytest.LogCaptureFixture) -> None:
    await Service(error=passing).waiting().passed([CHANNEL], 61.0, settled=True)

    assert not caplog.records


class Log(Service):
    """Empty pages that announce more before one with later changes; what a read answers depends on its token alone."""

    def __init__(self, empty_pages: int) -> None:
        super().__init__(committed(END_US + 1))
        self.tokens = [build_token(TokenContent(iterator=f"i{number}")) for number in range(empty_pages + 1)]
        self.checkpoint = self.tokens[0]
        self.errors: list[TunnelError] = []

    async def get_checkpoint(self, *ids: str) -> Checkpoint:
        return Checkpoint(self.checkpoint, 0)

    async def read_records(self, tunnel_id: str, client_id: str, channel_id: str, token: Token) -> Page:
        self.reads.append(token)
        if self.errors:
            raise self.errors.pop()
        behind = self.tokens[self.tokens.index(token) + 1 :]
        return page_of_times(next_token=behind[0], may_more=True) if behind else committed(END_US + 1)


async def test_a_look_behind_many_empty_pages_goes_on_where_the_last_one_ended() -> None:
    log = Log(2 * EMPTY_PAGES)
    waiting = log.waiting()

    found = [await waiting.passed([CHANNEL], 61.0, settled=True) for _ in range(3)]

    assert found == [set(), set(), {CHANNEL}]
    assert log.reads == log.tokens


async def test_another_checkpoint_begins_another_look() -> None:
    log = Log(2 * EMPTY_PAGES)
    waiting = log.waiting()

    await waiting.passed([CHANNEL], 61.0, settled=True)
    log.checkpoint = log.tokens[3]
    await waiting.passed([CHANNEL], 61.0, settled=True)

    assert log.reads[EMPTY_PAGES] == log.tokens[3]


@pytest.mark.parametrize(
    ("error", "goes_on"),
    [
        (ServerUnavailable("OTSServerBusy", "busy"), True),
        (ConnectionLost("gone"), True),
        (ParameterInvalid("OTSParameterInvalid", "no such token"), False),
        (CodecError("bytes"), False),
    ],
)
async def test_a_refused_token_leads_back_to_the_checkpoint(error: TunnelError, goes_on: bool) -> None:
    log = Log(2 * EMPTY_PAGES)
    waiting = log.waiting()

    await waiting.passed([CHANNEL], 61.0, settled=True)
    log.errors.append(error)
    assert await waiting.passed([CHANNEL], 61.0, settled=True) == set()
    await waiting.passed([CHANNEL], 61.0, settled=True)

    assert log.reads[EMPTY_PAGES + 1] == log.tokens[EMPTY_PAGES if goes_on else 0]


async def test_a_verdict_stays() -> None:
    service = Service(committed(END_US + 1))
    waiting = service.waiting()

    for _ in range(3):
        assert await waiting.passed([CHANNEL], 61.0, settled=False) == {CHANNEL}
    assert len(service.reads) == 1
