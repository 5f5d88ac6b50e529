"""The record of a snapshot's progress in the cluster: one ConfigMap, written with optimistic locking.

The driver pod reaches the API server with the token of its service account, over the standard library only: an
image for Spark needs no Kubernetes client for three calls.

A record of another label belongs to another copy and is replaced before the first read; once this driver has
written its own, a record that changed under it means that another driver is at work, and it stops.
"""

from __future__ import annotations

import base64
import http.client
import json
import logging
import os
import ssl
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote, urlsplit

from ots_tunnel.errors import ConfigError, ConnectionLost, OwnershipLost, ServerUnavailable, ServiceError
from ots_tunnel.logs import LogAction
from ots_tunnel.snapshot.document import (
    DONE_KEY,
    PROGRESS_LABEL,
    SPLITS_KEY,
    ProgressConfig,
    binary_item,
    done_bitmap,
    done_splits,
)
from ots_tunnel.snapshot.splits import SplitList, deserialise

SERVICE_ACCOUNT: Final = Path("/var/run/secrets/kubernetes.io/serviceaccount")
CALL_TIMEOUT: Final = 30.0
#: At most one write in so many seconds (design: snapshot before stream, point 2).
WRITE_PAUSE: Final = 1.0
logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class ClusterAccess:
    """How to reach the API server; the token is read anew for every call, because it rotates."""

    url: str
    token_file: Path
    ca_file: Path | None = None


def in_cluster() -> ClusterAccess:
    """Access of a pod with a service account.

    Raises:
        ConfigError: this is no pod, or it has no service account's token.
    """
    host, port = os.environ.get("KUBERNETES_SERVICE_HOST"), os.environ.get("KUBERNETES_SERVICE_PORT", "443")
    if not host:
        raise ConfigError("KUBERNETES_SERVICE_HOST is not set: the snapshot's driver runs in a pod")
    token = SERVICE_ACCOUNT / "token"
    if not token.exists():
        raise ConfigError(f"{token}: missing: the driver's pod needs a service account")
    literal = f"[{host}]" if ":" in host else host
    return ClusterAccess(f"https://{literal}:{port}", token, SERVICE_ACCOUNT / "ca.crt")


class ConfigMaps:
    """Three calls on the ConfigMaps of one namespace."""

    def __init__(self, access: ClusterAccess, namespace: str) -> None:
        self._access = access
        self._path = f"/api/v1/namespaces/{quote(namespace)}/configmaps"

    def get(self, name: str) -> dict[str, Any] | None:
        """The ConfigMap, None when there is none."""
        status, body = self._call("GET", f"{self._path}/{quote(name)}")
        return None if status == 404 else _expect(status, body)

    def create(self, config_map: dict[str, Any]) -> dict[str, Any]:
        """Create it.

        Raises:
            OwnershipLost: somebody else created it first.
        """
        return _expect(*self._call("POST", self._path, config_map))

    def replace(self, config_map: dict[str, Any]) -> dict[str, Any]:
        """Write it if its resourceVersion is still the stored one.

        Raises:
            OwnershipLost: it was changed or deleted meanwhile.
        """
        name = config_map["metadata"]["name"]
        return _expect(*self._call("PUT", f"{self._path}/{quote(name)}", config_map))

    def _call(self, method: str, path: str, body: dict[str, Any] | None = None) -> tuple[int, bytes]:
        connection = self._connection()
        headers = {
            "Authorization": f"Bearer {self._access.token_file.read_text().strip()}",
            "Accept": "application/json",
            "Content-Type": "application/json",
        }
        try:
            connection.request(method, path, None if body is None else json.dumps(body), headers)
            answer = connection.getresponse()
            return answer.status, answer.read()
        except (OSError, http.client.HTTPException) as error:
            raise ConnectionLost(f"{method} {path}: {type(error).__name__}: {error}") from error
        finally:
            connection.close()

    def _connection(self) -> http.client.HTTPConnection:
        address = urlsplit(self._access.url)
        if address.scheme == "http":
            return http.client.HTTPConnection(address.netloc, timeout=CALL_TIMEOUT)
        context = ssl.create_default_context(cafile=self._access.ca_file)
        return http.client.HTTPSConnection(address.netloc, timeout=CALL_TIMEOUT, context=context)


def _expect(status: int, body: bytes) -> dict[str, Any]:
    document: dict[str, Any] = json.loads(body) if body.startswith(b"{") else {}
    if status < 300:
        return document
    message = document.get("message") or body[:200].decode(errors="replace")
    if status in (404, 409):
        raise OwnershipLost(f"progress record: {message}")
    error = ServerUnavailable if status >= 500 or status == 429 else ServiceError
    raise error(str(document.get("reason", status)), message, "", status)


@dataclass(slots=True)
class ProgressRecord:
    """The record of one copy, as this driver knows it; writes wait until the last one is a second old."""

    config_maps: ConfigMaps
    config: ProgressConfig
    now: Callable[[], float] = time.time
    sleep: Callable[[float], None] = time.sleep
    splits: SplitList | None = None
    """The frozen list, None before `freeze`."""
    done: frozenset[int] = frozenset()
    _stored: dict[str, Any] | None = field(default=None, repr=False)
    _uncertain: bool = False
    _written: float = float("-inf")

    def load(self) -> None:
        """Read the record; what belongs to another label counts as nothing.

        Raises:
            CodecError: the record was damaged.
        """
        self._stored = self.config_maps.get(self.config.config_map)
        self.splits, self.done, self._uncertain = None, frozenset(), False
        if self._stored is None or (self._stored.get("data") or {}).get("label") != self.config.label:
            return
        self.splits = deserialise(binary_item(self._stored, SPLITS_KEY))
        self.done = done_splits(binary_item(self._stored, DONE_KEY), len(self.splits))

    def freeze(self, splits: SplitList, payload: bytes) -> None:
        """Store the list, nothing done; it holds for every later driver of this label.

        Raises:
            OwnershipLost: another driver wrote since `load`.
        """
        self._write(splits, frozenset(), {SPLITS_KEY: base64.b64encode(payload).decode()})

    def mark(self, done: Iterable[int]) -> None:
        """Record these splits as done, besides those that are; no write when there is nothing new.

        A failed call may be repeated: a write whose answer was lost is looked up first.

        Raises:
            OwnershipLost: another driver wrote since our last write.
        """
        assert self.splits is not None, "freeze comes first"
        merged = self.done | frozenset(done)
        if merged == self.done:
            return
        if self._uncertain:
            self._look_up(merged)
        if merged != self.done:
            self._write(self.splits, merged, {})

    def _look_up(self, merged: frozenset[int]) -> None:
        """Take over what is stored after a lost answer, if it can only be our own write."""
        frozen, known = self.splits, self.done
        self.load()
        if self.splits != frozen or not known <= self.done <= merged:
            raise OwnershipLost("progress record: another driver of this snapshot is at work")

    def _write(self, splits: SplitList, done: frozenset[int], binary: dict[str, str]) -> None:
        stored = self._stored or {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {}}
        labels = {**(stored["metadata"].get("labels") or {}), PROGRESS_LABEL: self.config.label}
        data = {
            "label": self.config.label,
            "total": str(len(splits)),
            "done": str(len(done)),
            "updated": datetime.fromtimestamp(self.now(), UTC).isoformat(timespec="milliseconds"),
        }
        bitmap = base64.b64encode(done_bitmap(done, len(splits))).decode()
        document = {
            **stored,
            "metadata": {
                **stored["metadata"],
                "name": self.config.config_map,
                "namespace": self.config.namespace,
                "labels": labels,
            },
            "data": data,
            "binaryData": {**(stored.get("binaryData") or {}), **binary, DONE_KEY: bitmap},
        }
        write = self.config_maps.create if self._stored is None else self.config_maps.replace
        self.sleep(max(0.0, self._written + WRITE_PAUSE - time.monotonic()))
        self._uncertain, self._written = True, time.monotonic()
        self._stored = write(document)
        self.splits, self.done, self._uncertain = splits, done, False
        logger.info("recorded %d of %d splits", len(done), len(splits), extra={"action": LogAction.SNAPSHOT_PROGRESS})
