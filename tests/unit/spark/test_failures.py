"""Errors of tasks: which are permanent, and that each is one line."""

from __future__ import annotations

import pytest

from ots_tunnel.errors import (
    ConfigError,
    ConnectionLost,
    OwnershipLost,
    PermissionDenied,
    SinkError,
    SinkRejected,
    TunnelError,
)
from ots_tunnel.protocol.service_codes import service_error
from ots_tunnel.spark.failures import LINE_CHARACTERS, ends_query, line_of_job, one_line, refusal_of, told


@pytest.mark.parametrize(
    ("error", "is_final"),
    [
        (SinkRejected("OTSParameterInvalid", "no", ("k=5",)), True),
        (SinkRejected("OTSNoPermissionAccess", "no"), False),
        (service_error("OTSObjectNotExist", "no such table"), True),
        (service_error("OTSAuthFailed", "no such key"), False),
        (service_error("OTSSomethingNew", "?"), False),
        (PermissionDenied("OTSNoPermissionAccess", "no"), False),
        (ConfigError("/etc/ots: missing"), False),
    ],
)
def test_a_permanent_error_says_whether_another_driver_would_meet_it(error: TunnelError, is_final: bool) -> None:
    refusal = refusal_of(7, error)

    assert refusal is not None
    assert refusal.is_final is is_final
    assert refusal.text.startswith("split 7: ")
    assert str(error.args[0]) in refusal.text


@pytest.mark.parametrize(
    "error",
    [
        ConnectionLost("gone"),
        OwnershipLost("late"),
        SinkError("lives again"),
        service_error("OTSServerBusy", "busy", "", 503),
    ],
)
def test_other_errors_are_for_spark_to_try_again(error: TunnelError) -> None:
    assert refusal_of(7, error) is None


def test_a_refusal_names_the_keys_in_one_line() -> None:
    refusal = refusal_of(7, SinkRejected("OTSParameterInvalid", "a\n  long\ttext", ("k=5", "k=6")))

    assert refusal is not None
    assert refusal.text == "split 7: the destination refuses k=5, k=6: OTSParameterInvalid: a long text"


def test_a_job_s_error_is_the_line_of_this_package_in_spark_s_text() -> None:
    text = (
        "An error occurred while calling o1.collect.\n: org.apache.spark.SparkException: Job aborted\n"
        "Traceback (most recent call last):\n  File x\nots_tunnel.errors.ConnectionLost: gone\n\n\tat java.base/x"
    )

    assert line_of_job(RuntimeError(text)) == "ots_tunnel.errors.ConnectionLost: gone"
    of_java = "An error occurred while calling o55.sql.\n: java.nio.file.AccessDeniedException: s3a://shop\n\tat a.b"
    assert line_of_job(RuntimeError(of_java)) == "java.nio.file.AccessDeniedException: s3a://shop"
    assert line_of_job(RuntimeError("\nJob 3 cancelled\nmore")) == "Job 3 cancelled"
    assert line_of_job(RuntimeError()) == "RuntimeError"


def test_the_error_of_a_batch_is_the_line_behind_its_traceback() -> None:
    text = (
        "[STREAM_FAILED] Query [id = 1] terminated with exception: [FOREACH_BATCH_USER_FUNCTION_ERROR] An error "
        "occurred in the user provided function. Return Message: Traceback (most recent call last):\n  File x\n"
        "    self.func()\npy4j.protocol.Py4JJavaError: An error occurred while calling o9286.collectToPython.\n"
        ": java.nio.file.AccessDeniedException: s3a://shop/orders\n\tat a.b\nCaused by: x\n\n SQLSTATE: 39000"
    )

    assert line_of_job(RuntimeError(text)) == "java.nio.file.AccessDeniedException: s3a://shop/orders"


def test_a_line_has_an_end() -> None:
    assert len(one_line("x" * 9_999)) == LINE_CHARACTERS


@pytest.mark.parametrize(
    ("line", "is_for_good", "text"),
    [
        ("ots_tunnel.errors.PossibleGap: channel c1: changes", True, "channel c1: changes"),
        ("ots_tunnel.errors.TunnelExpired: OTSTunnelExpired: gone", True, "OTSTunnelExpired: gone"),
        ("ots_tunnel.errors.ConfigError: option 'endpoint': found", False, "option 'endpoint': found"),
        ("ots_tunnel.errors.TunnelError", False, ""),
        ("ots_tunnel.errors.datetime: no error at all", False, "no error at all"),
        ("java.io.IOException: ots_tunnel.errors.PossibleGap: no", False, "java.io.IOException: ots_tunnel.errors"),
    ],
)
def test_the_class_that_a_line_names_tells_whether_a_query_is_over(line: str, is_for_good: bool, text: str) -> None:
    assert ends_query(line) is is_for_good
    assert told(line).startswith(text)
