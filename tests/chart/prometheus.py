"""A real Prometheus on loopback: what it scrapes, the rules that it evaluates, and its answers."""

from __future__ import annotations

import json
import re
import subprocess
import threading
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from tests.support.programs.processes import ENDING
from tests.support.waiting import wait_until

#: Seconds between two scrapes, and between two evaluations.
INTERVAL = "1s"
#: Where it says on which port it listens.
_LISTENS = re.compile(r'msg="Listening on".* address=127\.0\.0\.1:(\d+)')


@dataclass(frozen=True)
class Target:
    """A pod as Kubernetes describes it to Prometheus."""

    address: str
    """Host and port of its page."""
    monitor: Mapping[str, Any]
    """ServiceMonitor or PodMonitor that selects it."""
    namespace: str
    pod: str
    service: str = ""
    labels: Mapping[str, str] | None = None
    """Labels of the pod."""


def scraping(target: Target) -> dict[str, Any]:
    """The scrape configuration that the Prometheus operator makes of a monitor, with one pod instead of a discovery."""
    spec = target.monitor["spec"]
    (endpoint,) = spec.get("endpoints") or spec["podMetricsEndpoints"]
    known = {"namespace": target.namespace, "pod_name": target.pod, "service_name": target.service}
    known |= {f"pod_label_{re.sub('[^a-z0-9]', '_', name)}": value for name, value in (target.labels or {}).items()}
    metadata = target.monitor["metadata"]
    job = (
        {"source_labels": ["__meta_kubernetes_service_name"], "target_label": "job"}
        if target.service
        else {"target_label": "job", "replacement": f"{metadata['namespace']}/{metadata['name']}"}
    )
    return {
        "job_name": f"{target.monitor['kind']}/{target.pod}",
        "metrics_path": endpoint["path"],
        "honor_labels": endpoint.get("honorLabels", False),
        "static_configs": [
            {
                "targets": [target.address],
                "labels": {f"__meta_kubernetes_{name}": value for name, value in known.items()},
            }
        ],
        "relabel_configs": [
            {"source_labels": ["__meta_kubernetes_namespace"], "target_label": "namespace"},
            {"source_labels": ["__meta_kubernetes_pod_name"], "target_label": "pod"},
            job,
            *(_as_prometheus_writes_it(each) for each in endpoint.get("relabelings", ())),
        ],
    }


def _as_prometheus_writes_it(relabeling: Mapping[str, Any]) -> dict[str, Any]:
    return {re.sub("[A-Z]", lambda found: f"_{found[0].lower()}", key): value for key, value in relabeling.items()}


class Prometheus:
    """A Prometheus that answers; errors are those of its HTTP API."""

    def __init__(self, port: int) -> None:
        self._port = port

    def ask(self, path: str, **parameters: str) -> Any:
        """The data of an answer of its API."""
        query = urllib.parse.urlencode(parameters)
        with urllib.request.urlopen(f"http://127.0.0.1:{self._port}/api/v1/{path}?{query}", timeout=30) as answer:
            found = json.load(answer)
        assert found["status"] == "success", found
        return found["data"]

    def is_ready(self) -> bool:
        """Whether it has read its data, and answers queries."""
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self._port}/-/ready", timeout=30) as answer:
                return bool(answer.status == 200)
        except urllib.error.HTTPError:
            return False

    def targets(self) -> dict[str, tuple[str, str]]:
        """What became of the last scrape of each pod: `up`, `down` or `unknown`, and the error."""
        found = self.ask("targets", state="active")["activeTargets"]
        return {each["labels"]["pod"]: (each["health"], each["lastError"]) for each in found}

    def rules(self) -> dict[str, dict[str, Any]]:
        """Each alert with its state and its last evaluation."""
        groups = self.ask("rules", type="alert")["groups"]
        return {rule["name"]: rule for group in groups for rule in group["rules"]}

    def labels(self, expression: str) -> set[str]:
        """The labels of what an expression gives.

        Raises:
            AssertionError: it selects what nobody serves, or names a label that its operand does not have.
        """
        return self._labels(self.ask("parse_query", query=expression))

    def _labels(self, node: Mapping[str, Any]) -> set[str]:
        match node["type"]:
            case "vectorSelector" | "matrixSelector":
                return self._selected(node)
            case "aggregation":
                inner, kept = self._labels(node["expr"]), set(node["grouping"])
                assert kept <= inner, f"{sorted(kept - inner)} is not a label of what is aggregated: {sorted(inner)}"
                return kept
            case "binaryExpr":
                return self._joined(node)
            case "call":
                found = [self._labels(each) for each in node["args"]]
                return set() if node["func"]["name"] == "absent" else set().union(*found)
            case "numberLiteral" | "stringLiteral":
                return set()
        return self._labels(node["expr"])

    def _joined(self, node: Mapping[str, Any]) -> set[str]:
        left, right = self._labels(node["lhs"]), self._labels(node["rhs"])
        by = set((node["matching"] or {}).get("labels") or ())
        for side in (left, right):
            assert by <= side, f"{sorted(by - side)} is not a label on each side: {sorted(side)}"
        return left & right if node["op"] == "or" else left or right

    def _selected(self, node: Mapping[str, Any]) -> set[str]:
        """Labels that every series of a metric has; of alerts, which have those of their expressions, any one."""
        series: Sequence[Mapping[str, str]] = self.ask("series", **{"match[]": node["name"]})
        assert series, f"nobody serves {node['name']}"
        found = [set(each) - {"__name__"} for each in series]
        labels = set.union(*found) if node["name"] == "ALERTS" else set.intersection(*found)
        used = {each["name"] for each in node["matchers"]} - {"__name__"}
        assert used <= labels, f"{sorted(used - labels)} is not a label of {node['name']}: {sorted(labels)}"
        return labels


@contextmanager
def running(program: Path, folder: Path, targets: Sequence[Target], rules: Mapping[str, Any]) -> Iterator[Prometheus]:
    """Start Prometheus on a free port of loopback; it ends with the block.

    Args:
        program: the executable.
        folder: of its configuration and its data.
        targets: what it scrapes.
        rules: the spec of a PrometheusRule.
    """
    (folder / "rules.yaml").write_text(yaml.safe_dump(rules))
    configuration = {
        "global": {"scrape_interval": INTERVAL, "evaluation_interval": INTERVAL},
        "rule_files": ["rules.yaml"],
        "scrape_configs": [scraping(target) for target in targets],
    }
    (folder / "prometheus.yml").write_text(yaml.safe_dump(configuration))
    options = (f"--config.file={folder}/prometheus.yml", f"--storage.tsdb.path={folder}/data")
    command = (str(program), *options, "--web.listen-address=127.0.0.1:0")
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        lines: list[str] = []
        reading = threading.Thread(target=_keep, args=(process, lines), daemon=True)
        reading.start()

        def port() -> int:
            assert process.poll() is None, "".join(lines)
            return next((int(found[1]) for line in lines if (found := _LISTENS.search(line))), 0)

        try:
            found = Prometheus(wait_until(port, 60, "the port of Prometheus", explain=lambda: "".join(lines)))
            wait_until(found.is_ready, 60, "Prometheus is ready", explain=lambda: "".join(lines))
            yield found
        finally:
            process.terminate()
            process.wait(ENDING)
            reading.join(ENDING)


def _keep(process: subprocess.Popen[str], lines: list[str]) -> None:
    assert process.stderr is not None
    for line in process.stderr:
        lines.append(line)
