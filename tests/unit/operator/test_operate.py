"""How the process of the operator ends."""

from __future__ import annotations

from typing import Any

import kopf
import pytest

from ots_tunnel_operator.metrics import OperatorMetrics
from ots_tunnel_operator.running.operation import operate
from ots_tunnel_operator.runtime import Runtime
from ots_tunnel_operator.server import Health
from ots_tunnel_operator.settings import Settings


async def test_an_error_of_kopf_ends_the_process_in_order(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """kopf raises an unexpected error; calls that hang in threads must not delay the end."""

    async def end(**_: Any) -> None:
        raise RuntimeError("a defect of kopf")

    monkeypatch.setattr(kopf, "operator", end)
    metrics = OperatorMetrics()

    code = await operate(Runtime(Settings(), metrics), Health(metrics), ("shop",), None)

    assert code == 1
    (record,) = caplog.records
    assert (record.action, record.levelname) == ("kopf_ended", "ERROR")
    assert "a defect of kopf" in caplog.text
