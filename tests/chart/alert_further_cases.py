"""Further series for alerts that have more than one cause, as in `alert_cases`."""

from __future__ import annotations

from collections.abc import Sequence

from tests.chart.alert_cases import PLACE, PROCESS, WORKER, Case, condition, gauge

#: The process of another release.
OTHER = 'namespace="elsewhere", job="other"'


FURTHER: Sequence[tuple[str, Case]] = (
    (
        # the lag is unknown, because one channel was never consumed, and another one is known to be late
        "OtsTunnelLagHigh",
        Case(
            {condition("Degraded", "LagHigh"): "1x10", gauge("lag_limit_seconds"): "900x10"},
            {condition("Degraded", "LagHigh"): "1x4 0x6", gauge("lag_limit_seconds"): "900x10"},
            "6m",
            PLACE,
            "shop/copy is at least 15m 0s behind",
        ),
    ),
    (
        # after an upgrade many objects wait for their turn, and work on; one that rolls for so long is told
        "OtsTunnelNotSettling",
        Case(
            {condition("Progressing", "RollingWorkers"): "1x40"},
            {condition("Progressing", "RolloutWaiting"): "1x40"},
            "31m",
            PLACE | {"reason": "RollingWorkers"},
            "shop/copy has been on its way for half an hour: RollingWorkers",
            "rollingworkers",
        ),
    ),
    (
        # it was resumed a moment ago; and one that waits for a person has its own alert
        "OtsTunnelNotReady",
        Case(
            {condition("Ready", "RollingWorkers"): "0x50", condition("Progressing", "AsExpected"): "0x50"},
            {
                condition("Ready", "SuspendRequested"): "0x45 stale",
                condition("Ready", "StartingWorkers"): "_x46 0x10",
                'ots_tunnel_condition{namespace="shop", name="late", type="Ready", reason="TunnelExpired"}': "0x60",
                'ots_tunnel_condition{namespace="shop", name="late", type="Stalled", reason="TunnelExpired"}': "1x60",
            },
            "50m",
            PLACE,
            "shop/copy has not been Ready for half an hour",
        ),
    ),
    (
        # the share used is unknown for the same cause
        "OtsTunnelRetentionAtRisk",
        Case(
            {condition("Degraded", "RetentionAtRisk"): "1x10", gauge("retention_limit_percent"): "50x10"},
            {condition("Degraded", "LagHigh"): "1x10", gauge("retention_limit_percent"): "50x10"},
            "6m",
            PLACE,
            "shop/copy uses, or will use, at least 50 % of the stream's retention",
        ),
    ),
    (
        # existing rows are being copied: by the forecast changes will be lost before the copy ends
        "OtsTunnelRetentionAtRisk",
        Case(
            {
                condition("Degraded", "RetentionAtRisk"): "1x10",
                gauge("retention_used_percent"): "9x10",
                gauge("retention_limit_percent"): "50x10",
            },
            {
                condition("Degraded", "AsExpected"): "0x10",
                gauge("retention_used_percent"): "9x10",
                gauge("retention_limit_percent"): "50x10",
            },
            "6m",
            PLACE,
            "shop/copy uses, or will use, at least 50 % of the stream's retention",
        ),
    ),
    (
        # it crashes again and again: up for two minutes of six
        "OtsTunnelNoLeader",
        Case(
            {gauge("operator_leader", f'{PROCESS}, pod="a"'): " ".join(["1 1 stale _ _ _"] * 8)},
            # an upgrade takes four minutes, and a new release has led for three minutes
            {
                gauge("operator_leader", f'{PROCESS}, pod="a"'): "1x32 stale",
                gauge("operator_leader", f'{PROCESS}, pod="b"'): "_x37 1x10",
                gauge("operator_leader", f'{OTHER}, pod="a"'): "_x37 1x10",
            },
            "40m",
            {"namespace": "ots", "job": "operator"},
            "no operator of TablestoreTunnel objects works",
        ),
    ),
    (
        # a watch is tried every ten seconds, and each try takes its own time
        "OtsTunnelApiServerErrors",
        Case(
            {gauge("operator_api_errors_total", f'{PROCESS}, method="WATCH", code="403"'): "0+5.9x30"},
            {gauge("operator_api_errors_total", f'{PROCESS}, method="WATCH", code="403"'): "0+2x30"},
            "25m",
            {"method": "WATCH", "code": "403"},
            "the API server refuses WATCH calls of the operator with 403",
        ),
    ),
    (
        # a new worker has refused records before it was first scraped
        "OtsTunnelRecordsRefused",
        Case(
            {gauge("refused_records_total", f'{WORKER}, policy="skip", pod="a"'): "_x15 10000x10"},
            # an old one was not scraped for a while
            {gauge("refused_records_total", f'{WORKER}, policy="skip", pod="a"'): "7x3 _x20 7x2"},
            "25m",
            PLACE | {"tunnel": "t", "policy": "skip"},
            "the sink of shop/copy refuses records (skip)",
        ),
    ),
)
