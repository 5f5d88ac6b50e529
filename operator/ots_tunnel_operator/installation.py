"""Whether an installation works: what `helm test` runs in a Job of the chart. Nothing is stored.

A definition of another release, or a cluster that does not carry out its CEL rules, would show only with the first
object; so an object is sent that has to be accepted, and one that has to be refused, both as server-side dry runs.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

import aiohttp

from ots_tunnel_operator import API_VERSION, GROUP, KIND, PLURAL
from ots_tunnel_operator.kube.client import Kube
from ots_tunnel_operator.kube.errors import KubeError
from ots_tunnel_operator.kube.kinds import TUNNEL, Kind, Manifest

#: Seconds that the operator may take to answer.
ANSWER_SECONDS = 10.0

_DEFINITION: Final = Kind("apiextensions.k8s.io/v1", "CustomResourceDefinition", "customresourcedefinitions")
_CREDENTIALS: Final[Mapping[str, Any]] = {"secretRef": {"name": "check"}}
_SOURCE: Final[Mapping[str, Any]] = {
    "endpoint": "https://check.example",
    "instance": "check",
    "table": "check",
    "credentials": _CREDENTIALS,
    "tunnel": {"name": "check", "type": "Stream"},
}
_REFUSED_SINK: Final[Mapping[str, Any]] = {"stdout": {}, "http": {"url": "https://check.example"}}


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that was looked at, and what is wrong with it with what to do; empty where nothing is."""

    what: str
    wrong: str = ""

    def __str__(self) -> str:
        return f"FAILED  {self.what}: {self.wrong}" if self.wrong else f"ok      {self.what}"


async def check_installation(kube: Kube, namespace: str, url: str = "") -> list[Finding]:
    """Look at definition, admission and operator.

    Args:
        kube: the API server, by an account that may create objects in the namespace.
        namespace: where the dry runs are made.
        url: address of the operator's probes and metrics; empty leaves them out.
    """
    found = [
        Finding("the definition is established", await _definition(kube)),
        Finding("an object is accepted", await _accepts(kube, _sample(namespace, {"stdout": {}}))),
        Finding("an object with two sinks is refused", await _refuses(kube, _sample(namespace, _REFUSED_SINK))),
    ]
    for path in _PATHS if url else ():
        found.append(Finding(f"the operator answers {path}", await _answers(url + path)))
    return found


_PATHS: Final = ("/readyz", "/livez", "/metrics")


async def _definition(kube: Kube) -> str:
    try:
        found = await kube.get(_DEFINITION, "", f"{PLURAL}.{GROUP}")
    except KubeError as error:
        return str(error)
    if found is None:
        return "it does not exist: install it with crds.enabled=true, or apply crds/ of this release"
    conditions = (found.get("status") or {}).get("conditions") or ()
    standing: Mapping[str, str] = next((item for item in conditions if item.get("type") == "Established"), {})
    if standing.get("status") == "True":
        return ""
    return f"Established is {standing.get('status', 'absent')}: {standing.get('message', 'no message')}"


async def _accepts(kube: Kube, manifest: Manifest) -> str:
    try:
        await kube.create(TUNNEL, manifest, dry_run=True)
    except KubeError as error:
        return f"{error}: apply the definition of this release"
    return ""


async def _refuses(kube: Kube, manifest: Manifest) -> str:
    try:
        await kube.create(TUNNEL, manifest, dry_run=True)
    except KubeError as error:
        return "" if error.status == 422 else str(error)
    return "it was accepted: apply the definition of this release, whose rules need Kubernetes 1.29 or later"


async def _answers(url: str) -> str:
    timeout = aiohttp.ClientTimeout(total=ANSWER_SECONDS)
    try:
        async with aiohttp.ClientSession(timeout=timeout) as session, session.get(url) as answer:
            text = await answer.text()
    except (aiohttp.ClientError, TimeoutError) as error:
        return f"{url}: {error or type(error).__name__}: look at the operator's pods, and at network policies"
    return "" if answer.status == 200 else f"{url}: HTTP {answer.status}: {text[:200]}"


def _sample(namespace: str, sink: Mapping[str, Any]) -> Manifest:
    metadata = {"name": "ots-tunnel-check", "namespace": namespace}
    return {"apiVersion": API_VERSION, "kind": KIND, "metadata": metadata, "spec": {"source": _SOURCE, "sink": sink}}
