"""From an error to a problem that a person can act on: field, value, what to do. Pure.

Error texts contain no secrets: a service answers with key ids at most, and these are not repeated here.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from ots_tunnel.errors import (
    AuthFailed,
    CodecError,
    ConfigError,
    ConnectError,
    ObjectNotExist,
    ParameterInvalid,
    PermissionDenied,
    ServerUnavailable,
    ServiceError,
    TransportError,
    TunnelExpired,
)
from ots_tunnel_operator.api.secrets import secret_name
from ots_tunnel_operator.api.sink import TablestoreSink
from ots_tunnel_operator.api.source import Source
from ots_tunnel_operator.kube.errors import KubeError, NameConflict
from ots_tunnel_operator.reasons import Problem, Reason
from ots_tunnel_operator.turns.queue import NoTurn

#: Longest foreign text in a message, characters.
MAX_FOREIGN = 300


@dataclass(frozen=True, slots=True)
class Place:
    """An instance as the spec names it; `path` is its place in the spec, `condition` the condition that it decides."""

    path: str
    endpoint: str
    instance: str
    table: str
    secret: str
    condition: str

    @classmethod
    def of_source(cls, source: Source) -> Place:
        """The instance that is read."""
        secret = secret_name(source.credentials)
        return cls("spec.source", source.endpoint, source.instance, source.table, secret, "TunnelReady")

    @classmethod
    def of_sink(cls, sink: TablestoreSink) -> Place:
        """The instance that is written."""
        secret = secret_name(sink.credentials)
        return cls("spec.sink.tablestore", sink.endpoint, sink.instance, sink.table, secret, "SinkReady")


def service_problem(error: Exception, place: Place) -> Problem:
    """The problem behind a failed call to an instance."""
    secret_field = f"{place.path}.credentials.secretRef.name {place.secret!r}"
    instance_field = f"{place.path}.instance {place.instance!r}"
    endpoint_field = f"{place.path}.endpoint {place.endpoint!r}"
    match error:
        case AuthFailed():
            return Problem(
                Reason.AUTH_FAILED,
                f"{secret_field}, {instance_field}: the service does not accept this AccessKey ({error.code}): correct "
                f"accessKeyId and accessKeySecret in the Secret, or the instance's name, or check the clocks",
                ("CredentialsValid", place.condition),
            )
        case PermissionDenied():
            return Problem(
                Reason.ACCESS_DENIED,
                f"{instance_field}: the AccessKey of {secret_field} has no permission ({shortened(error.message)}): "
                f"grant it access to the instance, or correct the name",
                ("CredentialsValid", place.condition),
            )
        case TunnelExpired():
            return Problem(
                Reason.TUNNEL_EXPIRED,
                "the tunnel has expired, undelivered changes are lost: `kubectl ott why` says how to start over",
                ("TunnelReady",),
            )
        case ServerUnavailable():
            return Problem(
                Reason.SERVICE_UNAVAILABLE,
                f"{instance_field}: the service is temporarily unavailable ({error.code}: {shortened(error.message)}): "
                f"nothing to do, the operator tries again",
                (place.condition,),
            )
        case ObjectNotExist():
            return table_not_found(place)
        case CodecError() | ServiceError(code="OTSClientError"):
            # another server answers, not in the service's format (docs/protocol.md 1.10)
            return Problem(
                Reason.ENDPOINT_UNREACHABLE,
                f"{endpoint_field}: no Tablestore answers there ({shortened(str(error))}): correct the endpoint",
                (place.condition,),
            )
        case ParameterInvalid() | ServiceError():
            return Problem(
                Reason.SERVICE_REFUSED,
                f"{instance_field}, table {place.table!r}: the service refused a call ({error.code}: "
                f"{shortened(error.message)}): correct the value that the message names",
                (place.condition,),
            )
        case ConnectError() | TransportError() | TimeoutError() | OSError():
            return Problem(
                Reason.ENDPOINT_UNREACHABLE,
                f"{endpoint_field}: no answer ({shortened(str(error) or type(error).__name__)}): "
                f"correct the endpoint, or let operator and workers reach it",
                (place.condition,),
            )
        case ConfigError():
            return Problem(Reason.INVALID_SPEC, f"{place.path}: {shortened(str(error))}", (place.condition,))
        case _:
            return internal_problem(error)


def call_problem(error: Exception, place: Place) -> Problem:
    """The problem behind a call to an instance that failed, or whose turn has not come."""
    return instance_busy(place) if isinstance(error, NoTurn) else service_problem(error, place)


def instance_busy(place: Place) -> Problem:
    """The problem of a call whose turn has not come in time."""
    return Problem(
        Reason.INSTANCE_BUSY,
        f"{place.path}.instance {place.instance!r}: not observed, because the queue of the operator's calls to this "
        f"instance is long: nothing to do if it is short again soon, otherwise use fewer objects for one instance",
        (place.condition,),
    )


def instance_slow(place: Place, found: str) -> Problem:
    """The problem of an instance that has answered every call, but too slowly; `found` is how far a look came."""
    return Problem(
        Reason.INSTANCE_BUSY,
        f"{place.path}.instance {place.instance!r}: not observed, because the instance answers slowly ({found}): "
        f"nothing to do if it is faster again soon, otherwise find out why it is slow, or use fewer objects for it",
        (place.condition,),
    )


def table_not_found(place: Place) -> Problem:
    """The problem of a missing source table."""
    return Problem(
        Reason.TABLE_NOT_FOUND,
        f"{place.path}.table {place.table!r}: no such table in instance {place.instance!r}: "
        f"create the table, or create another object with the right name",
        (place.condition,),
    )


def destination_incompatible(
    sink: TablestoreSink,
    found: Iterable[object],
    start_over: str,
    *,
    is_unused: bool = False,
    is_foreign: bool = True,
) -> Problem:
    """The problem of a destination that cannot hold an equal copy.

    Args:
        sink: names the destination.
        found: the causes.
        start_over: what to type to start over.
        is_unused: whether nothing was copied to it yet, so that another table may take its place.
        is_foreign: whether it may have rows of something else: the object has not created it, and it is not empty.
    """
    anew = "the operator creates it anew" if sink.create_table == "IfMissing" else "create it anew"
    if is_unused:
        other = "apply an object with another table (drop this one only if nothing needs its rows)"
        drop = other if is_foreign else f"drop the table, and {anew}"
    else:
        only = " (only if nothing else needs its rows)" if is_foreign else ""
        lack = f"a new one would lack what was consumed; {start_over}"
        drop = f"where that cannot be done, drop the table too{only}: {lack}"
    return Problem(
        Reason.DESTINATION_INCOMPATIBLE,
        f"spec.sink.tablestore.table {sink.table!r}: {'; '.join(str(problem) for problem in found)}: change the "
        f"table's options, or {drop}",
        ("SinkReady",),
    )


def kube_problem(error: Exception) -> Problem:
    """The problem behind a failed call to the API server."""
    match error:
        case NameConflict():
            return Problem(Reason.NAME_CONFLICT, str(error), ())
        case KubeError():
            return Problem(
                Reason.API_SERVER_REFUSED,
                f"the API server refused a call ({shortened(str(error))}): check the operator's role and the rendered "
                f"objects, above all spec.workers.podTemplate and spec.spark; the operator tries again",
                (),
            )
        case _:
            return internal_problem(error)


def pod_monitor_problem(error: Exception, name: str, *, wanted: bool) -> Problem:
    """The problem of a PodMonitor that could not be looked at, made or removed.

    Args:
        error: of the API server, or about the one that has the name.
        name: of the PodMonitor.
        wanted: whether the object asks for it; otherwise it is to be removed.
    """
    field = f"spec.monitoring.podMonitor {str(wanted).lower()}"
    match error:
        case KubeError(status=404):
            cause = "the cluster has no kind PodMonitor (monitoring.coreos.com/v1)"
            then = "install the Prometheus operator, or leave the field out"
        case KubeError(status=403):
            cause = f"the operator lacks a right, or a policy forbids it ({shortened(error.message)})"
            then = "grant it (the chart does with workers.podMonitor.enabled)"
        case NameConflict():
            cause, then = str(error), "or leave the field out"
        case _:
            cause, then = f"the API server refused a call ({shortened(str(error))})", "the operator tries again"
    if not wanted:
        then += f", or delete PodMonitor {name!r} by hand"
    return Problem(Reason.POD_MONITOR_FAILED, f"{field}: {cause}: {then}; records flow on")


def pod_monitor_held(name: str, finalizers: Iterable[str]) -> Problem:
    """The problem of a PodMonitor that was deleted and does not go."""
    return Problem(
        Reason.POD_MONITOR_FAILED,
        f"spec.monitoring.podMonitor false: PodMonitor {name!r} is deleted, but a finalizer holds it "
        f"({shortened(', '.join(finalizers))}): let the program that has set it end its work, or take it away; "
        f"records flow on",
    )


def pod_template_refused(words: str, *, has_own_part: bool) -> Problem:
    """The problem of a pod template that the API server does not take.

    Args:
        words: its own.
        has_own_part: whether a part of the template is the user's (workers.podTemplate).
    """
    if has_own_part:
        found = f"spec.workers.podTemplate: the API server refuses the workers' Deployment with it ({shortened(words)})"
        then = "correct the field that it names"
    else:
        found = f"spec.workers: the API server refuses the workers' Deployment ({shortened(words)})"
        then = "let the policy that refuses it take what this release renders, or name another spec.workers.image"
    keeps = "workers that run keep running as they are, in the wanted number"
    return Problem(Reason.POD_TEMPLATE_REFUSED, f"{found}: {then}; {keeps}")


def spec_unreadable(found: str) -> Problem:
    """The problem of an object that does not fit the models of this release; `found` names fields and values."""
    return Problem(
        Reason.SPEC_UNREADABLE,
        f"this release of the operator cannot read the object ({shortened(found)}): install CRD and operator of one "
        f"release, or correct the fields that are named; workers that run keep running",
    )


def crd_outdated(fields: Iterable[str]) -> Problem:
    """The problem of a record that the API server has not stored; `fields` are the paths of what is missing."""
    return Problem(
        Reason.CRD_OUTDATED,
        f"the API server drops {shortened(', '.join(fields))}: the CRD is older than this operator, so nothing is "
        f"created that has to be recorded there: {CRD_HINT}; workers that run keep running",
    )


def internal_problem(error: Exception) -> Problem:
    """The problem of an unexpected error; the operator's log has the traceback."""
    return Problem(
        Reason.INTERNAL_ERROR,
        f"the operator failed on this object ({type(error).__name__}: {shortened(str(error))}): "
        f"see its log; the operator tries again",
        (),
    )


#: The way out where the CRD is older than the operator.
CRD_HINT = (
    "apply the CRD of this release (kubectl apply --server-side --force-conflicts -f crds/, or the chart with "
    "crds.enabled)"
)


def shortened(text: str) -> str:
    """A foreign text on one line, at most MAX_FOREIGN characters."""
    line = " ".join(text.split())
    return line if len(line) <= MAX_FOREIGN else line[: MAX_FOREIGN - 1] + "…"
