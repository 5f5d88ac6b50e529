"""What a worker tells about its channels: its document `/channels`, read through the API server. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

#: States of channels that a worker holds, as its document names them.
HELD = frozenset({"OPEN", "CLOSING"})


@dataclass(frozen=True, slots=True)
class HeldChannel:
    """One channel of a worker; what is unknown is None."""

    id: str
    type: str
    state: str
    rows: int | None
    caught_up: bool
    lag_seconds: int | None
    error: str

    @property
    def lag(self) -> int | None:
        """Seconds behind; a channel that is caught up is not late, however old its last change."""
        return 0 if self.caught_up else self.lag_seconds


@dataclass(frozen=True, slots=True)
class Report:
    """The answer of one worker's pod.

    Args:
        pod: name of the pod.
        channels: None where the pod gave no answer.
        failure: why it gave none; empty with an answer.
    """

    pod: str
    channels: tuple[HeldChannel, ...] | None = None
    rows_per_second: float | None = None
    busy_percent: int | None = None
    error: str = ""
    failure: str = ""


def report_of(pod: str, document: Mapping[str, Any]) -> Report:
    """Read a worker's document; channels that it no longer holds are left out.

    Raises:
        KeyError, TypeError, ValueError: the document has another form.
    """
    rate, busy = document.get("rowsPerSecond"), document.get("busyPercent")
    return Report(
        pod,
        tuple(_channel(item) for item in document["channels"] if item["state"] in HELD),
        None if rate is None else float(rate),
        None if busy is None else int(busy),
        str(document.get("error") or ""),
    )


def _channel(item: Mapping[str, Any]) -> HeldChannel:
    rows, lag = item.get("rowsTotal"), item.get("lagSeconds")
    return HeldChannel(
        str(item["id"]),
        str(item["type"]),
        str(item["state"]),
        None if rows is None else int(rows),
        bool(item.get("caughtUp")),
        None if lag is None else int(lag),
        str(item.get("error") or ""),
    )
