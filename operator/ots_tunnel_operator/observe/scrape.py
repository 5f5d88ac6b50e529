"""Reports of worker pods: GET http://<pod>:8080/channels. No answer means unknown, never 0."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import aiohttp

from ots_tunnel_operator import names
from ots_tunnel_operator.log_actions import LogAction
from ots_tunnel_operator.times import parse_time
from ots_tunnel_operator.world.pod import Pod
from ots_tunnel_operator.world.report import RefusedCount, ReportedGap, SinkContact, WorkerChannel, WorkerReport
from ots_tunnel_operator.world.resource import Resource

logger = logging.getLogger(__name__)

#: Longest document accepted, bytes; about 10,000 channels.
MAX_BYTES = 8 * 1024 * 1024


async def scrape(
    session: aiohttp.ClientSession, resource: Resource, pods: Sequence[Pod], *, timeout: float
) -> tuple[Pod, ...]:
    """The pods of an object with their workers' reports; all are asked concurrently, within `timeout` seconds."""
    place = {"namespace": resource.namespace, "object": resource.name}

    async def ask(pod: Pod) -> Pod:
        if pod.phase != "Running" or not pod.ip:
            return pod
        return replace(pod, report=await _ask(session, pod, place, timeout))

    return tuple(await asyncio.gather(*(ask(pod) for pod in pods)))


async def _ask(
    session: aiohttp.ClientSession, pod: Pod, place: Mapping[str, str], timeout: float
) -> WorkerReport | None:
    host = f"[{pod.ip}]" if ":" in pod.ip else pod.ip
    url = f"http://{host}:{names.WORKER_PORT}/channels"
    try:
        async with session.get(url, timeout=aiohttp.ClientTimeout(total=timeout)) as answer:
            if answer.status != 200:
                return None
            if (answer.content_length or 0) > MAX_BYTES:
                return None
            return parse_report(await answer.json(content_type=None))
    except (aiohttp.ClientError, TimeoutError, OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        values = {**place, "kind": "Pod", "child": pod.name, "error": type(error).__name__}
        logger.debug("a worker did not answer", extra={"action": LogAction.WORKER_SILENT, **values})
        return None


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
        refused=None if (refused := document.get("refused")) is None else _refused(refused),
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


def _refused(item: Mapping[str, Any]) -> RefusedCount:
    return RefusedCount(int(item["records"]), int(item["keys"]))


def _gap(item: Mapping[str, Any]) -> ReportedGap:
    start, end = parse_time(item["from"]), parse_time(item["to"])
    if start is None or end is None:
        raise ValueError("a possible gap without its times")
    return ReportedGap(str(item["channel"]), start, end)


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
