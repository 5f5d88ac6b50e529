"""Answers that would lose a shard or its place are refused, and temporary ones are asked for again."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from google.protobuf.message import Message

from ots_tunnel.errors import CodecError, ConnectionLost, ServerUnavailable, TunnelError
from ots_tunnel.protocol import table_pb2 as pb
from ots_tunnel.protocol.http.message import HttpRequest, HttpResponse
from ots_tunnel.protocol.http.rpc import error_body
from ots_tunnel.stream.calls import client as module
from ots_tunnel.stream.calls.client import StreamClient
from ots_tunnel.stream.shards import ShardId, ShardIterator
from tests.support.emulator.emulator_scene import CREDENTIALS
from tests.support.emulator.stream_scene import HOST, quick_caller

ITERATOR = ShardIterator("i")
HEADERS = {"x-ots-requestid": "r-1"}
BUSY = HttpResponse(503, HEADERS, error_body("OTSServerBusy", "busy"))


class Service:
    """Gives the same answers in turn; the last one again and again."""

    def __init__(self, *answers: HttpResponse | Message | TunnelError) -> None:
        self.answers: Sequence[HttpResponse | Message | TunnelError] = answers
        self.requests: list[bytes] = []

    async def handle(self, request: HttpRequest) -> HttpResponse:
        answer = self.answers[min(len(self.requests), len(self.answers) - 1)]
        self.requests.append(request.body)
        if isinstance(answer, TunnelError):
            raise answer
        return answer if isinstance(answer, HttpResponse) else HttpResponse(200, HEADERS, answer.SerializeToString())

    @property
    def client(self) -> StreamClient:
        return StreamClient(HOST, "demo", CREDENTIALS, caller=quick_caller(self.handle))


def described(*shards: str, following: str | None = None) -> pb.DescribeStreamResponse:
    return pb.DescribeStreamResponse(
        stream_id="s",
        expiration_time=24,
        table_name="t",
        creation_time=1,
        stream_status=pb.STREAM_ACTIVE,
        shards=[pb.StreamShard(shard_id=shard) for shard in shards],
        next_shard_id=following,
    )


async def test_an_empty_success_of_a_load_balancer_is_no_end_of_a_shard() -> None:
    service = Service(HttpResponse(200, {}, b""), pb.GetStreamRecordResponse(next_shard_iterator="j"))

    page = await service.client.read(ITERATOR)

    assert page.next_iterator == "j"
    assert len(service.requests) == 2


async def test_an_empty_success_of_a_load_balancer_is_no_table_without_a_stream(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(module, "CALL_RETRY", None)

    with pytest.raises(ConnectionLost, match="x-ots-requestid"):
        await Service(HttpResponse(200, {}, b"")).client.stream_of("t")


async def test_an_answer_of_the_service_without_a_next_iterator_is_the_end() -> None:
    page = await Service(pb.GetStreamRecordResponse()).client.read(ITERATOR)

    assert page.is_last
    assert page.may_more is None


async def test_an_empty_next_iterator_is_neither_end_nor_position() -> None:
    with pytest.raises(CodecError, match="next_shard_iterator is empty"):
        await Service(pb.GetStreamRecordResponse(next_shard_iterator="")).client.read(ITERATOR)


async def test_a_busy_service_is_asked_again() -> None:
    service = Service(BUSY, ConnectionLost("broken"), pb.GetStreamRecordResponse(next_shard_iterator="j"))

    assert (await service.client.read(ITERATOR)).next_iterator == "j"
    assert len(service.requests) == 3


async def test_a_service_that_stays_busy_is_a_retryable_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "READ_RETRY", None)

    with pytest.raises(ServerUnavailable) as caught:
        await Service(BUSY).client.read(ITERATOR)

    assert caught.value.retryable


@pytest.mark.parametrize(
    "pages",
    [
        [described()],
        [described("a", following="b"), described("a", following="b")],
        [described("a", following="b"), described()],
    ],
    ids=["no shard", "a page again", "an empty page"],
)
async def test_an_incomplete_list_of_shards_is_refused(pages: list[pb.DescribeStreamResponse]) -> None:
    with pytest.raises(CodecError, match="no further shard of stream s"):
        await Service(*pages).client.shards("s")


@pytest.mark.parametrize("tables", [("t", "t"), ("other",)])
async def test_a_stream_of_another_table_is_refused(tables: tuple[str, ...]) -> None:
    streams = [pb.Stream(stream_id="s", table_name=table, creation_time=1) for table in tables]

    with pytest.raises(CodecError, match="allowed is one of t"):
        await Service(pb.ListStreamResponse(streams=streams)).client.stream_of("t")


async def test_a_seek_is_followed_until_it_has_a_position() -> None:
    service = Service(
        pb.GetShardIteratorResponse(shard_iterator="", next_token="half"),
        pb.GetShardIteratorResponse(shard_iterator="i"),
    )

    assert await service.client.iterator("s", ShardId("a"), timestamp_us=7) == "i"
    asked = [pb.GetShardIteratorRequest.FromString(body) for body in service.requests]
    assert [(each.timestamp, each.token) for each in asked] == [(7, ""), (7, "half")]


async def test_a_seek_without_end_or_position_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_SEEKS", 3)
    endless = Service(pb.GetShardIteratorResponse(shard_iterator="", next_token="half"))
    nowhere = Service(pb.GetShardIteratorResponse(shard_iterator=""))

    with pytest.raises(CodecError, match="3 answers"):
        await endless.client.iterator("s", ShardId("a"))
    with pytest.raises(CodecError, match="shard_iterator is empty"):
        await nowhere.client.iterator("s", ShardId("a"))
    assert len(endless.requests) == 3
