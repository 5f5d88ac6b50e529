"""Every request gets an answer that the service could give: a success, or a refusal that clients can read."""

from __future__ import annotations

from statistics import median

import pytest

from ots_emulator.pages import Body
from ots_emulator.server.auth import Caller, answer_headers
from ots_tunnel.protocol.http.message import HttpResponse
from ots_tunnel.protocol.http.operations import OPERATIONS_BY_PATH
from ots_tunnel.protocol.http.rpc import error_body
from tests.fuzz.answers import WrongAnswer, check_answer
from tests.fuzz.campaign import ROUND, Campaign, Memory, Tally
from tests.fuzz.world import World
from tests.support.emulator.emulator_driver import Driver

#: Allowed growth of memory in one run: fewer small blocks than requests, and no bodies.
BLOCKS_PER_REQUEST = 1.0
RESIDENT_BYTES = 32 << 20


def check_memory(tally: Tally) -> None:
    """Compare the second quarter of a run with the last one: caches are full by then, so growth is a leak."""
    quarter = len(tally.memory) // 4
    early, late = tally.memory[quarter : 2 * quarter], tally.memory[-quarter:]
    between = 2 * quarter * ROUND
    blocks = median(one.blocks for one in late) - median(one.blocks for one in early)
    resident = median(one.resident for one in late) - median(one.resident for one in early)
    assert blocks <= BLOCKS_PER_REQUEST * between, f"{blocks} blocks more after {between} requests"
    assert resident <= RESIDENT_BYTES, f"{resident} bytes more after {between} requests"


def check_reach(tally: Tally) -> None:
    """Enough requests must succeed: requests that fail early test only the first checks."""
    assert tally.succeeded.total() > tally.sent // 10
    assert tally.refused.total() > tally.sent // 4
    missing = set(OPERATIONS_BY_PATH) - set(tally.refused)
    assert not missing, f"never refused: {missing}"


@pytest.mark.lasts(24)
@pytest.mark.unmeasured
async def test_mutated_requests_are_answered() -> None:
    tally = await Campaign(seed=1).run(0, 8_000)

    assert tally.sent == 8_000
    check_reach(tally)
    check_memory(tally)


@pytest.mark.long
@pytest.mark.lasts(150)
@pytest.mark.parametrize("seed", range(2, 7))
async def test_many_mutated_requests_are_answered(seed: int) -> None:
    tally = await Campaign(seed).run(0, 100_000)

    assert tally.sent == 100_000
    check_reach(tally)
    check_memory(tally)


async def test_requests_are_valid_before_their_mutation() -> None:
    driver = Driver()
    world = World(driver)
    await world.build()

    for sample in world.samples:
        if sample.done:
            response = await driver.send(sample.name, sample.message)
            assert check_answer(OPERATIONS_BY_PATH[sample.path].path, {}, response), sample


async def test_the_same_seed_sends_the_same_requests() -> None:
    first, second = [await Campaign(seed=3).run(0, 2 * ROUND) for _ in range(2)]
    alone = await Campaign(seed=3).run(2 * ROUND - 1, 1)

    assert (first.succeeded, first.refused) == (second.succeeded, second.refused)
    assert alone.sent == ROUND


def test_a_leak_is_noticed() -> None:
    memory = [Memory(200_000 + 2 * ROUND * number, 0) for number in range(80)]

    with pytest.raises(AssertionError, match="10000 requests"):
        check_memory(Tally(0, memory=memory))


@pytest.mark.parametrize(
    ("status", "body", "complaint"),
    [
        (500, error_body("OTSInternalServerError", "Internal server error."), "OTSInternalServerError"),
        (503, error_body("OTSServerBusy", "Server is busy."), "status 503"),
        (400, b"<html>", "not an Error"),
        (400, error_body("Oops", "text"), "Oops"),
        (400, error_body("OTSParameterInvalid", ""), "OTSParameterInvalid"),
        (200, b"\x0a\x01\xff", "UTF-8"),
        (200, b"\x0a\x05t", "ListTable"),
    ],
)
async def test_unfit_answers_are_noticed(status: int, body: bytes, complaint: str) -> None:
    with pytest.raises(WrongAnswer, match=complaint):
        check_answer("/ListTable", {}, signed(status, body))


@pytest.mark.parametrize("header", ["x-ots-contentmd5", "x-ots-date", "x-ots-requestid", "Authorization"])
async def test_unfit_headers_are_noticed(header: str) -> None:
    response = signed(200, b"")
    headers = {name: value if name != header else "wrong" for name, value in response.headers.items()}

    with pytest.raises(WrongAnswer, match=r"authorization|date|md5"):
        check_answer(
            "/ListTable", {"x-ots-accesskeyid": "test-id", "x-ots-instancename": "demo"}, HttpResponse(200, headers)
        )


def signed(status: int, body: bytes) -> HttpResponse:
    emulator = Driver().emulator
    caller = Caller(emulator.instances["demo"], "test-id", "test-secret")
    return HttpResponse(status, answer_headers("/ListTable", Body(body), "id", 1_700_000_000.0, caller), body)
