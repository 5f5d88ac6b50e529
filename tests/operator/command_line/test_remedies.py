"""What the plugin tells people to type is taken by kubectl, flag by flag."""

from __future__ import annotations

import shlex
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from ots_tunnel_operator.plugin.serving import Serving
from ots_tunnel_operator.plugin.why.advice import next_steps, steps_for
from ots_tunnel_operator.plugin.why.remedies import REMEDIES
from tests.support.kube.api_server import cache, missing_program
from tests.support.lacking import lack
from tests.support.operator.plugin_objects import STATES, late

pytestmark = pytest.mark.api

GONE = Serving("ops/ott")
#: No API server listens here: kubectl reads every flag before it calls one.
NOWHERE = "--server=http://127.0.0.1:9"


def kubectl_lines() -> Iterator[str]:
    steps = [step for reason in REMEDIES for step in steps_for(late(), reason)]
    steps += [step for make in STATES.values() for gone in (None, GONE) for step in next_steps(make(), gone)]
    lines = {line for step in steps for line in step.commands}
    yield from sorted(line for line in lines if line.startswith("kubectl ") and not line.startswith("kubectl ott "))


@pytest.mark.parametrize("line", list(kubectl_lines()))
def test_kubectl_has_every_flag(line: str, tmp_path: Path) -> None:
    if reason := missing_program("kubectl"):
        lack("kubernetes", reason)
    for key in ("accessKeyId", "accessKeySecret"):
        (tmp_path / key).write_text("k")
    for part in line.split(" | "):
        command = [str(cache() / "bin" / "kubectl"), *shlex.split(part)[1:], NOWHERE]
        done = subprocess.run(command, cwd=tmp_path, input="", capture_output=True, text=True, timeout=60, check=False)

        assert "unknown" not in done.stderr, done.stderr
