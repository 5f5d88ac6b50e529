"""For how long a topic is asked for that no broker knows."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest

from ots_tunnel.config import KafkaSinkConfig
from ots_tunnel.errors import SinkError, SinkRejected
from ots_tunnel.sinks.kafka import connections as connections_module
from ots_tunnel.sinks.kafka.connections import Connections
from ots_tunnel.sinks.kafka.failures import Failure

SILENT = Failure("_TRANSPORT", "no broker answers")
UNKNOWN = Failure("UNKNOWN_TOPIC_OR_PART", "unknown topic")


async def checked(monkeypatch: pytest.MonkeyPatch, answers: Iterable[Failure | None]) -> float:
    """Seconds of a check to whose questions, every two seconds, these are the answers."""
    now, left = 0.0, iter(answers)

    class Producer:
        fatal = None

        def __init__(self, *_: Any) -> None: ...

        async def topic_error(self, timeout: float) -> Failure | None:
            return next(left)

    def pause() -> float:
        nonlocal now
        now += 2
        return 0.0

    monkeypatch.setattr(connections_module, "ReportingProducer", Producer)
    config = KafkaSinkConfig(bootstrap_servers=["127.0.0.1:1"], topic="t")
    await Connections(config, deadline=9, check_pause=pause, clock=lambda: now).check_topic()
    return now


@pytest.mark.parametrize(
    ("answers", "seconds"),
    [
        ([None], 0),
        ([UNKNOWN, UNKNOWN, None], 4),
        # a cluster that starts does not answer at first, and then knows nothing for a moment
        ([*5 * [SILENT], UNKNOWN, UNKNOWN, None], 14),
        ([UNKNOWN, UNKNOWN, SILENT, UNKNOWN, UNKNOWN, None], 10),
    ],
    ids=["known", "unknown for a moment", "silent and then unknown", "a silence in between"],
)
async def test_a_topic_that_is_known_in_the_end_is_no_refusal(
    monkeypatch: pytest.MonkeyPatch, answers: list[Failure | None], seconds: float
) -> None:
    assert await checked(monkeypatch, answers) == seconds


@pytest.mark.parametrize(
    ("answers", "error"),
    [(4 * [UNKNOWN], SinkRejected), ([SILENT, *4 * [UNKNOWN]], SinkRejected), (7 * [SILENT], SinkError)],
)
async def test_a_check_ends(monkeypatch: pytest.MonkeyPatch, answers: list[Failure], error: type[Exception]) -> None:
    with pytest.raises(error) as raised:
        await checked(monkeypatch, answers)

    assert type(raised.value) is error
