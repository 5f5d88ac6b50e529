"""Reports of worker pods: GET http://<pod>:8080/channels. No answer means unknown, never 0.

A worker runs an image of the user's, and all objects share one process. So a page is read only where its values are as
many as those of a worker's, and the workers of one object report a bounded number of channels together.
"""

from __future__ import annotations

import asyncio
import json
import logging
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NoReturn

from ots_tunnel.errors import CodecError
from ots_tunnel_operator.log_actions import LogAction
from ots_tunnel_operator.observe.worker_page import ReadPage
from ots_tunnel_operator.times import parse_time
from ots_tunnel_operator.world.pod import Pod
from ots_tunnel_operator.world.report import RefusedCount, ReportedGap, SinkContact, WorkerChannel, WorkerReport
from ots_tunnel_operator.world.resource import Resource

logger = logging.getLogger(__name__)

#: Most values of a document: more than 10,000 channels have. Python takes up to 70 bytes for a value of three.
MAX_VALUES = 200_000
#: Most channels that the workers of one object report together; each has one worker, but for a moment.
MAX_CHANNELS = 20_000
#: Largest number of a document, as in the API server's int64.
MAX_WHOLE = 2**63 - 1
#: What a document of another form raises. A worker runs an image of the user's, so it may be anything.
_UNREADABLE = (ValueError, KeyError, TypeError, AttributeError, RecursionError)


@dataclass(slots=True)
class _Room:
    """How many channels the workers of an object may still report."""

    channels: int

    def take(self, report: WorkerReport) -> WorkerReport:
        """The report, if there is room for it.

        Raises:
            ValueError: there is none.
        """
        self.channels -= len(report.channels)
        if self.channels < 0:
            raise ValueError(f"the workers report more than {MAX_CHANNELS} channels")
        return report


async def scrape(read: ReadPage, resource: Resource, pods: Sequence[Pod], *, timeout: float) -> tuple[Pod, ...]:
    """The pods of an object with their workers' reports; all are asked concurrently, within `timeout` seconds."""
    place = {"namespace": resource.namespace, "object": resource.name}
    room = _Room(MAX_CHANNELS)

    async def ask(pod: Pod) -> Pod:
        if pod.phase != "Running" or not pod.ip:
            return pod
        return replace(pod, report=await _ask(read, pod, place, room, timeout))

    return tuple(await asyncio.gather(*(ask(pod) for pod in pods)))


async def _ask(read: ReadPage, pod: Pod, place: Mapping[str, str], room: _Room, timeout: float) -> WorkerReport | None:
    try:
        async with asyncio.timeout(timeout):
            body = await read(pod.ip, "/channels")
        return None if body is None else room.take(parse_report(read_document(body)))
    except (CodecError, TimeoutError, OSError, *_UNREADABLE) as error:
        values = {**place, "kind": "Pod", "child": pod.name, "error": type(error).__name__}
        logger.debug("a worker did not answer", extra={"action": LogAction.WORKER_SILENT, **values})
        return None


def read_document(body: bytes) -> Any:
    """The document in a body; its figures are finite, and its values bounded in number.

    Raises:
        ValueError: it is no JSON, has more than MAX_VALUES values, or a number that no figure can have.
        RecursionError: it is nested too deeply.
    """
    # each value but the first follows one of these; counting them takes a hundredth of reading the document
    values = sum(body.count(sign) for sign in b",[{")
    if values > MAX_VALUES:
        raise ValueError(f"found {values} values, allowed are {MAX_VALUES}")
    return json.loads(body, parse_constant=_not_finite, parse_float=_finite, parse_int=_whole)


def _whole(text: str) -> int:
    number = int(text)
    return number if abs(number) <= MAX_WHOLE else _not_finite(text)


def _finite(text: str) -> float:
    number = float(text)
    return number if math.isfinite(number) else _not_finite(text)


def _not_finite(text: str) -> NoReturn:
    raise ValueError(f"found {text}, allowed are finite numbers")


def parse_report(document: Mapping[str, Any]) -> WorkerReport:
    """Read the /channels document.

    Raises:
        KeyError, TypeError, ValueError, AttributeError: the document has another form.
    """
    return WorkerReport(
        client_id=str(document.get("clientId") or ""),
        rows_per_second=None if (rate := document["rowsPerSecond"]) is None else float(rate),
        busy_percent=None if (busy := document["busyPercent"]) is None else int(busy),
        error=document.get("error") or None,
        completed=bool(document.get("completed")),
        channels=tuple(_channel(item) for item in document["channels"]),
        gaps=tuple(_gap(item) for item in document.get("possibleGaps") or ()),
        tunnel_id=str(document.get("tunnelId") or ""),
        sink=None if (sink := document.get("sink")) is None else _sink(sink, document["time"]),
        refused=None if (refused := document.get("refused")) is None else _refused(refused, document),
    )


def _sink(item: Mapping[str, Any], time: str) -> SinkContact:
    has_answered = item["lookedTime"] is not None or item["confirmedTime"] is not None
    failing = item["failing"]
    if failing is None:
        return SinkContact(has_answered)
    now, since = parse_time(time), parse_time(failing["since"])
    if now is None or since is None:
        raise ValueError("a failing write without its times")
    return SinkContact(has_answered, max(0.0, now - since), str(failing["error"]))


def _refused(item: Mapping[str, Any], document: Mapping[str, Any]) -> RefusedCount:
    return RefusedCount(int(item["records"]), int(item["keys"]), parse_time(document.get("startedTime")))


def _gap(item: Mapping[str, Any]) -> ReportedGap:
    start, end = parse_time(item["from"]), parse_time(item["to"])
    if start is None or end is None:
        raise ValueError("a possible gap without its times")
    # an earlier release does not tell
    return ReportedGap(str(item["channel"]), start, end, bool(item.get("passed")))


def _channel(item: Mapping[str, Any]) -> WorkerChannel:
    lag = item.get("lagSeconds")
    return WorkerChannel(
        channel_id=str(item["id"]),
        state=str(item["state"]),
        rows=int(item.get("rowsTotal") or 0),
        caught_up=bool(item.get("caughtUp")),
        consumed_up_to=parse_time(item.get("consumedUpTo")),
        lag_seconds=None if lag is None else int(lag),
        finished=bool(item.get("finished")),
        end_reached=bool(item.get("endReached")),
        error=item.get("error") or None,
    )
