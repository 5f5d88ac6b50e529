"""Objects that are nested as deeply as the API server takes them end no process, and neither do deeper documents."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests.support.programs.processes import bare_environment

PROGRAM = """
import asyncio, copy, json, sys
from ots_tunnel_operator.process.depth import allow_deep_objects

async def read(levels):
    found = json.loads('{{"a":' * levels + "[]" + "}}" * levels)
    assert copy.deepcopy(found) == found
    json.dumps(found)

allow_deep_objects()
allow_deep_objects()  # what is set already stays
try:
    asyncio.run(read({levels}))
except RecursionError:
    sys.exit(3)
"""


@pytest.mark.parametrize(("levels", "code"), [(10_000, 0), (1_000_000, 3)])
def test_an_object_of_any_depth_ends_no_process(levels: int, code: int) -> None:
    ended = subprocess.run(
        [sys.executable, "-c", PROGRAM.format(levels=levels)], env=bare_environment(), capture_output=True, timeout=60
    )

    assert (ended.returncode, ended.stderr) == (code, b"")
