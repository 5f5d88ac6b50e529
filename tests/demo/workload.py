"""The source table and the writer that goes on changing it, in a process of its own.

The writer uses the vendor's SDK, as an application would. It runs outside this process because both the SDK's
encoder and the demo's own waiting need a core's attention.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from types import TracebackType

from tests.demo.scenario import ACCESS_KEY_ID, ACCESS_KEY_SECRET, Scenario


class Writer:
    """`python -m ots_tunnel.demo_writer` as a context: changes go on until `stop`."""

    def __init__(self, scenario: Scenario, endpoint: str) -> None:
        self._command = [sys.executable, "-m", "ots_tunnel.demo_writer", "--endpoint", endpoint]
        self._command += ["--instance", scenario.instance, "--table", scenario.table]
        self._command += ["--rate", str(scenario.changes_per_second)]
        self._input = f"{ACCESS_KEY_ID}:{ACCESS_KEY_SECRET}\n"
        self._process: subprocess.Popen[str] | None = None
        self.changes: dict[str, int] = {}
        self.stopped_at = 0.0

    def __enter__(self) -> Writer:
        self._process = subprocess.Popen(self._command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        assert self._process.stdin is not None
        self._process.stdin.write(self._input)
        self._process.stdin.flush()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> None:
        if self._process is not None and self._process.poll() is None:
            self._process.kill()
            self._process.wait(timeout=10)

    def is_running(self) -> bool:
        """Whether it still writes; it never ends by itself unless something is wrong."""
        return self._process is not None and self._process.poll() is None

    def stop(self) -> int:
        """Stop after the current batch; the number of changes that were acknowledged.

        Raises:
            RuntimeError: the writer had ended before, or did not end in time.
        """
        process = self._process
        if process is None or process.poll() is not None:
            raise RuntimeError("the writer ended by itself; its error is above")
        process.terminate()
        output, _ = process.communicate(timeout=60)
        self.stopped_at = time.time()
        if process.returncode:
            raise RuntimeError(f"the writer ended with status {process.returncode}; its error is above")
        self.changes = json.loads(output.strip().splitlines()[-1])
        return sum(self.changes.values())
