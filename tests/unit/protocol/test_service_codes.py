"""Which errors prove that the service has not carried out a call."""

from __future__ import annotations

import pytest

from ots_tunnel.errors import ConnectError, ReadTimeout, ServiceError
from ots_tunnel.protocol.service_codes import is_refusal, service_error


@pytest.mark.parametrize(
    ("error", "is_proof"),
    [
        (ConnectError("refused"), True),
        (ReadTimeout("no answer"), False),
        (service_error("OTSAuthFailed", "", http_status=403), True),
        (service_error("OTSServerBusy", "", http_status=503), True),
        (service_error("OTSServerUnavailable", "", http_status=503), False),
        (service_error("OTSInternalServerError", "", http_status=500), False),
        (ServiceError("OTSClientError", "", http_status=404), False),
        (service_error("OTSClientError", "", http_status=429), False),
        (ServiceError("OTSParameterInvalid", "", http_status=408), False),
        (TimeoutError(), False),
    ],
    ids=repr,
)
def test_what_proves_that_nothing_was_carried_out(error: BaseException, is_proof: bool) -> None:
    assert is_refusal(error) is is_proof
