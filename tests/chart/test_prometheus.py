"""The chart's monitors, alerts and dashboard in a real Prometheus, which scrapes pages of the real code."""

from __future__ import annotations

import asyncio
import json
import os
import re
import shutil
import threading
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from ots_tunnel.errors import ConnectError, ConnectionLost
from ots_tunnel.model import Action, ChannelId, ChannelStatus, ChannelType, TunnelId
from ots_tunnel.sinks.tally import Tally, TallyCollector
from ots_tunnel.worker.progress.channel_progress import ChannelProgress
from ots_tunnel.worker.status.channel_view import ChannelView
from ots_tunnel.worker.status.metrics import WorkerMetrics
from ots_tunnel.worker.status.server import StatusServer
from ots_tunnel.worker.status.worker_status import WorkerStatus
from ots_tunnel_operator import names
from ots_tunnel_operator.metrics import OperatorMetrics
from ots_tunnel_operator.server import Health, HealthServer
from tests.chart.conftest import CHART, Helm
from tests.chart.prometheus import Prometheus, Target, running
from tests.support.kube.api_server import cache
from tests.support.kube.monitoring_kinds import GROUP
from tests.support.lacking import lack
from tests.support.waiting import wait_until

# Helm and Prometheus are built together with the local cluster's programs
pytestmark = [pytest.mark.api, pytest.mark.xdist_group("prometheus"), pytest.mark.lasts(20)]

#: Alerts that look back for longer than a test may last, or at a pass that is five minutes old.
LATE = {"OtsTunnelNotReady", "OtsTunnelPassesLate"}
TROUBLE: Mapping[str, Any] = {
    "phase": "Failed",
    "readyReplicas": 1,
    "conditions": [
        {"type": "Ready", "status": "Unknown", "reason": "EndpointUnreachable"},
        {"type": "Progressing", "status": "True", "reason": "CreatingTunnel"},
        {"type": "Degraded", "status": "True", "reason": "LagHigh"},
        {"type": "Stalled", "status": "False", "reason": "AsExpected"},
    ],
    "lag": {"seconds": 1000, "retentionUsedPercent": 60},
    "channels": {"total": 9, "open": 3, "closing": 1, "terminated": 4, "unowned": 1},
    "base": {"percent": 100},
    "throughput": {"rowsPerSecond": 500},
    "autoscaling": {"recommendedReplicas": 4, "usefulMaxReplicas": 5},
    "snapshot": {"omittedCells": 7},
    "possibleGaps": [{"channel": "c", "accepted": False}],
}
WANTED = {"wanted_workers": 2, "catchup_ratio": 0.8, "lag_limit_seconds": 900, "retention_limit_percent": 50}


def condition(kind: str, reason: str) -> dict[str, Any]:
    """A status that consists of one condition that is True."""
    return {"conditions": [{"type": kind, "status": "True", "reason": reason}]}


@dataclass(frozen=True)
class Pages:
    """What operator and worker tell, and may tell next."""

    operator: OperatorMetrics
    worker: WorkerMetrics
    tally: list[int]

    def get_worse(self) -> None:
        """Move every counter, as many errors in a moment."""
        for _ in range(100):
            self.operator.failed("InternalError")
            self.operator.api_refused("PATCH", "403")
            self.operator.service_refused(ConnectError("no route"))
            self.worker.handed_over("taken")
        self.tally[0] += 1000


@contextmanager
def operator_page(metrics: OperatorMetrics) -> Iterator[int]:
    """Serve the page of an operator that stands by, with three objects; its port."""
    metrics.observed("shop", "copy", TROUBLE, WANTED)
    metrics.observed("shop", "stalled", condition("Stalled", "TunnelExpired"), WANTED)
    metrics.observed("shop", "degraded", condition("Degraded", "ForeignClient"), WANTED)
    metrics.doubted("shop", "doubted")
    metrics.acted("shop", "copy", "ApplyObject")
    with HealthServer(Health(metrics), "127.0.0.1", 0) as server:
        yield server.port


@contextmanager
def worker_page(metrics: WorkerMetrics, tally: list[int]) -> Iterator[int]:
    """Serve the page of a worker that reads a channel, in a thread; its port."""
    status = WorkerStatus(TunnelId("t"), "uid-pod", metrics)
    progress = ChannelProgress(ChannelId("s"), ChannelType.STREAM, rows=5, consumed_up_to=1_700_000_000.0)
    status.channels = {progress.channel_id: ChannelView(progress, ChannelStatus.OPEN)}
    metrics.registry.register(TallyCollector("orders", lambda: Tally(records_skipped=tally[0], write_retries=tally[0])))
    metrics.confirmed(ChannelType.STREAM, {Action.PUT: 1}, 10)
    metrics.checkpoint_stored(ChannelType.STREAM, 0.1)
    metrics.call_repeated("ReadRecords", ConnectionLost("reset"))
    metrics.decoded(ChannelType.STREAM, 0.001)
    with metrics.reading(ChannelType.STREAM), metrics.writing(ChannelType.STREAM):
        pass
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, name="worker", daemon=True)
    thread.start()
    server = StatusServer(status, "127.0.0.1", 0)
    try:
        asyncio.run_coroutine_threadsafe(server.__aenter__(), loop).result(10)
        yield int(server.url.rpartition(":")[2])
        asyncio.run_coroutine_threadsafe(server.__aexit__(None, None, None), loop).result(10)
    finally:
        loop.call_soon_threadsafe(loop.stop)
        thread.join(10)
        loop.close()


@pytest.fixture(scope="module")
def pages() -> Pages:
    """The pages before anything is scraped."""
    return Pages(OperatorMetrics(), WorkerMetrics("orders", "count"), [1])


@pytest.fixture(scope="module")
def prometheus(helm: Helm, pages: Pages, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Prometheus]:
    """A Prometheus with the chart's alerts that has scraped both pages, by the chart's monitors, more than once."""
    named = os.environ.get("PROMETHEUS") or shutil.which("prometheus")
    program = Path(named) if named else cache() / "bin" / "prometheus"
    if not os.access(program, os.X_OK):
        lack("kubernetes", "no prometheus in PROMETHEUS, on the PATH or in the cache (tests/cluster/build.sh makes it)")
    objects = {item["kind"]: item for item in helm.template(kinds=f"{GROUP}/v1")}
    labels = {names.LABEL_NAME: "copy"}
    with ExitStack() as stack:
        ports = (
            stack.enter_context(operator_page(pages.operator)),
            stack.enter_context(worker_page(pages.worker, pages.tally)),
        )
        addresses = [f"127.0.0.1:{port}" for port in ports]
        targets = [
            Target(addresses[0], objects["ServiceMonitor"], "ots", "operator", objects["Service"]["metadata"]["name"]),
            Target(addresses[1], objects["PodMonitor"], "shop", "copy-workers-1", labels=labels),
        ]
        rules, folder = objects["PrometheusRule"]["spec"], tmp_path_factory.mktemp("prometheus")
        yield stack.enter_context(running(program, folder, targets, rules))


def test_it_reads_both_pages(prometheus: Prometheus) -> None:
    good = {"operator": ("up", ""), "copy-workers-1": ("up", "")}

    wait_until(lambda: prometheus.targets() == good, 30, explain=lambda: str(prometheus.targets()))


def test_a_worker_is_named_by_its_object(prometheus: Prometheus) -> None:
    (found,) = wait_until(lambda: prometheus.ask("series", **{"match[]": "ots_tunnel_busy_ratio"}), 30)

    assert found | {"__name__": "", "instance": ""} == {
        "__name__": "",
        "instance": "",
        "job": "shop/copy-workers",
        "name": "copy",
        "namespace": "shop",
        "pod": "copy-workers-1",
        "tunnel": "orders",
    }


def test_every_alert_is_evaluated_and_comes_of_what_the_pages_tell(prometheus: Prometheus, pages: Pages) -> None:
    def raised() -> bool:
        pages.get_worse()
        rules = prometheus.rules()
        assert {name: rule["lastError"] for name, rule in rules.items() if rule.get("lastError")} == {}
        return {name for name, rule in rules.items() if rule["state"] in ("pending", "firing")} == set(rules) - LATE

    wait_until(
        raised,
        60,
        "every alert that may be raised at once",
        pause=0.5,
        explain=lambda: str({name: rule["state"] for name, rule in prometheus.rules().items()}),
    )
    rules = prometheus.rules()
    assert {rule["health"] for rule in rules.values()} == {"ok"}
    texts = [text for rule in rules.values() for alert in rule["alerts"] for text in alert["annotations"].values()]
    # what a template cannot fill in
    assert [
        text for text in texts if "<error" in text or "<no value>" in text or re.search(r"\bof /|/$| $", text)
    ] == []


def test_the_operator_that_is_scraped_is_the_one_that_the_chart_would_miss(prometheus: Prometheus) -> None:
    wait_until(lambda: prometheus.ask("series", **{"match[]": "ots_tunnel_operator_leader"}), 30)
    query = prometheus.rules()["OtsTunnelNoLeader"]["query"]
    (own,) = re.findall(r"absent\([^)]*\)", query)

    assert 'job="' in own
    assert prometheus.ask("query", query=own)["result"] == []
    assert prometheus.ask("query", query=own.replace('job="', 'job="another-'))["result"] != []


def test_every_alert_names_metrics_and_labels_that_the_pages_have(prometheus: Prometheus, pages: Pages) -> None:
    pages.get_worse()
    wait_until(lambda: prometheus.ask("series", **{"match[]": "ALERTS"}), 30)

    for rule in prometheus.rules().values():
        prometheus.labels(rule["query"])


def test_every_query_of_the_dashboard_is_answered(prometheus: Prometheus, pages: Pages) -> None:
    dashboard = json.loads((CHART / "files" / "dashboard.json").read_text())
    variables = {each["name"]: ".*" for each in dashboard["templating"]["list"]} | {"__rate_interval": "5m"}

    pages.get_worse()
    for panel in dashboard["panels"]:
        for target in panel.get("targets", ()):
            expression = re.sub(r"\$\{?(\w+)\}?", lambda found: variables[found[1]], target["expr"])
            prometheus.labels(expression)
            assert prometheus.ask("query", query=expression)["result"], f"{panel['title']} is empty: {expression}"


@pytest.mark.parametrize(
    ("expression", "problem"),
    [
        ("ots_tunnel_lag", "nobody serves ots_tunnel_lag"),
        ('ots_tunnel_condition{kind="Ready"}', "kind"),
        ("sum by (tunnel) (ots_tunnel_lag_seconds)", "tunnel"),
        ("ots_tunnel_lag_seconds and on (pod, tunnel) ots_tunnel_channels", "tunnel"),
    ],
)
def test_what_nobody_serves_is_noticed(prometheus: Prometheus, expression: str, problem: str) -> None:
    wait_until(lambda: prometheus.ask("series", **{"match[]": '{__name__=~"ots_tunnel_(lag_seconds|channels)"}'}), 30)

    with pytest.raises(AssertionError, match=problem):
        prometheus.labels(expression)
