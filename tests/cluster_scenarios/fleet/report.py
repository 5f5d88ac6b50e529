"""What a person needs to see when a step has failed: objects, pods, events, the ends of the logs, tunnels."""

from __future__ import annotations

from tests.demo.kube import DemoError, Kube
from tests.demo.scenario import Scenario

#: Last lines of each container's log.
TAIL = "25"


def report(kube: Kube, scenario: Scenario) -> str:
    """Return the state of both namespaces as text; a command that fails is shown with its error."""
    home, own = ("-n", scenario.operator_namespace), ("-n", scenario.namespace)
    recent = ("get", "events", "--sort-by=.lastTimestamp", "--no-headers")
    workers = ("logs", "-l", "ots-tunnel.dev/role=worker", "--prefix", f"--tail={TAIL}")
    operator = ("logs", "-l", f"app.kubernetes.io/instance={_RELEASE}", "--prefix", f"--tail={TAIL}")
    parts = [
        _shown(kube, *own, "get", "ott", "-o", "wide"),
        _shown(kube, *own, "get", "ott", "-o", "yaml"),
        _shown(kube, *own, "get", "deployment,pod", "-o", "wide"),
        _shown(kube, *home, "get", "pod", "-o", "wide"),
        _shown(kube, *own, *recent, last=40),
        _shown(kube, *own, *workers),
        _shown(kube, *home, *operator),
    ]
    return "\n".join(parts)


def _shown(kube: Kube, *words: str, last: int | None = None) -> str:
    try:
        text = kube.kubectl(*words, timeout=30)
    except DemoError as error:
        text = str(error)
    lines = text.splitlines()
    return "\n".join([f"$ kubectl {' '.join(words)}", *(lines if last is None else lines[-last:])])


_RELEASE = "ots-tunnel-operator"
