"""What the end of a worker means, by its exit code and its termination message. Pure.

One row for each exit code of `ots_tunnel.console.exit_codes` that names a cause:

    code  reason                     a restart helps once
    2     WorkerMisconfigured        a Secret, a mounted file, or the spec is corrected
    3     ServiceRefused             what the service refuses is corrected
    4     SinkDenied                keys, rights or the place are corrected; the sink's own code tells
          SinkRejected             never by itself: the next worker reads the same records
    10    WorkersFailing             the operator's own look says whether the tunnel is gone
    11    WorkersFailing             the same of the table; a table of leases that was deleted the next worker creates
    12    AuthFailed, AccessDenied   the keys or their rights are corrected
    13    TunnelExpired              never: the changes are gone
    14    (PossibleGap)              `assess.gaps` reads it from the same message
    15    WorkersFailing             the operator's own look says whether the stream is off
    16    WorkersFailing             the same of a stream that was switched on again
    17    LeaseTableUnusable         the table of leases is another one, or nothing else writes to it
    126 to 128  ContainerConfigError the image has the worker's command

Code 0 is a drain. Every other code, such as 5 and those of signals, may be over with the next start, so that only
repetition tells (`trouble`). A message that does not name the error of its code is one of another program in the
container: then the code proves nothing that would stop the workers.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from ots_tunnel.errors import AuthFailed, LeaseTableNotFound, TunnelExpired
from ots_tunnel_operator.api.spec import TunnelSpec
from ots_tunnel_operator.assess.worker_pods.sink_codes import refuses_records
from ots_tunnel_operator.diagnosis import shortened
from ots_tunnel_operator.reasons import Problem, Reason
from ots_tunnel_operator.sink_refusals import Subject, may_leave_out, subject_of
from ots_tunnel_operator.world.pod import ContainerEnd, Pod
from ots_tunnel_operator.world.resource import Resource

#: Seconds that a container runs, and is ready, until its last end counts as overcome: a worker that is refused connects
#: first, and is ready for a moment in each of its lives.
SETTLED_SECONDS = 60.0
#: Exit codes by which a runtime or shell says that the command cannot be run.
_NO_COMMAND = frozenset({126, 127, 128})


@dataclass(frozen=True, slots=True)
class Meaning:
    """What an end means.

    Args:
        reason: that of the conditions.
        remedy: what to do, for the end of the message.
        conditions: condition types that it makes False, in addition to Ready.
        is_final: whether no restart can help, so that the workers are stopped.
    """

    reason: Reason
    remedy: str
    conditions: tuple[str, ...] = ()
    is_final: bool = False


#: Stands for the command that starts the workers of an object again.
RESTART = "RESTART"
#: Stands for the commands that start an object over.
START_OVER = "STARTOVER"
#: Stands for the policy that leaves records out, where the object may have one.
_LEAVE_OUT = "LEAVEOUT"
_AGAIN = "Kubernetes starts it again after a pause"
_MISCONFIGURED = Meaning(
    Reason.WORKER_MISCONFIGURED,
    f"correct the field, the key of a Secret or the mounted file that it names; {_AGAIN}",
)
_SERVICE_REFUSED = Meaning(Reason.SERVICE_REFUSED, f"correct what the service names; {_AGAIN}")
_SINK_DENIED = Meaning(
    Reason.SINK_DENIED,
    f"correct the credentials, the rights or the quota of spec.sink, or create the place that it names; {_AGAIN}",
    ("SinkReady",),
)


def _rejected(remedy: str) -> Meaning:
    text = f"no restart can help, so the workers are stopped: {remedy}"
    return Meaning(Reason.SINK_REJECTED, text, ("SinkReady",), is_final=True)


_SINK_REJECTED: Mapping[Subject, Meaning] = {
    Subject.SETTING: _rejected("correct the field of spec.delivery that it names, which starts them again"),
    Subject.FILE: _rejected(
        f"restore the file or the folder that it names, then {RESTART}; where that is lost, {START_OVER}"
    ),
    Subject.TABLE: _rejected(f"correct the destination as it says, then {RESTART}"),
    Subject.RECORD: _rejected(
        f"correct the destination, or the field of spec.sink that it names{_LEAVE_OUT}; a change of the spec starts "
        f"them again, and so does {RESTART}"
    ),
}
_NOT_FOUND = Meaning(Reason.WORKERS_FAILING, f"the operator looks for it, too; {_AGAIN}")
_NO_STREAM = Meaning(
    Reason.WORKERS_FAILING,
    f"switch the stream of the source table on, with a retention of 1 to 168 hours; {_AGAIN}",
)
_STREAM_REPLACED = Meaning(
    Reason.WORKERS_FAILING,
    f"the operator looks at the stream, too, and stops the workers; {_AGAIN}",
)
_WRONG_LEASE_TABLE = Meaning(
    Reason.LEASE_TABLE_UNUSABLE,
    "remove the rows that it names, or let the table keep its rows for good (time to live -1); where the table itself "
    f"does not fit, create another object with another spec.source.stream.leaseTable, which is immutable; {_AGAIN}",
    ("TunnelReady",),
)
_LEASE_TABLE_GONE = Meaning(
    Reason.WORKERS_FAILING,
    "with the table of leases every checkpoint is gone: the next worker creates it, and begins at "
    f"spec.source.stream.startFrom, so that what the stream keeps from then on comes again; {_AGAIN}",
)
_AUTH_FAILED = Meaning(
    Reason.AUTH_FAILED,
    f"correct the AccessKey in the Secret of spec.source.credentials; {_AGAIN}",
    ("CredentialsValid",),
)
_ACCESS_DENIED = Meaning(
    Reason.ACCESS_DENIED,
    f"grant the AccessKey of spec.source.credentials access to tunnel and table in RAM; {_AGAIN}",
    ("CredentialsValid",),
)
_EXPIRED = Meaning(
    Reason.TUNNEL_EXPIRED,
    f"no restart can help, so the workers are stopped, and changes that were not delivered are lost: {START_OVER}",
    ("TunnelReady",),
    is_final=True,
)
_CANNOT_START = Meaning(
    Reason.CONTAINER_CONFIG_ERROR,
    "name an image of this release in spec.workers.image, or correct command and mounts in spec.workers.podTemplate",
)
#: Codes with one meaning, whatever the message.
_ALWAYS: Mapping[int, Meaning] = {
    2: _MISCONFIGURED,
    3: _SERVICE_REFUSED,
    10: _NOT_FOUND,
    11: _NOT_FOUND,
    15: _NO_STREAM,
    16: _STREAM_REPLACED,
    17: _WRONG_LEASE_TABLE,
}


def meaning(end: ContainerEnd) -> Meaning | None:
    """What an end means; None where the next start may help."""
    match end.code:
        case 4:
            return _SINK_REJECTED[subject_of(end.message)] if refuses_records(end.message) else _SINK_DENIED
        case 11 if end.message.startswith(LeaseTableNotFound.__name__):
            return _LEASE_TABLE_GONE
        case 12:
            return _AUTH_FAILED if end.message.startswith(AuthFailed.__name__) else _ACCESS_DENIED
        case 13 if end.message.startswith(TunnelExpired.__name__):
            return _EXPIRED
        case code if code in _NO_COMMAND:
            return _CANNOT_START
    return _ALWAYS.get(end.code)


def end_problem(pod: Pod, end: ContainerEnd, found: Meaning, of: Resource) -> Problem:
    """The problem of a worker that has ended; `of` is its object."""
    remedy = found.remedy.replace(RESTART, f"kubectl ott restart {of.name} -n {of.namespace}")
    remedy = remedy.replace(START_OVER, of.start_over()).replace(_LEAVE_OUT, _way_without(of.spec))
    words = shortened(end.message) or "no termination message"
    return Problem(
        found.reason,
        f"pod {pod.name}: its worker ended with exit code {end.code} ({words}): {remedy}",
        found.conditions,
        stops=found.is_final,
    )


def _way_without(spec: TunnelSpec) -> str:
    """The policy that goes on without refused records; empty where the object cannot have it, or has it already."""
    if not may_leave_out(spec.model_dump(mode="json", by_alias=True, exclude_none=True)):
        return ""
    return ", or set spec.delivery.onPermanentError to DeadLetter, or to Skip, which leaves such records out"


def is_overcome(pod: Pod, now: float, seconds: float = SETTLED_SECONDS) -> bool:
    """Whether the last end of a container counts no more: it is ready again, and has run for so long."""
    started = pod.container.started
    return pod.ready and (started is None or now - started >= seconds)
