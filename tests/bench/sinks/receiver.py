"""A web service in a process of its own that counts the CloudEvents of each path.

    python -m tests.bench.sinks.receiver

prints its address, and ends with SIGTERM. POST takes a batch, GET answers with the number of events so far.
"""

from __future__ import annotations

import subprocess
import sys
import urllib.request
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from socket import create_server

from aiohttp import web

#: Begins every event. Inside of a text its quotation marks would have backslashes.
EVENT = b'{"specversion":"1.0",'
STARTING, ANSWERING, ENDING = 30.0, 30.0, 10.0


class Service:
    """Counts the events of each path."""

    def __init__(self) -> None:
        self._found: Counter[str] = Counter()

    async def take(self, request: web.Request) -> web.Response:
        """Count the events of a batch."""
        events = (await request.read()).count(EVENT)
        self._found[request.path] += events  # after the wait, in which other batches are counted
        return web.Response(status=204)

    async def tell(self, request: web.Request) -> web.Response:
        """The number of events so far."""
        return web.Response(text=str(self._found[request.path]))

    def application(self) -> web.Application:
        """The service with its routes."""
        found = web.Application(client_max_size=64 << 20)
        found.router.add_post("/{run}", self.take)
        found.router.add_get("/{run}", self.tell)
        return found


class Receiver:
    """The service as its caller sees it."""

    def __init__(self, address: str) -> None:
        self._address = address

    def url(self, run: str) -> str:
        """Where the events of a run go."""
        return f"{self._address}/{run}"

    def events(self, run: str) -> int:
        """The number of events that came."""
        with urllib.request.urlopen(self.url(run), timeout=ANSWERING) as answer:
            return int(answer.read())


@contextmanager
def running_receiver() -> Iterator[Receiver]:
    """The service in a process, which has the caller's cores.

    Raises:
        RuntimeError: it did not start.
    """
    command = [sys.executable, "-m", "tests.bench.sinks.receiver"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            address = process.stdout.readline().strip()
            if not address:
                raise RuntimeError(f"the receiver ended with status {process.wait(STARTING)}")
            yield Receiver(address)
        finally:
            process.terminate()
            process.wait(ENDING)


def main() -> None:
    """Serve on a free port of loopback."""
    with create_server(("127.0.0.1", 0)) as listening:
        address = f"http://127.0.0.1:{listening.getsockname()[1]}"
        web.run_app(
            Service().application(), sock=listening, access_log=None, print=lambda _: print(address, flush=True)
        )


if __name__ == "__main__":
    main()
