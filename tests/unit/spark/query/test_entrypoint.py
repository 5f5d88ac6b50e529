"""SIGTERM in the driver's container: the entry point of the image beside a played spark-submit."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

from tests.support.programs.processes import inherited_environment
from tests.support.waiting import wait_until

ENTRYPOINT = Path(__file__).parents[4] / "worker" / "image" / "spark-entrypoint.sh"

#: Ends with 7 when it is asked to.
PROGRAM = "import signal, sys, pathlib; signal.signal(15, lambda *_: sys.exit(7)); pathlib.Path(sys.argv[2]).touch(); "
PROGRAM += "signal.pause()"
#: The JVM: it ends with 99 when the signal reaches it, and otherwise as its program does.
SUBMIT = f"""#!{sys.executable}
import pathlib, signal, subprocess, sys
signal.signal(15, lambda *_: sys.exit(99))
if "{{program}}":
    sys.exit(subprocess.run([sys.executable, "-c", {PROGRAM!r}, "{{program}}", sys.argv[1]]).returncode)
pathlib.Path(sys.argv[1]).touch()
signal.pause()
"""


def end(folder: Path, program: str) -> int:
    """Start the container, end it with SIGTERM; its exit code."""
    ready = folder / "ready"
    (folder / "bin").mkdir()
    submit = folder / "bin" / "spark-submit"
    submit.write_text(SUBMIT.format(program=program))
    submit.chmod(0o755)
    process = subprocess.Popen(
        ["bash", str(ENTRYPOINT), "submit", str(ready)], env=inherited_environment(SPARK_HOME=str(folder))
    )
    try:
        wait_until(ready.exists, 60)
        process.send_signal(signal.SIGTERM)
        return process.wait(60)
    finally:
        process.kill()
        process.wait(30)


def test_the_program_is_asked_to_end_and_not_the_jvm(tmp_path: Path) -> None:
    assert end(tmp_path, "/opt/ots/stream.py") == 7


def test_without_a_program_the_jvm_ends(tmp_path: Path) -> None:
    assert end(tmp_path, "") == 99
