"""For each alert, series with which it fires and series with which it just does not, in promtool's notation.

Each series has a sample a minute; `1x10` is the value 1 and ten more of it, `0+5x10` grows by 5 a minute.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

Series = Mapping[str, str]

OBJECT = 'namespace="shop", name="copy"'
OTHER_OBJECT = 'namespace="shop", name="other"'
PLACE = {"namespace": "shop", "name": "copy"}
#: Labels of the operator's process, and of a worker's metrics.
PROCESS = 'namespace="ots", job="operator"'
WORKER = f'{OBJECT}, tunnel="t"'


@dataclass(frozen=True)
class Case:
    """Series and result of one alert at one time."""

    fires: Series
    silent: Series
    at: str
    """Time of the look in both cases, such as `10m`."""
    labels: Mapping[str, str]
    """Labels of the alert, without its severity."""
    summary: str
    anchor: str = ""
    """Paragraph that the alert points to; empty means its own."""


def condition(kind: str, reason: str, *, pod: str = "a") -> str:
    return f'ots_tunnel_condition{{{OBJECT}, type="{kind}", reason="{reason}", pod="{pod}"}}'


def gauge(name: str, labels: str = OBJECT) -> str:
    return f"ots_tunnel_{name}{{{labels}}}"


CASES: Mapping[str, Case] = {
    "OtsTunnelStalled": Case(
        # the leader changes: the alert goes on
        {condition("Stalled", "TunnelExpired"): "1 1 _x3", condition("Stalled", "TunnelExpired", pod="b"): "_ _ 1x3"},
        {condition("Stalled", "AsExpected"): "0x5", condition("Degraded", "LagHigh"): "1x5"},
        "3m",
        PLACE | {"reason": "TunnelExpired"},
        "shop/copy waits for you: TunnelExpired",
        "tunnelexpired",
    ),
    "OtsTunnelDegraded": Case(
        {condition("Degraded", "ForeignClient"): "1x15", condition("Stalled", "AsExpected"): "0x15"},
        # what waits for a person has its own alert
        {condition("Degraded", "TunnelExpired"): "1x15", condition("Stalled", "TunnelExpired"): "1x15"},
        "11m",
        PLACE | {"reason": "ForeignClient"},
        "shop/copy does not work as promised: ForeignClient",
        "foreignclient",
    ),
    "OtsTunnelUnknown": Case(
        {condition("Ready", "EndpointUnreachable"): "-1x15"},
        {condition("Ready", "EndpointUnreachable"): "-1x8 1x7"},
        "11m",
        PLACE | {"reason": "EndpointUnreachable"},
        "shop/copy cannot be observed: EndpointUnreachable",
        "endpointunreachable",
    ),
    "OtsTunnelNotSettling": Case(
        {condition("Progressing", "CreatingTunnel"): "1x40"},
        {condition("Progressing", "SnapshotRunning"): "1x40"},
        "31m",
        PLACE | {"reason": "CreatingTunnel"},
        "shop/copy has been on its way for half an hour: CreatingTunnel",
        "creatingtunnel",
    ),
    "OtsTunnelNotReady": Case(
        # two causes take turns, so that no other alert fires
        {
            condition("Ready", "EndpointUnreachable"): " ".join(["-1 -1 -1 -1 stale _ _ _"] * 10),
            condition("Ready", "ServiceUnavailable"): " ".join(["_ _ _ _ -1 -1 -1 stale"] * 10),
        },
        {
            condition("Ready", "EndpointUnreachable"): " ".join(["-1 -1 -1 -1 stale _ _ _"] * 10),
            condition("Ready", "Consuming"): " ".join(["_ _ _ _ 1 1 1 stale"] * 10),
        },
        "70m",
        PLACE,
        "shop/copy has not been Ready for half an hour",
    ),
    "OtsTunnelLagHigh": Case(
        {gauge("lag_seconds"): "901x10", gauge("lag_limit_seconds"): "900x10"},
        {gauge("lag_seconds"): "900x10", gauge("lag_limit_seconds"): "900x10"},
        "6m",
        PLACE,
        "shop/copy is at least 15m 1s behind",
    ),
    "OtsTunnelRetentionAtRisk": Case(
        {gauge("retention_used_percent"): "50x10", gauge("retention_limit_percent"): "50x10"},
        {gauge("retention_used_percent"): "49x10", gauge("retention_limit_percent"): "50x10"},
        "6m",
        PLACE,
        "shop/copy uses, or will use, at least 50 % of the stream's retention",
    ),
    "OtsTunnelPossibleGap": Case(
        {gauge("unaccepted_gaps"): "0 1"},
        {gauge("unaccepted_gaps"): "0 0"},
        "1m",
        PLACE,
        "shop/copy may miss changes",
    ),
    "OtsTunnelUnserved": Case(
        {
            gauge("claim_unreadable"): "1x15",
            f'ots_tunnel_condition{{{OTHER_OBJECT}, type="Ready", reason="Consuming"}}': "1x15",
        },
        # the operator that it names is scraped as well
        {gauge("claim_unreadable"): "1x15", condition("Ready", "LagHigh", pod="b"): "0x15"},
        "11m",
        PLACE,
        "perhaps no operator serves shop/copy",
    ),
    "OtsTunnelChannelsUnowned": Case(
        {gauge("unowned_channels"): "2x15", gauge("wanted_workers"): "3x15"},
        # a suspended object reads nothing on purpose
        {gauge("unowned_channels"): "2x15", gauge("wanted_workers"): "0x15"},
        "11m",
        PLACE,
        "2 channels of shop/copy have no worker",
    ),
    "OtsTunnelWorkersMissing": Case(
        {gauge("ready_workers"): "1x20", gauge("wanted_workers"): "3x20"},
        {gauge("ready_workers"): "1x10 3x10", gauge("wanted_workers"): "3x20"},
        "16m",
        PLACE,
        "only 1 workers of shop/copy are ready",
    ),
    "OtsTunnelRecordsRefused": Case(
        {gauge("refused_records_total", f'{WORKER}, policy="skip"'): "0x18 1x5"},
        {gauge("refused_records_total", f'{WORKER}, policy="skip"'): "7x23"},
        "20m",
        PLACE | {"tunnel": "t", "policy": "skip"},
        "the sink of shop/copy refuses records (skip)",
    ),
    "OtsTunnelWritesRetried": Case(
        {gauge("sink_retries_total", f'{WORKER}, pod="{pod}"'): "0+60x20" for pod in "ab"},
        {gauge("sink_retries_total", f'{WORKER}, pod="{pod}"'): "0+30x20" for pod in "ab"},
        "16m",
        PLACE | {"tunnel": "t"},
        "shop/copy repeats 2 writes a second",
    ),
    "OtsTunnelHandOvers": Case(
        {
            gauge("rebalances_total", f'{WORKER}, direction="taken"'): "0+1x60",
            gauge("channels", f'{WORKER}, state="OPEN"'): "4x60",
        },
        # more channels: each has moved less often
        {
            gauge("rebalances_total", f'{WORKER}, direction="taken"'): "0+1x60",
            gauge("channels", f'{WORKER}, state="OPEN"'): "6x60",
        },
        "50m",
        PLACE | {"tunnel": "t"},
        "channels of shop/copy keep moving between workers",
    ),
    "OtsTunnelNoLeader": Case(
        {gauge("operator_leader", f'{PROCESS}, pod="{pod}"'): "0x10" for pod in "ab"},
        {
            gauge("operator_leader", f'{PROCESS}, pod="a"'): "0x10",
            gauge("operator_leader", f'{PROCESS}, pod="b"'): "1x10",
        },
        "6m",
        {"namespace": "ots", "job": "operator"},
        "no operator of TablestoreTunnel objects works",
    ),
    "OtsTunnelOperatorErrors": Case(
        {gauge("operator_reconcile_errors_total", f'{PROCESS}, reason="InternalError"'): "0+1x10"},
        # a problem of one object shows there
        {gauge("operator_reconcile_errors_total", f'{PROCESS}, reason="AuthFailed"'): "0+9x10"},
        "10m",
        {"reason": "InternalError"},
        "passes of the operator fail: InternalError",
        "internalerror",
    ),
    "OtsTunnelPassesLate": Case(
        {gauge("operator_oldest_pass_seconds", PROCESS): "320+60x10"},
        {gauge("operator_oldest_pass_seconds", PROCESS): "0+60x5 10x5"},
        "6m",
        {"namespace": "ots", "job": "operator"},
        "an object has not been looked at for 11m 20s",
    ),
    "OtsTunnelApiServerErrors": Case(
        {gauge("operator_api_errors_total", f'{PROCESS}, method="PATCH", code="403"'): "0+12x30"},
        {gauge("operator_api_errors_total", f'{PROCESS}, method="PATCH", code="409"'): "0+60x30"},
        "25m",
        {"method": "PATCH", "code": "403"},
        "the API server refuses PATCH calls of the operator with 403",
    ),
    "OtsTunnelServiceErrors": Case(
        {gauge("operator_service_errors_total", f'{PROCESS}, code="OTSAuthFailed"'): "0+12x30"},
        {gauge("operator_service_errors_total", f'{PROCESS}, code="OTSAuthFailed"'): "0+4x30"},
        "25m",
        {"code": "OTSAuthFailed"},
        "Tablestore refuses calls of the operator with OTSAuthFailed",
    ),
}
