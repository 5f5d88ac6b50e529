"""A worker loads the libraries of its own work alone: what others need would be in the memory of each worker."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.programs.processes import bare_environment, unmeasured

#: Of other sinks and other commands; of the operator, Spark and the emulator; HTTP as a server or a general client;
#: and what has checked the document, in another process.
FOREIGN = {
    "aiohttp",
    "confluent_kafka",
    "kopf",
    "kubernetes",
    "http.client",
    "http.server",
    "multiprocessing",
    "numpy",
    "obstore",
    "ots_emulator",
    "ots_tunnel_operator",
    "pandas",
    "prometheus_client",
    "pyarrow",
    "pydantic",
    "pydantic_core",
    "pyspark",
    "rich",
    "sqlite3",
    "tablestore",
    "unittest",
    "urllib.request",
    "uvloop",
    "xml",
    "yaml",
}
#: What `ots-tunnel run` imports until it connects.
PROGRAM = """
import sys
from pathlib import Path
from ots_tunnel import allocator, cli, logs
from ots_tunnel.commands.worker_process.checked_document import worker_config
from ots_tunnel.commands import run
document = worker_config(Path(sys.argv[1]))
from ots_tunnel.client import tunnel
from ots_tunnel.commands import preflight
from ots_tunnel.sinks.choice import open_sink
from ots_tunnel.worker import worker
from ots_tunnel.worker.gaps import read_mark
from ots_tunnel.worker.status import metrics, server
open_sink(document)
print(*sys.modules)
"""


def place(folder: Path) -> str:
    return f"endpoint: http://127.0.0.1:1, instance: demo, credentials: {{directory: {folder}}}"


def printed(program: str, lines: str, folder: Path) -> str:
    """What a program prints that gets a worker's document with these lines."""
    for name in ("accessKeyId", "accessKeySecret"):
        (folder / name).write_text("x")
    document = folder / "worker.yaml"
    document.write_text(f"source: {{{place(folder)}, table: orders, tunnelName: copy, tunnelId: id}}\n{lines}\n")
    done = subprocess.run(
        [sys.executable, "-c", program, str(document)],
        env=unmeasured(bare_environment()),
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize("sink", ["count", "tablestore"])
def test_a_worker_starts_without_what_it_does_not_need(sink: str, tmp_path: Path) -> None:
    section = f"{{{place(tmp_path)}, table: copied}}" if sink == "tablestore" else "{}"
    modules = printed(PROGRAM, f"sink: {{{sink}: {section}}}", tmp_path)

    assert not FOREIGN & set(modules.split())


#: What the program has imported when it reads the document of a worker, which is none here.
STARTED = """
import sys
from ots_tunnel import cli
try:
    cli.main()
except SystemExit as ended:
    print(ended.code, *sys.modules)
"""


@pytest.mark.parametrize("command", [("run",), ("stream", "run")])
def test_no_command_of_a_worker_loads_what_checks_documents(command: tuple[str, ...], tmp_path: Path) -> None:
    leave = "from ots_tunnel.commands.worker_process import process; process.leave = sys.exit; "
    document = str(tmp_path / "worker.yaml")
    done = subprocess.run(
        [sys.executable, "-c", STARTED.replace("try:", f"{leave}\ntry:"), *command, "--config", document],
        env=unmeasured(bare_environment()),
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )

    code, *modules = done.stdout.split()
    assert code == "2", done.stderr
    assert f"{document}: No such file or directory" in done.stderr
    assert not {"ots_tunnel.config", "pydantic", "yaml"} & set(modules)


OPENED = """
import sys
from pathlib import Path
from ots_tunnel.commands.worker_process.checked_document import worker_config
document = worker_config(Path(sys.argv[1]))
from ots_tunnel.sinks.choice import open_sink
print(open_sink(document))
"""


@pytest.mark.parametrize(
    "sink",
    ["count: {}", "stdout: {}", "files: {url: 'file:///%s'}", "http: {url: 'http://127.0.0.1:1/in'}"],
    ids=lambda text: text.partition(":")[0],
)
def test_a_sink_takes_a_document_that_another_process_has_checked(sink: str, tmp_path: Path) -> None:
    """Its parts have attributes alone, and nothing else of a model."""
    lines = f"""
sink: {{{sink.replace("%s", str(tmp_path / "out"))}}}
delivery: {{columns: {{exclude: [note], rename: {{price: preis}}}}, filter: {{actions: [PUT]}}}}
"""

    assert printed(OPENED, lines, tmp_path)
