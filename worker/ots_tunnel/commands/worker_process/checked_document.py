"""Has the document of a worker checked by another process; see `ots_tunnel.checking`."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ots_tunnel import checking
from ots_tunnel.checking.outcome import Outcome
from ots_tunnel.errors import ConfigError, NotChecked

if TYPE_CHECKING:
    from ots_tunnel.config import StreamDocument, WorkerConfig


def worker_config(path: Path) -> WorkerConfig:
    """Read the document of `ots-tunnel run`, checked.

    Raises:
        ConfigError: see `config.load_config`. NotChecked: nothing has checked it.
    """
    found: WorkerConfig = _read("tunnel", path)
    return found


def stream_document(path: Path) -> StreamDocument:
    """Read the document of `ots-tunnel stream run`, checked.

    Raises:
        ConfigError: see `config.load_stream_document`. NotChecked: nothing has checked it.
    """
    found: StreamDocument = _read("stream", path)
    return found


def _read(kind: str, path: Path) -> Any:
    if _checks_here():
        from ots_tunnel.commands.worker_process.check import LOADERS

        return LOADERS[kind](path)
    return _checked(kind, path)


def _checks_here() -> bool:
    """Whether this process has the models that check."""
    return "ots_tunnel.config" in sys.modules and not checking.is_apart


def _checked(kind: str, path: Path) -> Any:
    checking.is_apart = True
    try:
        answer, status = _answer(kind, path)
    except OSError as error:  # such as a limit of processes
        raise NotChecked(f"{path}: the process that checks it cannot be started: {error}") from error
    content = answer[1:]
    try:
        match answer[:1]:
            case Outcome.CHECKED.value:
                return pickle.loads(content)  # of our own program
            case Outcome.WRONG.value:
                raise ConfigError(content.decode(errors="surrogatepass"))
            case Outcome.FAILED.value:
                raise NotChecked(f"{path}: the process that checks it failed: {content.decode()}")
    except (EOFError, pickle.UnpicklingError):  # it was ended while it wrote
        pass
    raise NotChecked(f"{path}: the process that checks it was ended, with {status}, such as by a limit of memory")


def _answer(kind: str, path: Path) -> tuple[bytes, int]:
    """What the other process writes, and its exit code."""
    reading, writing = os.pipe()
    with open(reading, "rb") as answer:
        try:
            # not its standard output, on which anything that is installed may print
            os.set_inheritable(writing, True)
            command = (sys.executable, "-m", "ots_tunnel.commands.worker_process.check", kind, str(path), str(writing))
            # what this process imports the other one imports, and nothing of the working directory
            environment = {
                **os.environ,
                "PYTHONPATH": os.pathsep.join(folder for folder in sys.path if folder),
                "PYTHONSAFEPATH": "1",
            }
            # the path may name a file that is open in this process, such as /dev/fd/63
            started = subprocess.Popen(command, env=environment, close_fds=False)
        finally:
            os.close(writing)
        with started:
            return answer.read(), started.wait()
