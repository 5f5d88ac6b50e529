"""The line that Kubernetes keeps of a container that has ended."""

from __future__ import annotations

from pathlib import Path

#: Kubernetes keeps 4096 bytes of a termination message; the rest is room for the line end.
TERMINATION_LOG_BYTES = 4000


def write_termination_message(text: str, path: Path) -> None:
    """Write the first line of `text` as the termination message; outside a pod the file does not exist and stays so."""
    # a name of a file that is not UTF-8 has lone surrogates, which must not cost the message and the exit code
    line = text.splitlines()[0].encode(errors="backslashreplace")[:TERMINATION_LOG_BYTES]
    try:
        with path.open("r+", encoding="utf-8") as log:
            log.write(line.decode(errors="ignore") + "\n")
            log.truncate()
    except OSError:
        return
