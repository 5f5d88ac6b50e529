"""What to type about each reason that is a problem. Pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from ots_tunnel_operator.memory_limit import sets_memory_limit
from ots_tunnel_operator.plugin.ott import Ott
from ots_tunnel_operator.plugin.text.spans import of
from ots_tunnel_operator.plugin.why import commands
from ots_tunnel_operator.plugin.why.capacity import capacity
from ots_tunnel_operator.plugin.why.rejections import sink_rejected
from ots_tunnel_operator.plugin.why.secrets import WriteSecrets
from ots_tunnel_operator.plugin.why.starting_over import start_over
from ots_tunnel_operator.plugin.why.step import Step
from ots_tunnel_operator.reasons import Reason
from ots_tunnel_operator.reset.facts import Found

Remedy = Callable[[Ott], list[Step]]

#: Default of workers.memoryBudgetBytes, which the API server fills in only where the object has the section.
_BUDGET_BYTES = 268_435_456
#: The least one that the API server accepts.
_LEAST_BUDGET_BYTES = 16_777_216
_CRD = ("kubectl apply --server-side --force-conflicts -f crds/",)
#: Sets the keys that are given and leaves the others, which may be read by something else.
_WRITE_KEYS = (
    " --dry-run=client -o yaml | kubectl apply --server-side --force-conflicts --field-manager=kubectl-ott -f -"
)
_OPERATOR = f"-l {commands.OPERATOR_LABEL}"


def _only_start_over(ott: Ott) -> list[Step]:
    return [start_over(ott)]


def _not_found(ott: Ott) -> list[Step]:
    """The tunnel is gone, or one that was to exist does not."""
    policy = ((ott.spec.get("source") or {}).get("tunnel") or {}).get("managementPolicy")
    if policy == "UseExisting" and not ott.text("tunnel", "id"):
        return [Step("Create the tunnel, or set managementPolicy to CreateIfMissing:", (commands.create_tunnel(ott),))]
    return [start_over(ott, found=Found.GONE)]


def _replaced(ott: Ott) -> list[Step]:
    look = commands.service(ott, "tunnel describe")
    return [
        Step(
            "See whose the tunnel is that has the name now; if it is used, apply your object with another name:",
            (look,),
        ),
        start_over(ott, "If it is not, s", Found.ANOTHER),
    ]


def _correct(text: str) -> Remedy:
    return lambda ott: [Step(text, (commands.edit(ott),))]


def _or_start_over(text: str) -> Remedy:
    return lambda ott: [Step(text, (commands.edit(ott),)), start_over(ott, "Or s")]


def _logs(text: str) -> Remedy:
    return lambda ott: [Step(text, (commands.logs(ott, "worker"),))]


def _see_tunnel(text: str) -> Remedy:
    return lambda ott: [Step(text, (commands.service(ott, "tunnel describe"),))]


def _see_events(text: str) -> Remedy:
    return lambda ott: [Step(text, (commands.events(ott),))]


def _fixed(text: str, fixed: tuple[str, ...]) -> Remedy:
    return lambda _: [Step(text, fixed)]


def _not_progressing(ott: Ott) -> list[Step]:
    """A worker stands still, or the copy by Spark, during which there is no worker."""
    if ott.is_copied_by_spark:
        text = "See whether the pods of the copy start, and what they log; delete one whose node is lost:"
        return [Step(text, (commands.events(ott), commands.logs(ott, "snapshot")))]
    if ott.by_query:
        text = "See whether the pods of the query start, and what they log:"
        return [Step(text, (commands.events(ott), commands.logs(ott, "stream")))]
    text = "Check that the worker of the message reaches source and sink. Its log:"
    return [Step(text, (commands.logs(ott, "worker"),))]


def _operator_log(ott: Ott) -> list[Step]:
    """The operator's log, in the namespace of its Lease; without election that is not known."""
    text = "Read the operator's log, which has the traceback, and report it"
    if ott.lease is None:
        return [Step(f"{text}; its pods are:", (f"kubectl get pods -A {_OPERATOR}",))]
    return [Step(f"{text}:", (f"kubectl -n {ott.lease[0]} logs {_OPERATOR} --prefix --tail=200",))]


def _wait(ott: Ott) -> list[Step]:
    return [Step("Nothing but to wait; watch it:", (commands.own(ott, "top"),))]


def _possible_gap(ott: Ott) -> list[Step]:
    reader = "its query runs" if ott.by_query else "the workers run"
    text = f"Go on without the changes that status.possibleGaps lists, and set it back to Stop once {reader}:"
    member = "stream" if ott.leases else "tunnel"
    patch = f'{{"spec":{{"source":{{"{member}":{{"onPossibleGap":"Continue"}}}}}}}}'
    return [Step(text, (commands.merge(ott, patch),)), start_over(ott, "Or s")]


def _no_stream(ott: Ott) -> list[Step]:
    """The stream is off, or gone with the table; what a recorded one had not delivered is lost."""
    on = "witch the stream of the table on, with a retention of 1 to 168 hours, in the service's console or by its SDK."
    found = f"Create the table, if it is gone, and s{on}" if ott.text("tunnel", "id") else f"S{on}"
    return [Step(found), *(_stream_replaced(ott) if ott.text("tunnel", "id") else [])]


def _stream_replaced(ott: Ott) -> list[Step]:
    stream = (ott.spec.get("source") or {}).get("stream") or {}
    # with Latest, what the new stream has by then would be passed over
    how = " and startFrom Earliest" if stream.get("startFrom") == "Latest" else ""
    text = f"To follow the new stream, delete the object, and apply it again with onPossibleGap Continue{how}"
    return [Step(f"{text}; only a copy of the table has what is lost:", (commands.delete(ott),))]


def _table_not_found(ott: Ott) -> list[Step]:
    return [Step("Create the source table, or apply an object with the right name:", (commands.events(ott),))]


def _lease_table(ott: Ott) -> list[Step]:
    """Rows that are no leases, a wrong setting, or a table that cannot have any: its name cannot be changed."""
    text = (
        "See what is wrong. Correct a setting of the table in the service's console or by its SDK. Of rows that are no "
        "leases find out which program writes them, let it use another table, and remove them once nothing needs them:"
    )
    over = start_over(ott, "Where the table belongs to something else, leave it alone and s")
    return [Step(text, (commands.leases(ott),)), over]


def _not_empty(ott: Ott) -> list[Step]:
    look = "See whose rows they are. If it is not the table you meant, set the endpoint back, or apply another object:"
    over = "Empty the table, or, only if its rows may be written over, let existing rows replace them:"
    return [
        Step(look, (commands.edit(ott),)),
        Step(over, (commands.merge(ott, '{"spec":{"sink":{"tablestore":{"onExisting":"Merge"}}}}'),)),
    ]


def _see_pods(text: str) -> Remedy:
    return lambda ott: [Step(text, (commands.pods(ott),))]


def _out_of_memory(ott: Ott) -> list[Step]:
    workers = ott.spec.get("workers") or {}
    half = int(workers.get("memoryBudgetBytes", _BUDGET_BYTES)) // 2
    text = "Give the container more memory in workers.podTemplate, as the message says"
    # a limit that the template does not set follows from the budget, so that both would become smaller
    if not sets_memory_limit(workers.get("podTemplate") or {}) or half < _LEAST_BUDGET_BYTES:
        return [Step(f"{text}:", (commands.edit(ott),))]
    less = commands.merge(ott, f'{{"spec":{{"workers":{{"memoryBudgetBytes":{half}}}}}}}')
    return [Step(f"{text}, or let the worker hold less:", (commands.edit(ott), less))]


def _incompatible(ott: Ott) -> list[Step]:
    text = "Change the options of the destination that the message names"
    if not ott.text("destination", "ensuredTime") and not ott.text("tunnel", "id"):
        sink = (ott.spec.get("sink") or {}).get("tablestore") or {}
        who = "it is created anew" if sink.get("createTable", "IfMissing") == "IfMissing" else "create it anew"
        # what rows it has, no status tells
        drop = f"Only if the table is empty, or nothing needs its rows, drop it: {who}"
        return [Step(f"{text}, or apply an object with another table. {drop}.")]
    kept = "Do not drop the table alone: a new one would lack what was consumed before (DestinationBehindTunnel)."
    only = "" if ott.flag("destination", "createdByOperator") else ", only if nothing else needs its rows,"
    return [Step(f"{text}. {kept}"), start_over(ott, f"Where they cannot be changed, drop the table{only} and s")]


def _refused(ott: Ott) -> list[Step]:
    count = ott.number("refused", "records") or 0
    return [
        Step("Read which records were refused, and why; repair the rows:", (commands.logs(ott, "worker"),)),
        Step(
            f"Then accept the {of(count, 'record')} so far; a further one is reported again:",
            (commands.kubectl(ott, f"annotate ott {ott.name} --overwrite ots-tunnel.dev/accept-refused={count}"),),
        ),
    ]


def _snapshot_failed(ott: Ott) -> list[Step]:
    delete = commands.kubectl(ott, f"delete sparkapplication {ott.name}-snapshot")
    return [
        Step("Read why the copy by Spark ended, and correct the cause:", (commands.logs(ott, "snapshot"),)),
        Step("Then delete the application; a new one resumes where it stopped:", (delete,)),
    ]


def _query_failed(ott: Ott) -> list[Step]:
    delete = commands.kubectl(ott, f"delete sparkapplication {ott.name}-stream")
    return [
        Step("Read why the query ended, and correct the cause:", (commands.logs(ott, "stream"),)),
        Step("Then delete the application, unless an edit of the spec has started another one:", (delete,)),
    ]


REMEDIES: Mapping[str, Remedy | WriteSecrets] = {
    # Stalled: they wait for a person
    Reason.INVALID_SPEC: _correct("Correct the field that the message names:"),
    Reason.SPEC_UNREADABLE: _fixed("Install CRD and operator from one release; the CRD:", _CRD),
    Reason.CRD_OUTDATED: _fixed("Apply the CRD of the operator's release:", _CRD),
    Reason.ACCESS_DENIED: _correct("Grant the AccessKey access to the instance in RAM, or correct the instance:"),
    Reason.DESTINATION_INCOMPATIBLE: _incompatible,
    Reason.DESTINATION_NOT_EMPTY: _not_empty,
    Reason.DESTINATION_BEHIND_TUNNEL: _or_start_over(
        "Set an edited endpoint back, or restore the table with its rows:"
    ),
    Reason.DESTINATION_CHANGED: _or_start_over("Set spec.sink back to the table that status.destination names:"),
    Reason.NAME_CONFLICT: _see_events("Remove the object that has the name, or apply yours under another one:"),
    Reason.TUNNEL_IN_USE: _fixed(
        "Apply yours with another tunnel name, or delete the elder object that the message names, with deletionPolicy "
        "Retain: with Delete the tunnel and its checkpoints would go with it:",
        ("kubectl ott list -A",),
    ),
    Reason.COPY_CIRCLE: _fixed(
        "Delete one of the objects that the message names, or give one a delivery.filter that lets no copied change "
        "pass:",
        ("kubectl ott list -A",),
    ),
    Reason.TUNNEL_NOT_FOUND: _not_found,
    Reason.TUNNEL_REPLACED: _replaced,
    Reason.TUNNEL_EXPIRED: _only_start_over,
    Reason.NO_STREAM: _no_stream,
    Reason.STREAM_REPLACED: _stream_replaced,
    Reason.LEASE_TABLE_IN_USE: _fixed(
        "Apply yours with another table of leases, or delete the elder object that the message names:",
        ("kubectl ott list -A",),
    ),
    Reason.LEASE_TABLE_UNUSABLE: _lease_table,
    Reason.POSSIBLE_GAP: _possible_gap,
    Reason.SINK_REJECTED: sink_rejected,
    Reason.POD_TEMPLATE_REFUSED: _correct("Correct what the API server names in spec.workers, or its policy:"),
    Reason.SPEC_MISMATCH: _see_tunnel(
        "Apply your object with another tunnel name, or, to continue this tunnel, with its type and start; delete it "
        "only if nothing needs its checkpoints:"
    ),
    Reason.CHECKPOINT_UNREADABLE: _only_start_over,
    Reason.SNAPSHOT_UNKNOWN: _only_start_over,
    Reason.SNAPSHOT_IMPOSSIBLE: _see_tunnel("Apply your object with a tunnel that was not consumed; this one was:"),
    Reason.SNAPSHOT_FAILED: _snapshot_failed,
    Reason.QUERY_FAILED: _query_failed,
    # retried by the operator
    Reason.SECRET_NOT_FOUND: WriteSecrets("Create the Secret that the message names, from files with the keys:"),
    Reason.KEY_MISSING: WriteSecrets(
        "Write these keys of the Secret that the message names, from files; its other keys stay, and nothing has to be "
        "restarted:",
        _WRITE_KEYS,
    ),
    Reason.AUTH_FAILED: WriteSecrets(
        "Write these keys of the Secret that the message names, from files; its other keys stay, also a securityToken, "
        "which has to fit; nothing has to be restarted:",
        _WRITE_KEYS,
    ),
    Reason.ENDPOINT_UNREACHABLE: _correct("Correct the endpoint, or let operator and workers reach it:"),
    Reason.UNKNOWN: _wait,
    Reason.SERVICE_UNAVAILABLE: _wait,
    Reason.INSTANCE_BUSY: _wait,
    Reason.SERVICE_REFUSED: _correct("Correct what the answer of the service names:"),
    Reason.TABLE_NOT_FOUND: _table_not_found,
    Reason.DESTINATION_NOT_FOUND: _correct("Create the destination, or set createTable to IfMissing:"),
    Reason.API_SERVER_REFUSED: _correct("See workers.podTemplate and spark, and the role of the operator:"),
    Reason.INTERNAL_ERROR: _operator_log,
    Reason.SNAPSHOT_RETRYING: lambda ott: [
        Step("Read the driver's log if it repeats:", (commands.logs(ott, "snapshot"),))
    ],
    Reason.QUERY_RETRYING: lambda ott: [Step("Read the driver's log if it repeats:", (commands.logs(ott, "stream"),))],
    Reason.SPARK_OPERATOR_MISSING: _fixed(
        "Install the kubeflow spark-operator, or let it watch this namespace:", ("kubectl get deployments -A",)
    ),
    Reason.TUNNEL_INITIALISING: _see_tunnel("Ask the service's support about this tunnel:"),
    # while workers run
    Reason.FOREIGN_CLIENT: lambda ott: [
        Step(
            "Find the clients that are no workers of this object, and stop them:",
            (commands.leases(ott) if ott.leases else commands.service(ott, "channels"),),
        )
    ],
    Reason.RETENTION_AT_RISK: capacity,
    Reason.LAG_HIGH: capacity,
    Reason.WORKERS_FAILING: _logs("Read the log of the pod in the message, and correct the cause:"),
    Reason.ROLLOUT_STUCK: _logs(
        "Correct what keeps the new worker from becoming ready, or set workers.image. Its log:"
    ),
    Reason.WORKER_MISCONFIGURED: _correct("Correct the field, the Secret or the mounted file that the worker names:"),
    Reason.SINK_DENIED: _correct("Correct the sink's credentials or rights, or create the place that it names:"),
    Reason.IMAGE_PULL_FAILED: _correct("Correct the image, or give the pods imagePullSecrets:"),
    Reason.CONTAINER_CONFIG_ERROR: _see_pods("Create what the message names, or correct workers.podTemplate:"),
    Reason.PODS_REFUSED: _see_pods("Correct the quota or the policy that the message names, or workers.podTemplate:"),
    Reason.UNSCHEDULABLE: _see_pods("Give the nodes room for the pod, or correct workers.podTemplate:"),
    Reason.OOM_KILLED: _out_of_memory,
    Reason.EVICTED: _see_pods("Nothing, if it does not come back; see what the nodes lack:"),
    Reason.WORKERS_UNREACHABLE: _logs("Let the operator reach the pods (NetworkPolicy, service mesh). Their log:"),
    Reason.NOT_PROGRESSING: _not_progressing,
    Reason.RECORDS_REFUSED: _refused,
    Reason.COMPLETED_WITH_LOSS: lambda ott: [
        Step("Compare the destination with the source, by `ots-tunnel verify` where it is a table, and repair it."),
        Step("Then delete the object: it reads nothing any more."),
    ],
    Reason.POD_MONITOR_FAILED: _correct(
        "Install the kind, or give the operator the right that the message names; or leave podMonitor out:"
    ),
    Reason.SINK_ERRORS: _logs("See that the sink runs, and that the workers reach it. Their log:"),
    Reason.CHANNEL_ERRORS: lambda ott: [
        Step(f"Read the log of the worker; the {ott.part} resumes when it can:", (commands.logs(ott, "worker"),))
    ],
}
