"""The process that checks a document for a worker; see `ots_tunnel.checking`.

    python -m ots_tunnel.commands.worker_process.check KIND PATH

KIND is `tunnel` or `stream`. On standard output are the checked parts, pickled, and the exit code is 0; or the text of
the ConfigError, and it is 2.
"""

from __future__ import annotations

import pickle
import signal
import sys
from collections.abc import Callable, Mapping
from datetime import timezone, tzinfo
from pathlib import Path
from typing import Any, Final

from ots_tunnel.commands.worker_process.checked_document import WRONG
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


def main() -> int:
    """Check one document; the exit code."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # the worker says what has ended it
    kind, path = sys.argv[1:]
    try:
        document = LOADERS[kind](Path(path))
    except ConfigError as error:
        sys.stdout.buffer.write(str(error).encode(errors="surrogateescape"))
        return WRONG
    _Pickler(sys.stdout.buffer).dump(document)
    return 0


if __name__ == "__main__":
    sys.exit(main())
