"""The process that checks a document for a worker; see `ots_tunnel.checking`.

    python -m ots_tunnel.commands.worker_process.check KIND PATH FD

KIND is `tunnel` or `stream`. To the open file FD goes a byte of `checking.outcome` and what that says.
"""

from __future__ import annotations

import pickle
import signal
import sys
import traceback
from collections.abc import Callable, Mapping
from datetime import timezone, tzinfo
from pathlib import Path
from typing import Any, BinaryIO, Final

from ots_tunnel.checking.outcome import Outcome
from ots_tunnel.config import load_config, load_stream_document
from ots_tunnel.config.worker_document import WorkerDocument
from ots_tunnel.errors import ConfigError

LOADERS: Final[Mapping[str, Callable[[Path], WorkerDocument]]] = {"tunnel": load_config, "stream": load_stream_document}


class _Pickler(pickle.Pickler):
    """Writes time zones as the standard library's: pydantic's own type would have it imported where they are read."""

    def reducer_override(self, value: Any) -> Any:
        if isinstance(value, tzinfo) and not isinstance(value, timezone):
            return timezone, (value.utcoffset(None),)
        return NotImplemented


def main() -> None:
    """Check one document."""
    for number in (signal.SIGINT, signal.SIGPIPE):  # the worker says what has ended it, or has ended
        signal.signal(number, signal.SIG_DFL)
    kind, path, answer = sys.argv[1:]
    with open(int(answer), "wb") as file:
        _check(LOADERS[kind], Path(path), file)


def _check(load: Callable[[Path], WorkerDocument], path: Path, answer: BinaryIO) -> None:
    try:
        document = load(path)
    except ConfigError as error:
        answer.write(Outcome.WRONG.value + str(error).encode(errors="surrogatepass"))
        return
    except Exception as error:
        # the pod's termination message has to say why the worker ended, also for a bug
        traceback.print_exc()
        text = "".join(traceback.format_exception_only(error)).strip()
        answer.write(Outcome.FAILED.value + text.encode(errors="backslashreplace"))
        return
    answer.write(Outcome.CHECKED.value)
    _Pickler(answer).dump(document)


if __name__ == "__main__":
    main()
