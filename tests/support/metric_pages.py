"""Every metric that worker and operator serve, with kind and labels.

Both lists are compared with pages that were scraped over HTTP; what names metrics, such as alerts and dashboards, is
checked against them.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from prometheus_client import Metric

#: Metric -> its kind, and its labels.
Page = Mapping[str, tuple[str, set[str]]]

#: What a worker serves; every metric has the label `tunnel` as well.
WORKER: Page = {
    "ots_tunnel_build_info": ("gauge", {"version"}),
    "ots_tunnel_records": ("counter", {"channel_type", "action"}),
    "ots_tunnel_bytes": ("counter", {"channel_type"}),
    "ots_tunnel_read_seconds": ("histogram", {"channel_type", "le"}),
    "ots_tunnel_decode_seconds": ("histogram", {"channel_type", "le"}),
    "ots_tunnel_sink_seconds": ("histogram", {"channel_type", "sink", "le"}),
    "ots_tunnel_checkpoint_seconds": ("histogram", {"channel_type", "le"}),
    "ots_tunnel_checkpoint_age_seconds": ("gauge", {"channel_type", "channel"}),
    "ots_tunnel_channel_lag_seconds": ("gauge", {"channel_type", "channel"}),
    "ots_tunnel_caught_up": ("gauge", {"channel_type", "channel"}),
    "ots_tunnel_channels": ("gauge", {"state"}),
    "ots_tunnel_inflight_bytes": ("gauge", set()),
    "ots_tunnel_busy_ratio": ("gauge", set()),
    "ots_tunnel_rebalances": ("counter", {"direction"}),
    "ots_tunnel_possible_gaps": ("counter", set()),
    "ots_tunnel_retries": ("counter", {"operation", "code"}),
    "ots_tunnel_omitted_records": ("counter", {"reason"}),
    "ots_tunnel_omitted_cells": ("counter", {"reason"}),
    "ots_tunnel_refused_records": ("counter", {"policy"}),
    "ots_tunnel_sink_retries": ("counter", set()),
}

_OBJECT = {"namespace", "name"}

#: What the operator serves.
OPERATOR: Page = {
    "ots_tunnel_operator_build_info": ("gauge", {"version"}),
    "ots_tunnel_operator_leader": ("gauge", set()),
    "ots_tunnel_operator_oldest_pass_seconds": ("gauge", set()),
    "ots_tunnel_operator_reconcile_seconds": ("histogram", {"le"}),
    "ots_tunnel_operator_reconcile_errors": ("counter", {"reason"}),
    "ots_tunnel_operator_status_writes": ("counter", set()),
    "ots_tunnel_operator_api_errors": ("counter", {"method", "code"}),
    "ots_tunnel_operator_service_errors": ("counter", {"code"}),
    "ots_tunnel_condition": ("gauge", _OBJECT | {"type", "reason"}),
    "ots_tunnel_phase": ("gauge", _OBJECT | {"phase"}),
    "ots_tunnel_claim_unreadable": ("gauge", _OBJECT),
    "ots_tunnel_lag_seconds": ("gauge", _OBJECT),
    "ots_tunnel_lag_limit_seconds": ("gauge", _OBJECT),
    "ots_tunnel_retention_used_percent": ("gauge", _OBJECT),
    "ots_tunnel_retention_limit_percent": ("gauge", _OBJECT),
    "ots_tunnel_total_channels": ("gauge", _OBJECT),
    "ots_tunnel_open_channels": ("gauge", _OBJECT),
    "ots_tunnel_closing_channels": ("gauge", _OBJECT),
    "ots_tunnel_terminated_channels": ("gauge", _OBJECT),
    "ots_tunnel_unowned_channels": ("gauge", _OBJECT),
    "ots_tunnel_base_percent": ("gauge", _OBJECT),
    "ots_tunnel_rows_per_second": ("gauge", _OBJECT),
    "ots_tunnel_ready_workers": ("gauge", _OBJECT),
    "ots_tunnel_recommended_workers": ("gauge", _OBJECT),
    "ots_tunnel_useful_workers": ("gauge", _OBJECT),
    "ots_tunnel_catchup_ratio": ("gauge", _OBJECT),
    "ots_tunnel_wanted_workers": ("gauge", _OBJECT),
    "ots_tunnel_unaccepted_gaps": ("gauge", _OBJECT),
    "ots_tunnel_snapshot_omitted_cells": ("gauge", _OBJECT),
    "ots_tunnel_actions": ("counter", _OBJECT | {"action"}),
}


def labelled(families: Iterable[Metric]) -> dict[str, tuple[str, set[str]]]:
    """Kind and labels of each metric of a page, in the form of the lists above."""
    return {
        family.name: (family.type, {label for sample in family.samples for label in sample.labels})
        for family in families
        if not family.name.endswith("_created")
    }


#: Labels that Prometheus adds: of the target, by the relabeling of the chart's PodMonitor, and of its own ALERTS.
_ADDED = {"namespace", "name", "job", "pod"} | {"alertname", "alertstate"}
_SUFFIXES = {"counter": ("_total",), "histogram": ("_bucket", "_count", "_sum"), "gauge": ("",)}
_LABELS = re.compile(r"""\b(?:by|on)\s*\(([^)]*)\)|([a-z_]+)\s*(?:=~|!~|!=|=)\s*\"""")


def unknown_names(expression: str) -> list[str]:
    """Metrics and labels of an expression of Prometheus that no page has.

    A label counts as known where any metric of the expression has it.
    """
    served: dict[str, set[str]] = {}
    for page, added in ((WORKER, {"tunnel"}), (OPERATOR, set[str]())):
        for metric, (kind, labels) in page.items():
            served |= {metric + suffix: labels | added | _ADDED for suffix in _SUFFIXES[kind]}
    named = set(re.findall(r"ots_tunnel_\w+", expression))
    labels = set[str]().union(*(served.get(metric, set()) for metric in named))
    used = {
        label.strip()
        for grouped, selected in _LABELS.findall(expression)
        for label in (grouped.split(",") if grouped else [selected])
    }
    return sorted(named - served.keys()) + sorted(used - labels - {""})
