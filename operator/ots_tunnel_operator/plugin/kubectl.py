"""Calls of `kubectl`: the only input and output to the cluster.

The program itself is run, not its API, so that every way to log in that it knows works, proxies and contexts included.
"""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

from ots_tunnel_operator import GROUP, PLURAL, names
from ots_tunnel_operator.plugin.ott import Ott
from ots_tunnel_operator.plugin.report import Report, report_of
from ots_tunnel_operator.plugin.serving import Serving
from ots_tunnel_operator.times import parse_time

#: The kind as kubectl's argument; its short name could be another one's as well.
RESOURCE = f"{PLURAL}.{GROUP}"
#: Seconds after which a call that does not end is given up.
CALL_SECONDS = 60.0
#: Seconds that a worker has to answer through the API server.
REPORT_SECONDS = 5
#: Workers that are asked at once.
ASKED_AT_ONCE = 8
#: Field manager of edits.
MANAGER = "kubectl-ott"


class KubectlFailed(Exception):
    """kubectl refused, or could not be run; the text is its own message."""

    def __init__(self, message: str, *, is_absent: bool = False) -> None:
        super().__init__(message)
        #: Whether the API server says that the object does not exist.
        self.is_absent = is_absent


@dataclass(frozen=True, slots=True)
class Kubectl:
    """A place to call.

    Args:
        flags: kubectl's own flags of every call, such as `--context`.
        namespace: empty leaves it to kubectl's context.
    """

    flags: tuple[str, ...] = ()
    namespace: str = ""

    def objects(self, *, everywhere: bool = False, selector: str = "") -> list[Ott]:
        """The objects of the namespace, or of all; in the order of namespace and name.

        Raises:
            KubectlFailed: kubectl refused.
        """
        options = [*(["--all-namespaces"] if everywhere else []), *(["--selector", selector] if selector else [])]
        items = self._json("get", RESOURCE, *options)["items"]
        return sorted((Ott(item) for item in items), key=lambda ott: (ott.namespace, ott.name))

    def object(self, name: str) -> Ott:
        """One object; errors as of `objects`."""
        return Ott(self._json("get", RESOURCE, name))

    def deployment(self, ott: Ott) -> Mapping[str, Any] | None:
        """The Deployment of the object's name; None where there is none. Errors as of `objects`."""
        try:
            return self._json("get", "deployments.apps", names.deployment_name(ott.name), namespace=ott.namespace)
        except KubectlFailed as error:
            if error.is_absent:
                return None
            raise

    def events(self, ott: Ott) -> list[Mapping[str, Any]]:
        """The events of this object, not of a predecessor of its name. Errors as of `objects`."""
        selector = f"involvedObject.uid={ott.uid}"
        return list(self._json("get", "events", "--field-selector", selector, namespace=ott.namespace)["items"])

    def namespace_events(self, ott: Ott) -> list[Mapping[str, Any]]:
        """Every event of the object's namespace: those of its children have no label. Errors as of `objects`."""
        return list(self._json("get", "events", namespace=ott.namespace)["items"])

    def serving(self, ott: Ott) -> Serving | None:
        """The Lease of the operator that serves the object; None where it names none."""
        if ott.lease is None:
            return None
        namespace, name = ott.lease
        try:
            spec = self._json("get", "leases.coordination.k8s.io", name, namespace=namespace).get("spec") or {}
        except KubectlFailed as error:
            failure = "" if error.is_absent else str(error)
            return Serving(f"{namespace}/{name}", failure=failure)
        renewed = parse_time(spec.get("renewTime"))
        return Serving(f"{namespace}/{name}", str(spec.get("holderIdentity") or ""), renewed)

    def servings(self, objects: Sequence[Ott]) -> list[Serving]:
        """The Leases of the operators that serve these objects, each once."""
        first = {ott.lease: ott for ott in objects if ott.lease is not None}
        return [found for ott in first.values() if (found := self.serving(ott)) is not None]

    def reports(self, ott: Ott) -> list[Report]:
        """What each worker tells, by name of the pod. Errors as of `objects`; a worker without an answer is none."""
        selector = ",".join(f"{key}={value}" for key, value in names.worker_selector(ott.name).items())
        pods = self._json("get", "pods", "--selector", selector, namespace=ott.namespace)["items"]
        pods = sorted((pod for pod in pods if _is_alive(pod)), key=lambda pod: str(pod["metadata"]["name"]))
        with ThreadPoolExecutor(ASKED_AT_ONCE) as threads:
            return list(threads.map(lambda pod: self._report(ott, pod), pods))

    def patch(self, resource: str, name: str, namespace: str, patch: Mapping[str, Any]) -> None:
        """Send a merge patch. Errors as of `objects`."""
        options = ("--type=merge", f"--field-manager={MANAGER}", "-p", json.dumps(patch))
        self._run("patch", resource, name, *options, namespace=namespace)

    def wait(self, ott: Ott, condition: str, seconds: int) -> None:
        """Wait until a condition of the object is True. Raises KubectlFailed where it is not in time."""
        options = (f"--for=condition={condition}", f"--timeout={seconds}s")
        self._run("wait", f"{RESOURCE}/{ott.name}", *options, namespace=ott.namespace, patience=seconds + CALL_SECONDS)

    def wait_for_rollout(self, ott: Ott, seconds: int) -> None:
        """Wait until every worker is replaced. Raises KubectlFailed where they are not in time."""
        deployment = f"deployment/{names.deployment_name(ott.name)}"
        options = ("status", deployment, f"--timeout={seconds}s")
        self._run("rollout", *options, namespace=ott.namespace, patience=seconds + CALL_SECONDS)

    def _report(self, ott: Ott, pod: Mapping[str, Any]) -> Report:
        name = str(pod["metadata"]["name"])
        if (pod.get("status") or {}).get("phase") != "Running":
            return Report(name, failure=f"it is {(pod.get('status') or {}).get('phase', 'not started')}")
        path = f"/api/v1/namespaces/{ott.namespace}/pods/{name}:{names.WORKER_PORT}/proxy/channels"
        try:
            return report_of(name, json.loads(self._run("get", "--raw", path, timeout=REPORT_SECONDS)))
        except KubectlFailed as error:
            return Report(name, failure=str(error).replace(name, "the pod"))
        except (ValueError, KeyError, TypeError) as error:
            return Report(name, failure=f"its answer is of another release ({type(error).__name__}: {error})")

    def _json(self, *arguments: str, namespace: str = "") -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self._run(*arguments, "--output=json", namespace=namespace))
        return found

    def _run(
        self, *arguments: str, namespace: str = "", patience: float = CALL_SECONDS, timeout: int | None = None
    ) -> str:
        """Run kubectl and return its output."""
        program = shutil.which("kubectl")
        if program is None:
            raise KubectlFailed("kubectl is not on the PATH: `kubectl ott` runs it for every call")
        place = namespace or self.namespace
        command = [program, *self.flags, *(["--namespace", place] if place else []), *arguments]
        command += [] if timeout is None else [f"--request-timeout={timeout}s"]
        try:
            done = subprocess.run(
                command, capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=patience, check=False
            )
        except subprocess.TimeoutExpired as error:
            raise KubectlFailed(f"kubectl {arguments[0]} did not end within {patience:.0f} s") from error
        if done.returncode:
            raise _failure(done.stderr)
        return done.stdout


def _is_alive(pod: Mapping[str, Any]) -> bool:
    return (pod.get("status") or {}).get("phase") not in ("Succeeded", "Failed")


def _failure(said: str) -> KubectlFailed:
    """The last line of what kubectl says, and what to do where the kind is not installed."""
    lines: Sequence[str] = [line for line in said.splitlines() if line.strip()] or ["kubectl failed without a word"]
    message = lines[-1].removeprefix("error: ").removeprefix("Error from server ")
    if "doesn't have a resource type" in message and PLURAL in message:
        message += (
            ": install the chart, or its definition with `kubectl apply --server-side --force-conflicts -f crds/`"
        )
    return KubectlFailed(message, is_absent="(NotFound)" in lines[-1])
