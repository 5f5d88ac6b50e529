"""The local Kubernetes of this folder for pytest and the demo: thin wrappers over the scripts, which say the rest.

`Cluster("ott-test")` is a whole node (Linux, root), `ApiOnly()` an API server without one. Both give a kubeconfig, a
`kubectl` and a log of every write; `Cluster` also gives the host's address as pods see it.
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
    """A script or a command of the local cluster failed; the message has what it said."""


class ClusterUnavailable(ClusterError):
    """This machine cannot run it (no root, missing packages): a reason to skip, not to fail."""


def run_script(script: str, *args: str, timeout: float, env: dict[str, str] | None = None) -> str:
    """Run a script of this folder: its progress goes to our standard error, its standard output is returned."""
    command = [str(HERE / script), *args]
    # No pipe for stderr: what a script starts in the background must not keep us waiting for its end.
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


def build() -> None:
    """Compile the cluster's programs into the cache; no time when they are there, 10 to 15 minutes when not."""
    run_script("build.sh", timeout=3600)


def build_images(*targets: str) -> dict[str, str]:
    """Build images ("app", "spark") and return what images.sh prints: APP_IMAGE, APP_ARCHIVE, SPARK_IMAGE, ..."""
    lines = run_script("images.sh", *targets, timeout=1800).splitlines()
    return dict(line.split("=", 1) for line in lines)


class ApiAccess:
    """What a kubeconfig gives: kubectl, helm and the audit log."""

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
        """Run kubectl and return its output; for `apply -f -`, give the manifest as `stdin`."""
        return self._run("kubectl", args, stdin, timeout)

    def helm(self, *args: str, stdin: str | None = None, timeout: float = 300) -> str:
        """Run helm and return its output."""
        return self._run("helm", args, stdin, timeout)

    def audit(self) -> Iterator[dict[str, Any]]:
        """Every write so far, as audit events: `verb`, `user`, `objectRef` (`resource`, `subresource`, `name`), ..."""
        if self.audit_log.exists():
            with self.audit_log.open() as lines:
                for line in lines:
                    if line.endswith("\n"):  # the last one may be half written
                        yield json.loads(line)


@dataclass
class Cluster(ApiAccess):
    """A one-node cluster by name; `prefix` is the first half of its addresses, needed for names of your own."""

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
        """Start it, or what is missing of it."""
        self._script("up", timeout=600)

    def down(self, keep_images: bool = False) -> None:
        """Stop it and remove every trace, but the image store if asked to."""
        self._script("down", *(["--keep-images"] if keep_images else []), timeout=300)

    def is_up(self) -> bool:
        """Whether all its processes run and the API server answers."""
        try:
            self._script("status", timeout=60)
        except ClusterError:
            return False
        return True

    def load(self, *archives: str | Path) -> None:
        """Import image archives; those already there cost nothing."""
        self._script("load", *map(str, archives), timeout=600)

    def install_spark_operator(self, namespace: str, image: str) -> None:
        """Install the real chart, watching `namespace`; `image` is SPARK_IMAGE of `build_images`."""
        run_script("spark-operator.sh", self.name, namespace, image, timeout=400)


class ApiOnly(ApiAccess):
    """An API server with etcd and controller manager on a free port of 127.0.0.1, gone at the end of the block."""

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
        self.server = re.search(r'server: "([^"]+)"', self.kubeconfig.read_text())[1]  # type: ignore[index]
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
