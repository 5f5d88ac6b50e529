"""The API server as one object: requests by method and path, answered at once.

It knows what the operator depends on: versions and conflicts, generations, the status subresource, finalizers and
deletion with preconditions, server-side apply with managedFields, immutable ConfigMaps, label selectors, and a log for
watches. It does not know CEL, roles, quotas or other versions. `server.py` adds time and faults.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from tests.simulation.apiserver.admission import Definition, admitted, definition
from tests.simulation.apiserver.paths import Place, parse, selects
from tests.simulation.apiserver.refusal import Refusal, conflict, invalid, not_found
from tests.simulation.apiserver.store import Key, Manifest, Store, copied
from tests.simulation.apiserver.writes import applied, merge_patched, updated

#: Kinds whose status is a subresource: a write to the object leaves it alone, a write to it changes nothing else.
WITH_STATUS = frozenset({"TablestoreTunnel", "Deployment", "Pod", "SparkApplication"})
#: Kinds whose generation counts the changes of the spec.
WITH_GENERATION = frozenset({"TablestoreTunnel", "Deployment", "SparkApplication"})
APPLY = "application/apply-patch+yaml"


@dataclass(frozen=True, slots=True)
class Request:
    """One request; `manager` writes the fields where the query names none."""

    method: str
    path: str
    body: Mapping[str, Any] | None = None
    query: Mapping[str, str] = field(default_factory=dict)
    content: str = "application/json"
    manager: str = "unknown"


Verb = Callable[[Place, Request], Manifest]


class Api:
    """The API server.

    Args:
        store: of the objects.
        clock: Unix seconds.
        uid: makes a unique id.
    """

    def __init__(self, store: Store, clock: Callable[[], float], uid: Callable[[], str]) -> None:
        self.store = store
        self._clock = clock
        self._uid = uid
        self.definition: Definition = definition()
        """That of TablestoreTunnel; fields may be added to it while objects exist, and none may be taken away."""
        self._verbs: Mapping[tuple[str, bool], Verb] = {
            ("GET", True): self._get,
            ("GET", False): self._list,
            ("POST", False): self._create,
            ("PUT", True): self._replace,
            ("PATCH", True): self._patch,
            ("DELETE", True): self._delete,
        }

    def call(self, request: Request, *, version: int | None = None) -> Manifest:
        """Answer a request.

        Args:
            request: what is asked.
            version: answer a read of one object as of this version, as a cache that lags behind does.

        Raises:
            Refusal: the request is refused.
        """
        place = parse(request.path)
        verb = self._verbs.get((request.method, bool(place.name)))
        if verb is None:
            raise Refusal(405, "MethodNotAllowed", f"{request.method} {request.path}")
        if request.method == "GET" and place.name and version is not None:
            found = self.store.at(_key(place), version)
            if found is None:
                raise _missing(place)
            return found
        return verb(place, request)

    def finalize(self, key: Key) -> None:
        """Remove an object at once, whatever its finalizers and grace period say, as the kubelet ends a pod."""
        if key in self.store.objects:
            self.store.remove(key)

    def _get(self, place: Place, request: Request) -> Manifest:
        return self._existing(place)

    def _list(self, place: Place, request: Request) -> Manifest:
        selector, name = request.query.get("labelSelector", ""), request.query.get("fieldSelector", "")
        items = [
            copied(item)
            for item in self.store.all(place.kind.kind, place.namespace)
            if selects(selector, item["metadata"].get("labels") or {})
            and (not name or name == f"metadata.name={item['metadata']['name']}")
        ]
        metadata = {"resourceVersion": str(self.store.version)}
        kind = f"{place.kind.kind}List"
        return {"apiVersion": place.kind.api_version, "kind": kind, "metadata": metadata, "items": items}

    def _create(self, place: Place, request: Request) -> Manifest:
        body = dict(request.body or {})
        place = Place(place.kind, place.namespace, body["metadata"]["name"])
        if _key(place) in self.store.objects:
            raise Refusal(409, "AlreadyExists", f'{place.kind.plural} "{place.name}" already exists')
        return self._stored(place, None, updated(None, self._new(place, body), self._manager(request)))

    def _replace(self, place: Place, request: Request) -> Manifest:
        live = self._existing(place)
        body = dict(request.body or {})
        return self._changed(place, live, body, request)

    def _patch(self, place: Place, request: Request) -> Manifest:
        body = dict(request.body or {})
        if request.content == APPLY:
            return self._apply(place, body, request)
        live = self._existing(place)
        return self._changed(place, live, merge_patched(live, body), request, body)

    def _apply(self, place: Place, body: Manifest, request: Request) -> Manifest:
        live = self.store.read(_key(place))
        force = request.query.get("force") == "true"
        wanted = self._new(place, body) if live is None else _identified(place, body)
        if live is not None:
            # one that does not exist is created whatever version the manifest names
            self._check_version(body, live)
        result = applied(live, wanted, self._manager(request), force=force)
        if request.query.get("dryRun"):
            return admitted(result, self.definition)
        return self._stored(place, live, result)

    def _changed(
        self, place: Place, live: Manifest, wanted: Manifest, request: Request, sent: Manifest | None = None
    ) -> Manifest:
        self._check_version(wanted if sent is None else sent, live)
        if place.subresource == "status":
            wanted = {**live, "status": wanted.get("status") or {}}
        elif place.kind.kind in WITH_STATUS:
            kept = {key: value for key, value in wanted.items() if key != "status"}
            wanted = kept | ({"status": live["status"]} if "status" in live else {})
        wanted["metadata"] = {**wanted["metadata"], **_given(live)}
        return self._stored(place, live, updated(live, wanted, self._manager(request)))

    def _delete(self, place: Place, request: Request) -> Manifest:
        live = self._existing(place)
        options = request.body or {}
        for name, value in (options.get("preconditions") or {}).items():
            if live["metadata"].get(name) != value:
                raise conflict(f"Precondition failed: {name} in precondition: {value}, in object: {live['metadata']}")
        grace = (live.get("spec") or {}).get("terminationGracePeriodSeconds", 30) if live["kind"] == "Pod" else 0
        grace = options.get("gracePeriodSeconds", grace)
        running = live["kind"] == "Pod" and grace > 0 and bool((live.get("spec") or {}).get("nodeName"))
        if not live["metadata"].get("finalizers") and not running:
            return self.store.remove(_key(place))
        if live["metadata"].get("deletionTimestamp"):
            return live
        live["metadata"]["deletionTimestamp"] = self._time()
        live["metadata"]["deletionGracePeriodSeconds"] = grace
        if live["kind"] in WITH_GENERATION:
            live["metadata"]["generation"] += 1
        return self.store.put(_key(place), live)

    def _stored(self, place: Place, live: Manifest | None, wanted: Manifest) -> Manifest:
        result = admitted(wanted, self.definition)
        if live is not None and live.get("immutable") and any(live.get(k) != result.get(k) for k in _FROZEN):
            raise invalid(f'{live["kind"]} "{place.name}" is invalid: data: Forbidden: field is immutable')
        if live is not None and _without(live, "resourceVersion") == _without(result, "resourceVersion"):
            return live
        if live is not None and result["kind"] in WITH_GENERATION and live.get("spec") != result.get("spec"):
            result["metadata"]["generation"] = live["metadata"]["generation"] + 1
        key = _key(place)
        released = result["metadata"].get("deletionTimestamp") and not result["metadata"].get("finalizers")
        if released and result["kind"] != "Pod":
            return self.store.remove(key)
        return self.store.put(key, result)

    def _new(self, place: Place, body: Manifest) -> Manifest:
        metadata = {
            **body.get("metadata", {}),
            "uid": self._uid(),
            "creationTimestamp": self._time(),
        }
        if place.kind.kind in WITH_GENERATION:
            metadata["generation"] = 1
        found = _identified(place, body)
        if place.kind.kind in WITH_STATUS:
            found.pop("status", None)
        return found | {"metadata": found["metadata"] | metadata}

    def _existing(self, place: Place) -> Manifest:
        found = self.store.read(_key(place))
        if found is None:
            raise _missing(place)
        return found

    def _check_version(self, sent: Mapping[str, Any], live: Mapping[str, Any] | None) -> None:
        wanted = (sent.get("metadata") or {}).get("resourceVersion")
        if wanted and (live is None or live["metadata"]["resourceVersion"] != wanted):
            raise conflict(
                "the object has been modified; please apply your changes to the latest version and try again"
            )

    def _manager(self, request: Request) -> str:
        return request.query.get("fieldManager") or request.manager

    def _time(self) -> str:
        return datetime.fromtimestamp(self._clock(), UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


_GIVEN = (
    *("uid", "name", "namespace", "generation", "resourceVersion", "managedFields"),
    *("creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds"),
)
_FROZEN = ("data", "binaryData", "immutable")


def _key(place: Place) -> Key:
    return place.kind.kind, place.namespace, place.name


def _identified(place: Place, body: Mapping[str, Any]) -> Manifest:
    metadata = {**(body.get("metadata") or {}), "name": place.name, "namespace": place.namespace}
    return {**body, "apiVersion": place.kind.api_version, "kind": place.kind.kind, "metadata": metadata}


def _given(live: Mapping[str, Any]) -> Manifest:
    """Metadata that no writer can change."""
    return {name: live["metadata"][name] for name in _GIVEN if name in live["metadata"]}


def _without(manifest: Mapping[str, Any], *names: str) -> Manifest:
    metadata = {key: value for key, value in manifest["metadata"].items() if key not in names}
    return {**manifest, "metadata": metadata}


def _missing(place: Place) -> Refusal:
    return not_found(f'{place.kind.plural} "{place.name}" not found')
