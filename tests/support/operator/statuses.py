"""A status in which every field has a value."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import get_args

from ots_tunnel_operator.api.status import (
    BaseStatus,
    ChannelsStatus,
    Condition,
    ConditionType,
    DestinationStatus,
    LagStatus,
    PossibleGapStatus,
    SlowChannel,
    SnapshotStatus,
    ThroughputStatus,
    TunnelObjectStatus,
    TunnelStatus,
    WorkerStatus,
)

NOW = datetime(2026, 11, 20, 8, 15, 30, tzinfo=UTC)


def complete_status() -> TunnelObjectStatus:
    """Every field set, to the largest realistic values."""
    return TunnelObjectStatus(
        observed_generation=7,
        phase="Streaming",
        replicas=6,
        ready_replicas=6,
        selector="ots-tunnel.dev/name=flights-copy",
        tunnel=TunnelStatus(
            id="1c6f4d32-0b53-4a0e-9c7b-6f0f5f1f6a11",
            type="BaseAndStream",
            stage="ProcessStream",
            create_intent_time=NOW,
            created_by_operator=True,
            created_time=NOW,
            expired=False,
            stream_retention_seconds=604_800,
        ),
        destination=DestinationStatus(create_intent_time=NOW, created_by_operator=True, ensured_time=NOW),
        channels=ChannelsStatus(
            total=20,
            base=4,
            stream=16,
            open=16,
            closing=0,
            terminated=4,
            unowned=0,
            min_per_worker=2,
            max_per_worker=3,
        ),
        base=BaseStatus(percent=100, rows=1_893_345_221_000, done=4, total=4, eta_seconds=0),
        lag=LagStatus(
            seconds=12,
            consumed_up_to=NOW,
            caught_up=True,
            retention_used_percent=0,
            slowest=tuple(
                SlowChannel(id=f"1c6f_{number}", type="Stream", worker="w", seconds=12) for number in range(10)
            ),
            observed_time=NOW,
        ),
        possible_gaps=tuple(
            PossibleGapStatus(channel=f"1c6f_{number}", start=NOW, end=NOW, found_by="Operator") for number in range(20)
        ),
        throughput=ThroughputStatus(rows_per_second=5300, rows_total=9_007_199_254_740_993),
        workers=tuple(
            WorkerStatus(name=f"w-{number}", client_id="c", channels=3, lag_seconds=9, busy_percent=61, ready=True)
            for number in range(100)
        ),
        snapshot=SnapshotStatus(
            application="flights-copy-snapshot",
            state="Completed",
            tunnel_id="t",
            started_time=NOW,
            finished_time=NOW,
            consistent=True,
        ),
        conditions=tuple(
            Condition(
                type=kind, status="Unknown", reason="NotObserved", observed_generation=7, last_transition_time=NOW
            )
            for kind in get_args(ConditionType)
        ),
    )
