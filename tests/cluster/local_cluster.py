"""The local Kubernetes of this folder for pytest and the demo: thin wrappers over the scripts.

`Cluster("ott-test")` is a whole node (Linux, root), `ApiOnly()` an API server without one. Both provide a kubeconfig, a
`kubectl` and a log of every write; `Cluster` also provides the host's address for pods.
"""

import json
import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any

HERE = Path(__file__).resolve().parent
CACHE = Path(os.environ.get("OTS_TUNNEL_CACHE") or Path.home() / ".cache" / "ots-tunnel")
BIN = CACHE / "bin"
PREFIXES = {"ott-demo": "10.230", "ott-test": "10.231"}


class ClusterError(Exception):
    """A script or a command of the local cluster failed."""


class ClusterUnavailable(ClusterError):
    """This machine cannot run the cluster (no root, missing packages); tests are skipped then."""


def run_script(script: str, *args: str, timeout: float, env: dict[str, str] | None = None) -> str:
    """Run a script of this folder: its progress goes to our standard error, its standard output is returned."""
    command = [str(HERE / script), *args]
    # No pipe: background processes of the script inherit it, and reading it would wait for their end.
    with tempfile.TemporaryFile("w+") as said:
        try:
            result = subprocess.run(
                command, stdin=subprocess.DEVNULL, stdout=said, timeout=timeout, env={**os.environ, **(env or {})}
            )
        except subprocess.TimeoutExpired as error:
            raise ClusterError(f"{script} {' '.join(args)} did not end within {timeout:.0f} s") from error
        said.seek(0)
        output = said.read()
    if result.returncode == 2:
        raise ClusterUnavailable(f"{script} {' '.join(args)} cannot run on this machine (its reason is above)")
    if result.returncode:
        raise ClusterError(f"{script} {' '.join(args)} failed with {result.returncode} (its reason is above)")
    return output


def build(*parts: str) -> None:
    """Compile parts ("cluster", "spark", "rules"; none means all) into the cache, which takes up to 15 minutes."""
    run_script("build.sh", *parts, timeout=3600)


def build_images(*targets: str) -> dict[str, str]:
    """Build images ("app", "spark", "spark-iceberg"); return what images.sh prints: APP_IMAGE, APP_ARCHIVE, ..."""
    lines = run_script("images.sh", *targets, timeout=1800).splitlines()
    return dict(line.split("=", 1) for line in lines)


class ApiAccess:
    """Access through a kubeconfig: kubectl, helm and the audit log."""

    kubeconfig: Path
    audit_log: Path

    def _run(self, program: str, args: tuple[str, ...], stdin: str | None, timeout: float) -> str:
        command = [str(BIN / program), *args]
        env = {**os.environ, "KUBECONFIG": str(self.kubeconfig)}
        try:
            result = subprocess.run(
                command, input=stdin or "", capture_output=True, text=True, timeout=timeout, env=env
            )
        except subprocess.TimeoutExpired as error:
            raise ClusterError(f"{program} {' '.join(args)} did not end within {timeout:.0f} s") from error
        if result.returncode:
            raise ClusterError(f"{program} {' '.join(args)} failed: {result.stderr.strip()}")
        return result.stdout

    def kubectl(self, *args: str, stdin: str | None = None, timeout: float = 60) -> str:
        """Run kubectl and return its output; `stdin` is the manifest of `apply -f -`."""
        return self._run("kubectl", args, stdin, timeout)

    def helm(self, *args: str, stdin: str | None = None, timeout: float = 300) -> str:
        """Run helm and return its output."""
        return self._run("helm", args, stdin, timeout)

    def audit(self) -> Iterator[dict[str, Any]]:
        """Return all writes so far as audit events: `verb`, `user`, `objectRef` (`resource`, `subresource`, `name`)."""
        if self.audit_log.exists():
            with self.audit_log.open() as lines:
                for line in lines:
                    if line.endswith("\n"):  # the last line may be incomplete
                        yield json.loads(line)


@dataclass
class Cluster(ApiAccess):
    """A one-node cluster by name. Another name than the known ones needs `prefix`, the first half of its addresses."""

    name: str
    prefix: str = ""

    def __post_init__(self) -> None:
        self.prefix = self.prefix or PREFIXES[self.name]
        self.state = CACHE / "clusters" / self.name
        self.kubeconfig = self.state / "admin.kubeconfig"
        self.audit_log = self.state / "audit.log"
        self.host_ip = f"{self.prefix}.0.1"

    def _script(self, command: str, *args: str, timeout: float) -> str:
        return run_script("cluster.sh", command, self.name, *args, timeout=timeout, env={"PREFIX": self.prefix})

    def up(self) -> None:
        """Start the cluster, or its missing processes."""
        self._script("up", timeout=1100)

    def down(self, keep_images: bool = False) -> None:
        """Stop the cluster and remove all of its state, except the image store where `keep_images` is set."""
        self._script("down", *(["--keep-images"] if keep_images else []), timeout=300)

    def is_up(self) -> bool:
        """Whether all processes run and the API server answers."""
        try:
            self._script("status", timeout=60)
        except ClusterError:
            return False
        return True

    def load(self, *archives: str | Path) -> None:
        """Import image archives; images that are already there take no time."""
        self._script("load", *map(str, archives), timeout=600)

    def install_spark_operator(self, namespace: str, image: str) -> None:
        """Install the real Spark operator for `namespace`; `image` is SPARK_IMAGE of `build_images`."""
        run_script("spark-operator.sh", self.name, namespace, image, timeout=400)


class ApiOnly(ApiAccess):
    """An API server with etcd and controller manager on a free port of 127.0.0.1; the end of the block stops it."""

    def __enter__(self) -> "ApiOnly":
        if not (BIN / "kubeone").exists():
            raise ClusterUnavailable(f"{BIN / 'kubeone'} is not built; run {HERE / 'build.sh'}")
        self.folder = Path(tempfile.mkdtemp(prefix="ots-tunnel-api-"))
        self.kubeconfig = self.folder / "kubeconfig"
        self.audit_log = self.folder / "audit.log"
        try:
            run_script("apionly.sh", "up", str(self.folder), timeout=180)
        except BaseException:
            self._remove()
            raise
        self.server = re.search(r'server: "([^"]+)"', self.kubeconfig.read_text())[1]
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._remove()

    def _remove(self) -> None:
        try:
            run_script("apionly.sh", "down", str(self.folder), timeout=60)
        finally:
            shutil.rmtree(self.folder, ignore_errors=True)
