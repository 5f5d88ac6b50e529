"""Each exit code of a worker has one meaning for the operator."""

from __future__ import annotations

from typing import Any

import pytest

from ots_tunnel.console.exit_codes import EXIT_CODES, exit_code
from ots_tunnel.errors import (
    AuthFailed,
    ConfigError,
    LeaseTableNotFound,
    NoStream,
    ObjectNotExist,
    ParameterInvalid,
    PermissionDenied,
    PossibleGap,
    RowRejected,
    ServiceError,
    SinkRejected,
    StreamReplaced,
    TableNotFound,
    TunnelExpired,
    TunnelNotFound,
    WrongDestination,
    WrongLeaseTable,
    WrongTunnel,
)
from ots_tunnel.protocol.service_codes import ERROR_CLASSES
from ots_tunnel.sinks.http_answer import ABOUT_ONE_EVENT
from ots_tunnel.sinks.kafka.failures import VERDICTS, Verdict
from ots_tunnel_operator.assess.worker_pods.exits import end_problem, is_overcome, meaning
from ots_tunnel_operator.assess.worker_pods.sink_codes import refuses_records
from ots_tunnel_operator.reasons import STOPS_WORKERS, Reason
from ots_tunnel_operator.world.pod import Container, ContainerEnd
from tests.support.operator.worlds import NOW, pod, resource

REFUSED = ("code", "text", "request", 403)


def end_of(error: Exception) -> ContainerEnd:
    """As `ots-tunnel run` ends on an error."""
    return ContainerEnd(exit_code(error), "Error", f"{type(error).__name__}: {error}")


@pytest.mark.parametrize(
    ("error", "reason", "condition"),
    [
        (ConfigError("source.table: found ''"), Reason.WORKER_MISCONFIGURED, ""),
        (ServiceError(*REFUSED), Reason.SERVICE_REFUSED, ""),
        (SinkRejected("OTSAuthFailed", "wrong key"), Reason.SINK_DENIED, "SinkReady"),
        (SinkRejected("OTSOutOfRowSizeLimit", "too large", ("pk=1",)), Reason.SINK_REJECTED, "SinkReady"),
        (TunnelNotFound(*REFUSED), Reason.WORKERS_FAILING, ""),
        (WrongTunnel("another name"), Reason.WORKERS_FAILING, ""),
        (TableNotFound(*REFUSED), Reason.WORKERS_FAILING, ""),
        (ObjectNotExist(*REFUSED), Reason.WORKERS_FAILING, ""),
        (LeaseTableNotFound(*REFUSED), Reason.WORKERS_FAILING, ""),
        (AuthFailed(*REFUSED), Reason.AUTH_FAILED, "CredentialsValid"),
        (PermissionDenied(*REFUSED), Reason.ACCESS_DENIED, "CredentialsValid"),
        (TunnelExpired(*REFUSED), Reason.TUNNEL_EXPIRED, "TunnelReady"),
        (NoStream("orders"), Reason.WORKERS_FAILING, ""),
        (StreamReplaced("orders", "old", "new"), Reason.WORKERS_FAILING, ""),
        (WrongLeaseTable("primary key of lease table"), Reason.LEASE_TABLE_UNUSABLE, "TunnelReady"),
    ],
)
def test_an_error_that_names_its_cause(error: Exception, reason: Reason, condition: str) -> None:
    found = meaning(end_of(error))

    assert found is not None
    assert (found.reason, found.conditions) == (reason, (condition,) if condition else ())
    assert found.is_final is (reason in STOPS_WORKERS)


def test_no_exit_code_of_the_worker_is_forgotten() -> None:
    silent = {row.code for row in EXIT_CODES if meaning(ContainerEnd(row.code)) is None}

    # complete, differs, any other error, incomplete, expired without its message, a gap (`assess.gaps`), a signal
    assert silent == {0, 1, 5, 6, 13, 14, 130}
    assert meaning(end_of(PossibleGap("c", 1.0, 2.0))) is None


@pytest.mark.parametrize("code", [126, 127, 128])
def test_a_command_that_cannot_be_run_is_about_the_image(code: int) -> None:
    found = meaning(ContainerEnd(code, "StartError", "exec: ots-tunnel: not found"))

    assert found is not None
    assert found.reason is Reason.CONTAINER_CONFIG_ERROR


@pytest.mark.parametrize("message", ["", "Segmentation fault", '{"level": "ERROR", "error": "SinkRejected: a: b"}'])
def test_a_code_without_the_words_of_the_worker_stops_nothing(message: str) -> None:
    refused, expired = (meaning(ContainerEnd(code, "Error", message)) for code in (4, 13))

    assert refused is not None
    assert refused.reason is Reason.SINK_DENIED
    assert expired is None


@pytest.mark.parametrize(
    ("message", "records"),
    [
        ("SinkRejected: HTTP 413: http://shop/events refuses", True),
        ("SinkRejected: HTTP 401: http://shop/events refuses", False),
        ("SinkRejected: HTTP 404: http://shop/events refuses", False),
        ("SinkRejected: NoSuchBucket: s3://shop: the bucket does not exist", False),
        ("SinkRejected: PermissionError: /data: Permission denied", False),
        ("SinkRejected: OTSParameterInvalid: bad column", True),
        ("SinkRejected: ColumnName: delivery.columns.rename: a record has 'b'", True),
        ("SinkRejected: mine: what a user's own sink refuses", True),
        ("WrongDestination: OTSInvalidPK: sink.tablestore.table 'a': primary key", True),
        ("SinkRejected", False),
    ],
)
def test_a_refusal_of_records_is_told_from_one_of_keys_rights_and_places(message: str, records: bool) -> None:
    assert refuses_records(message) is records


def test_what_concerns_every_row_of_a_table_is_no_refusal_of_records() -> None:
    """As the worker tells it, which leaves no such record out (`Refusal.is_about_the_row`)."""
    codes = {*ERROR_CLASSES, "OTSQuotaExhausted", "OTSUnheardOf"}
    about_records = {code for code in codes if refuses_records(f"SinkRejected: {code}: text")}

    assert about_records == {
        code for code in codes if issubclass(ERROR_CLASSES.get(code, ServiceError), (ParameterInvalid, RowRejected))
    }
    assert "OTSQuotaExhausted" not in about_records


def test_every_final_failure_of_a_broker_is_about_records_or_about_the_place() -> None:
    about_records = {name for name in VERDICTS if refuses_records(f"SinkRejected: {name}: topic 'orders': text")}

    alone = {name for name, verdict in VERDICTS.items() if verdict is Verdict.ALONE}
    assert about_records - {"INVALID_MSG"} == alone  # that one is sent again, and ends no worker


def test_every_status_that_one_event_can_cause_is_about_records() -> None:
    refused = {status for status in range(300, 500) if refuses_records(f"SinkRejected: HTTP {status}: url refuses")}

    assert refused == ABOUT_ONE_EVENT


@pytest.mark.parametrize(
    ("error", "of", "words"),
    [
        (SinkRejected("KeyRange", "delivery.filter.keyRange.begin: found"), {}, "the field of spec.delivery"),
        (SinkRejected("ColumnName", "delivery.columns.rename: a record has 'b'"), {}, "the field of spec.delivery"),
        (SinkRejected("UnreadableFile", "FolderStore(/data) c/0: no rows"), {}, "restore the file"),
        (SinkRejected("UnknownPosition", "FolderStore(/data) c: holds files"), {}, "restore the file or the folder"),
        (WrongDestination("OTSInvalidPK", "primary key: found a"), {}, "correct the destination as it says"),
        (SinkRejected("mine", "what my code refuses"), {"sink": {"stdout": {}}}, "the field of spec.sink"),
        (SinkRejected("OTSInvalidPK", "a"), {"delivery__onPermanentError": "Skip"}, "the field of spec.sink"),
    ],
)
def test_a_policy_is_offered_only_where_it_counts(error: SinkRejected, of: dict[str, Any], words: str) -> None:
    end = end_of(error)
    found = meaning(end)
    assert found is not None

    message = end_problem(pod("pod-1"), end, found, resource(**of)).message

    assert words in message
    assert "onPermanentError" not in message


def test_the_policy_that_leaves_records_out_says_so() -> None:
    end = end_of(SinkRejected("OTSOutOfRowSizeLimit", "too large"))
    found = meaning(end)
    assert found is not None

    message = end_problem(pod("pod-1"), end, found, resource()).message

    assert "or set spec.delivery.onPermanentError to DeadLetter, or to Skip, which leaves such records out" in message


def test_the_message_names_pod_code_words_and_what_to_type() -> None:
    end = end_of(SinkRejected("OTSOutOfRowSizeLimit", "too large"))
    found = meaning(end)
    assert found is not None

    problem = end_problem(pod("pod-1"), end, found, resource())
    nothing = end_problem(pod("pod-1"), ContainerEnd(4), found, resource())

    assert (
        "pod pod-1: its worker ended with exit code 4 (SinkRejected: OTSOutOfRowSizeLimit: too large)"
        in problem.message
    )
    assert "kubectl ott restart flights-copy -n default" in problem.message
    assert problem.stops_workers
    assert "(no termination message)" in nothing.message


def test_an_end_is_overcome_when_the_container_has_run_for_a_while() -> None:
    def runs(since: float | None, *, ready: bool = True) -> bool:
        return is_overcome(pod(ready=ready, container=Container(started=since)), NOW)

    assert (runs(NOW - 60), runs(NOW - 59), runs(None)) == (True, False, True)
    assert not runs(NOW - 60, ready=False)


def test_what_does_not_fit_a_table_of_leases_is_corrected_without_its_immutable_field() -> None:
    found = meaning(end_of(WrongLeaseTable("time to live of lease table 'l': found 86400 s, allowed is -1")))

    assert found is not None
    assert "time to live -1" in found.remedy
    assert "create another object" in found.remedy


def test_a_table_of_leases_that_was_deleted_is_not_the_table_that_the_operator_looks_for() -> None:
    source, leases = meaning(end_of(ObjectNotExist(*REFUSED))), meaning(end_of(LeaseTableNotFound(*REFUSED)))

    assert source is not None
    assert leases is not None
    assert "the operator looks for it" in source.remedy
    assert "the next worker creates it, and begins at spec.source.stream.startFrom" in leases.remedy
