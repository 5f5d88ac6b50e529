"""Has the document of a worker checked by another process; see `ots_tunnel.checking`."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from ots_tunnel import checking
from ots_tunnel.errors import ConfigError, NotChecked

if TYPE_CHECKING:
    from ots_tunnel.config import StreamDocument, WorkerConfig

#: Exit code of a process that has written why the document is wrong.
WRONG: Final = 2


def worker_config(path: Path) -> WorkerConfig:
    """Read the document of `ots-tunnel run`, checked.

    Raises:
        ConfigError: see `config.load_config`. NotChecked: nothing has checked it.
    """
    if _checks_here():
        from ots_tunnel.config import load_config

        return load_config(path)
    found: WorkerConfig = _checked("tunnel", path)
    return found


def stream_document(path: Path) -> StreamDocument:
    """Read the document of `ots-tunnel stream run`, checked.

    Raises:
        ConfigError: see `config.load_stream_document`. NotChecked: nothing has checked it.
    """
    if _checks_here():
        from ots_tunnel.config import load_stream_document

        return load_stream_document(path)
    found: StreamDocument = _checked("stream", path)
    return found


def _checks_here() -> bool:
    """Whether this process has the models that check."""
    return "ots_tunnel.config" in sys.modules and not checking.is_apart


def _checked(kind: str, path: Path) -> Any:
    checking.is_apart = True
    # what this process imports the other one imports, and nothing of the working directory
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join(folder for folder in sys.path if folder),
        "PYTHONSAFEPATH": "1",
    }
    command = (sys.executable, "-m", "ots_tunnel.commands.worker_process.check", kind, str(path))
    # a path may name a file that is open in this process, such as /dev/fd/63
    ended = subprocess.run(command, env=environment, stdout=subprocess.PIPE, check=False, close_fds=False)
    if ended.returncode == WRONG:
        raise ConfigError(ended.stdout.decode(errors="surrogateescape"))
    if ended.returncode:
        raise NotChecked(f"{path}: the process that checks it ended with {ended.returncode}; its output says more")
    return pickle.loads(ended.stdout)  # of our own program
