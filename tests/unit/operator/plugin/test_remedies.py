"""What the plugin tells people to type exists."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterator
from typing import Any

import click
import pytest

from ots_tunnel.cli import cli as worker_command
from ots_tunnel_operator.plugin.command import cli as plugin_command
from ots_tunnel_operator.plugin.ott import Ott
from ots_tunnel_operator.plugin.serving import Serving
from ots_tunnel_operator.plugin.why.advice import next_steps, steps_for
from ots_tunnel_operator.plugin.why.capacity import capacity
from ots_tunnel_operator.plugin.why.remedies import REMEDIES
from ots_tunnel_operator.plugin.why.waits import waits_sentences
from ots_tunnel_operator.reasons import STALLED, Reason
from tests.support.operator.plugin_objects import (
    NOW,
    STATES,
    body,
    conditions,
    healthy,
    in_trouble,
    late,
    refused,
    status,
)


def commands() -> Iterator[str]:
    for reason in REMEDIES:
        for step in steps_for(late(), reason):
            yield from step.commands
    for make in STATES.values():
        for step in next_steps(make()):
            yield from step.commands
    missing = body(source__tunnel__managementPolicy="UseExisting") | {"status": status(tunnel={})}
    yield steps_for(Ott(missing), Reason.TUNNEL_NOT_FOUND)[0].commands[0]


@pytest.mark.parametrize("reason", sorted(STALLED))
def test_what_waits_for_a_person_says_what_the_person_does(reason: Reason) -> None:
    steps = steps_for(healthy(), reason)

    assert all(step.text and not step.text.startswith("Nothing") for step in steps)


@pytest.mark.parametrize("text", sorted({text for text in commands() if not text.startswith("kubectl -n")}))
def test_commands_exist_with_these_options(text: str) -> None:
    program, *words = shlex.split(text)
    if program == "kubectl" and words[0] != "ott":
        assert words[0] in {"apply", "get"}
        return
    command: click.Command = worker_command if program == "ots-tunnel" else plugin_command
    words = words[1:] if program == "kubectl" else words
    while isinstance(command, click.Group):
        with click.Context(command) as context:
            found = command.get_command(context, words.pop(0))
        assert found is not None, text
        command = found
    command.make_parser(click.Context(command)).parse_args(words)


@pytest.mark.parametrize("text", sorted({text for text in commands() if text.startswith("kubectl -n")}))
def test_commands_name_the_namespace_and_the_object(text: str) -> None:
    words = shlex.split(text)

    is_operator = "lease" in words or "app.kubernetes.io/name=ots-tunnel-operator" in words
    assert words[2] == "shop" or is_operator
    assert "orders-copy" in text or "secret" in words or is_operator


@pytest.mark.parametrize(
    ("claim", "command"),
    [
        ({}, "kubectl get pods -A -l app.kubernetes.io/name=ots-tunnel-operator"),
        (
            {"ots-tunnel.dev/operator": "ops/ott"},
            "kubectl -n ops logs -l app.kubernetes.io/name=ots-tunnel-operator --prefix --tail=200",
        ),
    ],
)
def test_the_log_of_the_operator_is_where_its_lease_is(claim: dict[str, str], command: str) -> None:
    found = dict(healthy().body)
    claimed = Ott(found | {"metadata": found["metadata"] | {"annotations": claim}})

    assert steps_for(claimed, Reason.INTERNAL_ERROR)[0].commands == (command,)


def test_a_copy_by_spark_that_stands_still_is_looked_for_in_its_own_pods() -> None:
    found = body(engine__baseData="Spark")
    found["status"] = status(snapshot={"application": "orders-copy-snapshot", "state": "RUNNING"})
    (copying,) = steps_for(Ott(found), Reason.NOT_PROGRESSING)
    found["status"] = status(snapshot={"application": "orders-copy-snapshot", "state": "Completed"})
    (following,) = steps_for(Ott(found), Reason.NOT_PROGRESSING)

    assert copying.commands == (
        "kubectl ott events orders-copy -n shop",
        "kubectl -n shop logs -l ots-tunnel.dev/name=orders-copy,ots-tunnel.dev/role=snapshot --prefix --tail=50",
    )
    assert "role=worker" in following.commands[0]


def test_a_tunnel_that_is_gone_is_not_deleted_again() -> None:
    (gone,) = steps_for(healthy(), Reason.TUNNEL_NOT_FOUND)
    (expired,) = steps_for(healthy(), Reason.TUNNEL_EXPIRED)

    assert gone.commands[1] == "kubectl ott reset orders-copy -n shop --new-base --wait"
    assert expired.commands[1] == "kubectl ott reset orders-copy -n shop --new-base --delete-tunnel --wait"


def test_a_tunnel_that_the_object_did_not_create_is_deleted_by_hand() -> None:
    found = body()
    found["status"]["tunnel"]["createdByOperator"] = False

    (step,) = steps_for(Ott(found), Reason.TUNNEL_EXPIRED)

    assert step.commands[1] == "ots-tunnel tunnel delete orders orders-copy --from-object shop/orders-copy"


def test_an_object_that_has_used_no_tunnel_needs_no_reset() -> None:
    found = body()
    del found["status"]["tunnel"]

    *_, step = steps_for(Ott(found), Reason.DESTINATION_BEHIND_TUNNEL)

    assert step.text.startswith("Or start over: empty the destination, and, if nothing else uses the tunnel, delete it")
    assert step.commands == ("ots-tunnel tunnel delete orders orders-copy --from-object shop/orders-copy",)


def test_a_tunnel_that_was_to_exist_is_created() -> None:
    found = body(source__tunnel__managementPolicy="UseExisting")
    del found["status"]["tunnel"]

    (step,) = steps_for(Ott(found), Reason.TUNNEL_NOT_FOUND)

    create = "ots-tunnel tunnel create orders orders-copy --type BaseAndStream --from-object shop/orders-copy"
    assert step.commands == (create,)


@pytest.mark.parametrize(
    ("spec", "options"),
    [
        ({"source__tunnel__type": "Stream", "source__tunnel__stream": {"startFrom": "Earliest"}}, "Stream --earliest"),
        (
            {
                "source__tunnel__type": "Stream",
                "source__tunnel__stream": {"startFrom": "Timestamp", "startTime": "2026-11-20T09:00:00.5+08:00"},
            },
            "Stream --start-time 2026-11-20T01:00:00Z",
        ),
        ({"engine__baseData": "Spark"}, "Stream"),
        ({"engine": {"baseData": "Spark", "stream": "Spark"}}, "BaseAndStream"),
        (
            {
                "engine": {"baseData": "Spark", "stream": "Spark"},
                "sink": {"files": {"url": "file:///lake", "format": "Delta", "mode": "Mirror"}},
            },
            "Stream",
        ),
    ],
)
def test_the_tunnel_that_is_created_is_the_one_that_the_spec_wants(spec: dict[str, Any], options: str) -> None:
    found = body(source__tunnel__managementPolicy="UseExisting", **spec)
    del found["status"]["tunnel"]

    (step,) = steps_for(Ott(found), Reason.TUNNEL_NOT_FOUND)

    create = f"ots-tunnel tunnel create orders orders-copy --type {options} --from-object shop/orders-copy"
    assert step.commands == (create,)


def test_a_tunnel_of_somebody_else_is_looked_at_before_it_is_deleted() -> None:
    look, over = steps_for(healthy(), Reason.TUNNEL_REPLACED)

    assert look.commands == ("ots-tunnel tunnel describe --from-object shop/orders-copy",)
    assert over.text.startswith("If it is not, start over")


def test_secrets_are_named_and_never_a_key() -> None:
    found = Ott(body(sink__tablestore__credentials={"secretRef": {"name": "dr-credentials"}}))

    (step,) = steps_for(found, Reason.SECRET_NOT_FOUND)

    assert [shlex.split(command)[5:7] for command in step.commands] == [
        ["generic", "ots-credentials"],
        ["generic", "dr-credentials"],
    ]
    assert "--from-literal" not in " ".join(step.commands)


def test_more_workers_than_channels_are_never_advised() -> None:
    channels = {"channels": {"open": 3}}
    equal = Ott(body() | {"status": status(**channels)})
    many = Ott(body(replicas=1) | {"status": status(channels={"open": 16})})
    unknown = Ott(body(replicas=1) | {"status": status(channels=None)})

    assert "More workers cannot help, there are 3 workers for 3 channels" in capacity(equal)[0].text
    assert capacity(many)[0].commands == ("kubectl -n shop scale ott/orders-copy --replicas=2",)
    assert capacity(unknown)[0].commands == ("kubectl -n shop scale ott/orders-copy --replicas=2",)


@pytest.mark.parametrize("reason", [Reason.RETENTION_AT_RISK, Reason.LAG_HIGH])
def test_what_is_late_because_no_worker_runs_is_not_scaled_but_let_run(reason: Reason) -> None:
    value = {"Degraded": ("True", reason, "late")}
    paused = Ott(body(suspend=True) | {"status": status(channels={"open": 0}, conditions=conditions(**value))})
    empty = Ott(body(replicas=0) | {"status": status(channels={"open": 0}, conditions=conditions(**value))})

    assert next_steps(paused)[0].commands == ("kubectl ott resume orders-copy -n shop",)
    assert next_steps(empty)[0].commands == ("kubectl -n shop scale ott/orders-copy --replicas=1",)


def test_a_copy_by_spark_gets_executors_not_workers() -> None:
    found = body(engine__baseData="Spark")
    found["status"] = status(snapshot={"application": "orders-copy-snapshot", "state": "RUNNING"})

    (step,) = steps_for(Ott(found), Reason.RETENTION_AT_RISK)

    assert "spec.spark.executor.instances" in step.text
    assert step.commands == ("kubectl -n shop edit ott orders-copy",)


def test_a_busy_sink_is_named_as_a_possible_limit() -> None:
    busy = status(workers=[{"name": "w", "busyPercent": 90}], channels={"open": 16})

    assert "90 %" in capacity(Ott(body() | {"status": busy}))[0].text


def test_workers_at_their_rate_limit_are_not_told_to_split_the_table() -> None:
    limited = {"throughput": {"rowsPerSecond": 290, "limitRowsPerSecond": 300}}
    limit = {"delivery__rateLimit": {"rowsPerSecondPerWorker": 100}}
    equal = capacity(Ott(body(**limit) | {"status": status(**limited, channels={"open": 3})}))
    fewer = capacity(Ott(body(**limit) | {"status": status(**limited, channels={"open": 5})}))
    below = {"throughput": {"rowsPerSecond": 100, "limitRowsPerSecond": 300}}
    slow = capacity(Ott(body(**limit) | {"status": status(**below, channels={"open": 3})}))

    raised = "Raise spec.delivery.rateLimit, because its workers read 290 of the 300 rows/s that are allowed:"
    assert (equal[0].text, equal[0].commands) == (raised, ("kubectl -n shop edit ott orders-copy",))
    assert not [step for step in equal if "split" in step.text]
    # the limit is that of each worker: more of them may read more
    assert [step.text for step in fewer[:2]] == [raised, "Add workers, because 3 share 5 channels:"]
    assert "More workers cannot help" in slow[0].text


def test_each_rate_limit_is_named() -> None:
    limits = {
        "source__rateLimit": {"rowsPerSecondPerWorker": 100},
        "delivery__rateLimit": {"rowsPerSecondPerWorker": 0},
    }
    found = Ott(body(**limits) | {"status": status(throughput={"rowsPerSecond": 300, "limitRowsPerSecond": 300})})

    assert capacity(found)[0].text.startswith("Raise spec.source.rateLimit, because")


def test_what_has_no_remedy_shows_the_message_or_the_page() -> None:
    assert steps_for(healthy(), "FromTheFuture", "do this")[0].text == "do this"
    assert "FromTheFuture" in steps_for(healthy(), "FromTheFuture")[0].text


def test_a_rollout_that_is_stuck_leads_to_the_new_worker_and_one_that_waits_to_nothing() -> None:
    stuck, waiting = (
        Ott(body() | {"status": status(conditions=conditions(Progressing=("True", reason, "so it is")))})
        for reason in ("RolloutStuck", "RolloutWaiting")
    )

    assert next_steps(stuck)[0].text.startswith("Correct what keeps the new worker")
    assert next_steps(waiting)[0].text == "Nothing but to wait; watch it:"
    assert "RolloutWaiting (for 5 min): so it is" in waits_sentences(waiting, NOW, None)


def test_an_object_without_workers_gets_one() -> None:
    found = body(replicas=0)

    assert next_steps(Ott(found))[0].commands == ("kubectl -n shop scale ott/orders-copy --replicas=1",)


def test_a_completed_object_needs_nothing() -> None:
    found = body()
    for condition in found["status"]["conditions"]:
        if condition["type"] == "Completed":
            condition["status"] = "True"

    assert next_steps(Ott(found))[0].text.startswith("Nothing")


def test_a_deletion_that_waits_can_be_ended() -> None:
    look, end = next_steps(STATES["deleting"]())
    kept = body()
    kept["metadata"] |= STATES["deleting"]().body["metadata"]

    assert look.commands == ("kubectl ott events orders-copy -n shop",)
    assert end.commands == ("kubectl -n shop annotate ott orders-copy --overwrite ots-tunnel.dev/force-delete=true",)
    assert "is yours to delete" in end.text
    assert "is yours to delete" not in next_steps(Ott(kept))[1].text


def test_a_deletion_that_another_client_holds_is_not_waited_for_here() -> None:
    found = STATES["deleting"]().body
    (step,) = next_steps(Ott({**found, "metadata": {**found["metadata"], "finalizers": ["foregroundDeletion"]}}))

    assert "(finalizer foregroundDeletion)" in step.text
    assert step.commands == ()


def test_without_an_operator_nothing_else_is_advised() -> None:
    gone = Serving("ops/ott", "operator-1", NOW - 7200)
    look = ("kubectl -n ops get pods -l app.kubernetes.io/name=ots-tunnel-operator", "kubectl -n ops get lease ott")

    for state in ("healthy", "late", "paused"):
        assert [step.commands for step in next_steps(STATES[state](), gone)] == [look]


def test_a_deletion_without_an_operator_can_be_ended_by_hand() -> None:
    found = STATES["deleting"]().body
    held = {**found, "metadata": {**found["metadata"], "finalizers": ["another/one", "ots-tunnel.dev/finalizer"]}}
    _, release = next_steps(Ott(held), Serving("ops/ott"))

    *words, patch = shlex.split(release.commands[0])
    assert words == ["kubectl", "-n", "shop", "patch", "ott", "orders-copy", "--type", "json", "-p"]
    # the finalizers of others stay, also where they have changed meanwhile
    place = "/metadata/finalizers/1"
    assert json.loads(patch) == [
        {"op": "test", "path": place, "value": "ots-tunnel.dev/finalizer"},
        {"op": "remove", "path": place},
    ]


def test_a_claim_without_a_status_leads_to_its_lease() -> None:
    found = body()
    del found["status"]

    (step,) = next_steps(Ott(found))

    assert step.commands == (
        "kubectl -n ots-tunnel-system get lease ots-tunnel-operator",
        "kubectl -n shop annotate ott orders-copy ots-tunnel.dev/operator-",
    )


def test_a_destination_may_be_dropped_only_before_anything_was_consumed() -> None:
    unused = Ott(body() | {"status": status(tunnel={}, destination={})})
    by_hand = Ott(body(sink__tablestore__createTable="Never") | {"status": status(tunnel={}, destination={})})

    (drop,) = steps_for(unused, Reason.DESTINATION_INCOMPATIBLE)
    (create,) = steps_for(by_hand, Reason.DESTINATION_INCOMPATIBLE)
    keep, start_over = steps_for(healthy(), Reason.DESTINATION_INCOMPATIBLE)

    assert drop.text.endswith("Only if the table is empty, or nothing needs its rows, drop it: it is created anew.")
    assert create.text.endswith("drop it: create it anew.")
    assert "Do not drop the table alone" in keep.text
    assert start_over.commands


def test_records_that_are_refused_are_corrected_or_kept_before_they_are_left_out() -> None:
    correct, again, leave_out = steps_for(refused(), Reason.SINK_REJECTED)

    assert "DeadLetter" in correct.text
    assert correct.commands == ("kubectl -n shop edit ott orders-copy",)
    assert again.commands == ("kubectl ott restart orders-copy -n shop",)
    assert "lost" in leave_out.text
    assert '"onPermanentError":"Skip"' in leave_out.commands[0]


def test_beside_spark_no_record_can_be_left_out() -> None:
    steps = steps_for(Ott(body(engine__baseData="Spark")), Reason.SINK_REJECTED)

    assert [command for step in steps for command in step.commands] == [
        "kubectl -n shop edit ott orders-copy",
        "kubectl ott restart orders-copy -n shop",
    ]


@pytest.mark.parametrize(
    "changes",
    [
        {"sink": {"files": {"url": "file:///data"}}},
        {"sink": {"python": {"factory": "shop:Sink"}}},
        {"sink": {"stdout": {}}},
        {"delivery__onPermanentError": "Skip"},
        {"delivery__onPermanentError": "DeadLetter"},
    ],
)
def test_a_policy_that_the_object_cannot_have_or_has_already_is_not_offered(changes: dict[str, Any]) -> None:
    steps = steps_for(Ott(body(**changes)), Reason.SINK_REJECTED)

    assert "onPermanentError" not in str(steps)


def test_typed_files_can_leave_records_out() -> None:
    files = {"url": "file:///data", "columns": [{"name": "a", "type": "String"}]}

    assert '"onPermanentError":"Skip"' in str(steps_for(Ott(body(sink={"files": files})), Reason.SINK_REJECTED))


@pytest.mark.parametrize(
    ("words", "command"),
    [
        ("SinkRejected: KeyPrefix: delivery.filter.keyPrefix: found 'nokey'", "kubectl -n shop edit ott orders-copy"),
        ("SinkRejected: UnreadableFile: FolderStore(/data) c/0: no rows", "kubectl ott restart orders-copy -n shop"),
        ("WrongDestination: OTSInvalidPK: primary key: found a", "kubectl ott restart orders-copy -n shop"),
    ],
)
def test_what_no_policy_is_asked_about_is_corrected(words: str, command: str) -> None:
    message = f"pod a: its worker ended with exit code 4 ({words}): no restart can help"
    found = body()
    found["status"] = status(conditions=conditions(Stalled=("True", "SinkRejected", message)))

    steps = steps_for(Ott(found), Reason.SINK_REJECTED)

    assert steps[0].commands == (command,)
    assert "DeadLetter" not in str(steps)
    assert '"Skip"' not in str(steps)


def test_the_rows_of_a_destination_are_looked_at_before_they_are_written_over() -> None:
    look, over = steps_for(healthy(), Reason.DESTINATION_NOT_EMPTY)

    assert "Merge" not in " ".join(look.commands)
    assert "may be written over" in over.text
    assert '"onExisting":"Merge"' in over.commands[0]


def test_a_tunnel_of_another_form_is_deleted_only_if_nothing_needs_it() -> None:
    (step,) = steps_for(healthy(), Reason.SPEC_MISMATCH)

    assert "only if nothing needs its checkpoints" in step.text


@pytest.mark.parametrize("text", sorted({text for text in commands() if "delete" in text}))
def test_no_deletion_is_confirmed_in_advance(text: str) -> None:
    assert "--yes" not in text


def test_a_worker_without_memory_gets_more_or_holds_less() -> None:
    limited = {"spec": {"containers": [{"name": "worker", "resources": {"limits": {"memory": "640Mi"}}}]}}
    derived, default, given, least = (
        steps_for(Ott(body(workers=workers)), Reason.OOM_KILLED)[0].commands
        for workers in (
            {},
            {"podTemplate": limited},
            {"podTemplate": limited, "memoryBudgetBytes": 100_000_000},
            {"podTemplate": limited, "memoryBudgetBytes": 20_000_000},
        )
    )

    assert '"memoryBudgetBytes":134217728' in default[1]
    assert '"memoryBudgetBytes":50000000' in given[1]
    # the limit would become smaller as well; and what is below the least budget is refused
    assert derived == least == ("kubectl -n shop edit ott orders-copy",)


@pytest.mark.parametrize(
    "reason",
    [
        *(Reason.WORKERS_FAILING, Reason.WORKER_MISCONFIGURED, Reason.SINK_DENIED, Reason.IMAGE_PULL_FAILED),
        *(Reason.CONTAINER_CONFIG_ERROR, Reason.PODS_REFUSED, Reason.UNSCHEDULABLE, Reason.OOM_KILLED, Reason.EVICTED),
    ],
)
def test_trouble_with_a_pod_is_waited_for_by_kubernetes(reason: Reason) -> None:
    said = waits_sentences(in_trouble(reason, "pod orders-copy-7d4f-x2x9q: no"), NOW, None)

    assert said == [f"The cause of {reason} to go away: Kubernetes tries again by itself."]
