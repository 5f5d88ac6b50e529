"""Reads from the API server by `kubectl`, with the rights, the logins and the settings of its caller."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Sequence
from typing import Any

from ots_tunnel.errors import ConfigError, TunnelError

#: Seconds that one call may take: a login of the caller may ask for a browser.
DEADLINE = 60.0


class KubectlFailed(TunnelError):
    """The API server refused a read, or was not reached."""


class Kubectl:
    """Reads objects.

    Args:
        context: of the kubeconfig; empty means the current one.
    """

    def __init__(self, context: str = "") -> None:
        self._options = ("--context", context) if context else ()

    def get(self, kind: str, namespace: str, name: str) -> dict[str, Any]:
        """One object as the API server has it.

        Raises:
            ConfigError: there is no kubectl, no such context, or no such object.
            KubectlFailed: the API server refused, or was not reached in time; kubectl's own words.
        """
        text = self._run(["get", kind, name, "--namespace", namespace, "--output", "json"])
        document = json.loads(text)
        assert isinstance(document, dict), "kubectl prints one object"
        return document

    def _run(self, arguments: Sequence[str]) -> str:
        program = shutil.which("kubectl")
        if program is None:
            raise ConfigError("--from-object: kubectl is not installed, or not on the PATH")
        try:
            done = subprocess.run(
                [program, *self._options, *arguments], capture_output=True, text=True, timeout=DEADLINE, check=False
            )
        except subprocess.TimeoutExpired:
            raise KubectlFailed(f"kubectl {' '.join(arguments)}: no answer within {DEADLINE:g} s") from None
        if done.returncode == 0:
            return done.stdout
        words = " ".join(done.stderr.split()) or f"it ended with {done.returncode}"
        if "(NotFound)" in words or ("context" in words and "does not exist" in words):
            raise ConfigError(f"--from-object: {words}")
        raise KubectlFailed(f"kubectl {' '.join(arguments)}: {words}")
