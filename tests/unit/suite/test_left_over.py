"""What a command leaves behind is adopted, named and ended."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests.support.programs.processes import ROOT, inherited_environment

#: Works for a while, and does not end.
WORKS_ON = "import time as t;exec('while t.process_time()<.3:0');t.sleep(600)"
#: A stage that ends at once; one of its two children ends by itself, the other one goes on without end.
COMMAND = f"""
import subprocess, sys
subprocess.Popen([sys.executable, "-c", "pass"])
subprocess.Popen([sys.executable, "-c", {WORKS_ON!r}], start_new_session=True)
"""
PROGRAM = f"""
import subprocess, sys
from tests.support.suite.left_over import adopt_orphans, end_orphans
adopt_orphans()
subprocess.run([sys.executable, "-c", {COMMAND!r}], check=True)
# on a busy machine the one needs some of these seconds to end, and the other one to have worked
for each in end_orphans(grace=8):
    print(each.command, each.cpu_seconds >= 0.1, sep="|")
print(end_orphans(grace=0))
"""


@pytest.mark.lasts(9)
def test_a_process_that_a_command_left_behind_is_named_and_ended() -> None:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        env=inherited_environment(ROOT),
        stdout=subprocess.PIPE,
        text=True,
        timeout=120,
        check=True,
    )

    assert done.stdout.splitlines() == [f"{f'{sys.executable} -c {WORKS_ON}'[:120]}|True", "[]"]
