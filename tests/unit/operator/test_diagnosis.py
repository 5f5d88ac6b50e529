"""Every failure is a problem with a reason, a field and what to do."""

from __future__ import annotations

import pytest

from ots_tunnel.errors import CodecError, ConfigError, ConnectError
from ots_tunnel.protocol.service_codes import service_error
from ots_tunnel_operator.diagnosis import (
    MAX_FOREIGN,
    Place,
    destination_incompatible,
    kube_problem,
    service_problem,
    shortened,
)
from ots_tunnel_operator.kube.errors import KubeError, NameConflict
from ots_tunnel_operator.reasons import Reason
from tests.support.operator.worlds import resource

OVER = "to start over, reset it"
PLACE = Place.of_source(resource().spec.source)
_TABLE = resource(sink__tablestore__table="copy").spec.sink.tablestore
assert _TABLE is not None
SINK = _TABLE


@pytest.mark.parametrize(
    ("error", "reason", "words"),
    [
        (service_error("OTSAuthFailed", "no"), Reason.AUTH_FAILED, "does not accept this AccessKey"),
        (service_error("OTSNoPermissionAccess", "no"), Reason.ACCESS_DENIED, "has no permission"),
        (service_error("OTSTunnelExpired", "no"), Reason.TUNNEL_EXPIRED, "has expired"),
        (service_error("OTSServerBusy", "no"), Reason.SERVICE_UNAVAILABLE, "temporarily unavailable"),
        (service_error("OTSObjectNotExist", "no"), Reason.TABLE_NOT_FOUND, "no such table"),
        (service_error("OTSParameterInvalid", "no"), Reason.SERVICE_REFUSED, "correct the value"),
        (CodecError("html"), Reason.ENDPOINT_UNREACHABLE, "no Tablestore answers there"),
        (ConnectError("refused"), Reason.ENDPOINT_UNREACHABLE, "no answer (refused)"),
        (TimeoutError(), Reason.ENDPOINT_UNREACHABLE, "no answer (TimeoutError)"),
        (ConfigError("wrong"), Reason.INVALID_SPEC, "spec.source: wrong"),
        (ZeroDivisionError("a bug"), Reason.INTERNAL_ERROR, ""),
    ],
    ids=lambda value: value.name if isinstance(value, Reason) else type(value).__name__,
)
def test_a_failed_call_to_an_instance(error: Exception, reason: Reason, words: str) -> None:
    problem = service_problem(error, PLACE)

    assert problem.reason is reason
    assert words in problem.message


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (NameConflict("taken"), Reason.NAME_CONFLICT),
        (KubeError(403, "Forbidden", "no"), Reason.API_SERVER_REFUSED),
        (ZeroDivisionError("a bug"), Reason.INTERNAL_ERROR),
    ],
)
def test_a_failed_call_to_the_api_server(error: Exception, reason: Reason) -> None:
    assert kube_problem(error).reason is reason


def test_an_unfit_destination_names_each_cause() -> None:
    problem = destination_incompatible(SINK, ["first", "second"], OVER)

    assert problem.reason is Reason.DESTINATION_INCOMPATIBLE
    assert "'copy': first; second: " in problem.message


@pytest.mark.parametrize(
    ("policy", "is_unused", "is_foreign", "says"),
    [
        ("IfMissing", True, False, "change the table's options, or drop the table, and the operator creates it anew"),
        ("Never", True, False, "change the table's options, or drop the table, and create it anew"),
        (
            "IfMissing",
            True,
            True,
            "or apply an object with another table (drop this one only if nothing needs its rows)",
        ),
        ("IfMissing", False, False, "drop the table too: a new one would lack what was consumed; to start over, reset"),
        ("IfMissing", False, True, "drop the table too (only if nothing else needs its rows): a new one would lack"),
    ],
)
def test_an_unfit_destination_may_be_dropped_where_only_the_object_has_used_it(
    policy: str, is_unused: bool, is_foreign: bool, says: str
) -> None:
    sink = SINK.model_copy(update={"create_table": policy})

    found = destination_incompatible(sink, ["first"], OVER, is_unused=is_unused, is_foreign=is_foreign)

    assert says in found.message


def test_foreign_text_is_shortened() -> None:
    assert len(shortened("x" * 5000)) <= MAX_FOREIGN
