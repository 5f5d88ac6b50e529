"""What a command leaves behind is adopted, named and ended."""

from __future__ import annotations

import subprocess
import sys

from tests.support.programs.processes import ROOT, inherited_environment

#: A stage that ends at once; one of its two children ends by itself, the other one works on without end.
COMMAND = """
import subprocess, sys
subprocess.Popen([sys.executable, "-c", "pass"])
subprocess.Popen([sys.executable, "-c", "while True: pass  # works on"], start_new_session=True)
"""
PROGRAM = f"""
import subprocess, sys
from tests.support.suite.left_over import adopt_orphans, end_orphans
adopt_orphans()
subprocess.run([sys.executable, "-c", {COMMAND!r}], check=True)
for each in end_orphans(grace=1):
    print(each.command, each.cpu_seconds >= 0.1, sep="|")
print(end_orphans(grace=0))
"""


def test_a_process_that_a_command_left_behind_is_named_and_ended() -> None:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        env=inherited_environment(ROOT),
        stdout=subprocess.PIPE,
        text=True,
        timeout=120,
        check=True,
    )

    assert done.stdout.splitlines() == [f"{sys.executable} -c while True: pass  # works on|True", "[]"]
