"""Which errors of a call may pass without anybody's help."""

from __future__ import annotations

import pytest

from ots_tunnel.errors import (
    AuthFailed,
    CodecError,
    ConfigError,
    ConnectionLost,
    NoStream,
    ObjectNotExist,
    ParameterInvalid,
    PermissionDenied,
    ServerUnavailable,
    ServiceError,
    TunnelError,
    TunnelExpired,
)
from ots_tunnel.stream.calls.passing import may_pass


@pytest.mark.parametrize(
    ("error", "passes"),
    [
        (ConnectionLost("no answer"), True),
        (CodecError("a page of a load balancer"), True),
        (ServerUnavailable("OTSServerBusy", "busy"), True),
        (ServiceError("OTSClientError", "HTTP 404: a page of a load balancer"), True),
        (AuthFailed("OTSAuthFailed", "keys are being exchanged"), True),
        (PermissionDenied("OTSNoPermissionAccess", "not allowed"), False),
        (ParameterInvalid("OTSParameterInvalid", "bad"), False),
        (ObjectNotExist("OTSObjectNotExist", "no such table"), False),
        (TunnelExpired("OTSTrimmedDataAccess", "trimmed"), False),
        (NoStream("orders"), False),
        (ConfigError("worker id"), False),
    ],
)
def test_errors_that_may_pass(error: TunnelError, passes: bool) -> None:
    assert may_pass(error) is passes
