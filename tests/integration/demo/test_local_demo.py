"""`ots-tunnel demo`: the whole of it in small."""

from __future__ import annotations

import pytest
from click.testing import CliRunner

from ots_tunnel.cli import cli


@pytest.mark.timeout(180)
@pytest.mark.lasts(14)
def test_the_demo_ends_with_equal_tables() -> None:
    done = CliRunner().invoke(cli, ["demo", "--rows", "1000", "--rate", "100", "--seconds", "6"])

    assert done.exit_code == 0, (done.output, done.exception)
    assert "1. table flights: 1,000 flights" in done.output
    assert "3. two workers copy it while 100 changes/s are written" in done.output
    assert " 0 differences, " in done.output
