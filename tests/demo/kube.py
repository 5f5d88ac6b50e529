"""kubectl and helm for the demo: apply, read, watch and wait, each with a deadline."""

from __future__ import annotations

import json
import os
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

Status = dict[str, Any]


class DemoError(Exception):
    """A wait of the demo timed out, or a command failed; the message describes the state."""


@dataclass(frozen=True)
class Kube:
    """Access to one cluster: paths of its tools and kubeconfig, or a context of the user's kubeconfig."""

    environment: dict[str, str] = field(default_factory=lambda: dict(os.environ))
    context: str = ""

    @classmethod
    def of_local_cluster(cls, kubeconfig: Path, programs: Path) -> Kube:
        """Access to the cluster of tests/cluster."""
        path = os.pathsep.join((str(programs), os.environ.get("PATH", "")))
        return cls({**os.environ, "KUBECONFIG": str(kubeconfig), "PATH": path})

    def kubectl(self, *words: str, stdin: str | None = None, timeout: float = 120) -> str:
        """Run kubectl and return its standard output."""
        context = ("--context", self.context) if self.context else ()
        return self._run(("kubectl", *context, *words), stdin, timeout)

    def helm(self, *words: str, timeout: float = 300) -> str:
        """Run helm and return its standard output."""
        context = ("--kube-context", self.context) if self.context else ()
        return self._run(("helm", *context, *words), None, timeout)

    def apply(self, *objects: Status) -> None:
        """Apply objects, like `kubectl apply -f`."""
        self.kubectl("apply", "-f", "-", stdin=json.dumps({"apiVersion": "v1", "kind": "List", "items": list(objects)}))

    def get(self, *words: str) -> Any:
        """Read an object, or a list of objects, as a document."""
        return json.loads(self.kubectl("get", *words, "-o", "json"))

    def _run(self, command: tuple[str, ...], stdin: str | None, timeout: float) -> str:
        try:
            done = subprocess.run(
                command, input=stdin, env=self.environment, text=True, capture_output=True, timeout=timeout, check=False
            )
        except FileNotFoundError as error:
            raise DemoError(f"{command[0]} is not on PATH") from error
        except subprocess.TimeoutExpired as error:
            raise DemoError(f"{' '.join(command[:4])} ... took more than {timeout:.0f} s") from error
        if done.returncode:
            raise DemoError(f"{' '.join(command[:4])} ...: {done.stderr.strip()[-2000:]}")
        return done.stdout

    @contextmanager
    def watching(self, *words: str, show: Callable[[str], None]) -> Iterator[None]:
        """Show the lines of `kubectl get ... -w` while the block runs."""
        context = ("--context", self.context) if self.context else ()
        command = ("kubectl", *context, "get", *words, "--watch")
        process = subprocess.Popen(
            command, env=self.environment, text=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
        )

        def follow() -> None:
            assert process.stdout is not None
            shown = ""
            for line in process.stdout:
                columns = line.rsplit(maxsplit=1)[0]
                if columns != shown:  # skip changes that show in no column except the age
                    shown = columns
                    show(line.rstrip())

        thread = threading.Thread(target=follow, name="watch", daemon=True)
        thread.start()
        try:
            yield
        finally:
            process.terminate()
            process.wait(timeout=10)
            thread.join(timeout=10)
            if process.stdout is not None:
                process.stdout.close()


def wait_until(what: str, look: Callable[[], Any], seconds: float, explain: Callable[[], str] | None = None) -> Any:
    """Evaluate a condition once a second until it is true.

    Raises:
        DemoError: `seconds` are over; the message names the condition and, with `explain`, the present state.
    """
    deadline = time.monotonic() + seconds
    while True:
        found = look()
        if found:
            return found
        if time.monotonic() > deadline:
            instead = f"; {explain()}" if explain else ""
            raise DemoError(f"not within {seconds:.0f} s: {what}{instead}")
        time.sleep(1)
