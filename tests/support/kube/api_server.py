"""A real API server for tests: etcd, kube-apiserver and controller-manager on loopback, no node."""

from __future__ import annotations

import json
import os
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[3]
SCRIPT = ROOT / "tests" / "cluster" / "apionly.sh"


def cache() -> Path:
    """Cache folder, outside the repository, of the built programs."""
    return Path(os.environ.get("OTS_TUNNEL_CACHE") or Path.home() / ".cache" / "ots-tunnel")


def missing_program(*names: str) -> str | None:
    """Reason to skip, or None where every program is built."""
    absent = [name for name in names if not os.access(cache() / "bin" / name, os.X_OK)]
    return f"not built: {', '.join(absent)} (tests/cluster/build.sh builds it)" if absent else None


@dataclass(frozen=True)
class ApiServer:
    """A running API server."""

    kubeconfig: Path

    def kubectl(self, *arguments: str, document: Any = None) -> subprocess.CompletedProcess[str]:
        """Run kubectl; `document` is given as JSON on its standard input."""
        environment = {**os.environ, "KUBECONFIG": str(self.kubeconfig)}
        text = None if document is None else json.dumps(document)
        return subprocess.run(
            [str(cache() / "bin" / "kubectl"), *arguments],
            input=text,
            env=environment,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )

    def must(self, *arguments: str, document: Any = None) -> str:
        """Run kubectl, assert that it succeeds, and return its output."""
        done = self.kubectl(*arguments, document=document)
        assert done.returncode == 0, done.stderr
        return done.stdout

    def install_definitions(self, path: Path) -> None:
        """Apply CustomResourceDefinitions and wait until they are served."""
        self.must("apply", "--server-side", "-f", str(path))
        give_up = time.monotonic() + 120
        # kubectl reports a definition without conditions as broken
        while self.kubectl("wait", "--for=condition=Established", "-f", str(path), "--timeout=30s").returncode:
            assert time.monotonic() < give_up, f"not served within 120 s: {path.name}"
            time.sleep(0.1)


@contextmanager
def running_api_server(directory: Path, *flags: str) -> Iterator[ApiServer]:
    """An API server with a folder of its own, stopped at the end of the block; `flags` are further ones of it."""
    environment = {**os.environ, "API_SERVER_FLAGS": " ".join(flags)}
    with (directory.parent / f"{directory.name}.log").open("w") as log:
        try:
            up = [str(SCRIPT), "up", str(directory)]
            subprocess.run(up, check=True, env=environment, stdout=log, stderr=log, timeout=120)
            yield ApiServer(directory / "kubeconfig")
        finally:
            subprocess.run([str(SCRIPT), "down", str(directory)], check=True, stdout=log, stderr=log, timeout=60)
