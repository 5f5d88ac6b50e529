"""Client of the emulator's admin port, and a counter of channel hand-overs."""

from __future__ import annotations

import json
import threading
import urllib.request
from typing import Any


class EmulatorAdmin:
    """Calls of the admin port, each with a deadline."""

    def __init__(self, url: str, timeout: float = 10) -> None:
        self._url = url.rstrip("/")
        self._timeout = timeout

    def get(self, path: str) -> Any:
        """Get the JSON document at a path."""
        with urllib.request.urlopen(f"{self._url}{path}", timeout=self._timeout) as answer:
            return json.load(answer)

    def post(self, path: str, **document: Any) -> Any:
        """Post a JSON document and return the answer's."""
        body = json.dumps(document).encode()
        request = urllib.request.Request(f"{self._url}{path}", body, {"Content-Type": "application/json"})
        with urllib.request.urlopen(request, timeout=self._timeout) as answer:
            return json.load(answer)

    def owners(self) -> dict[str, str]:
        """Map channel id to client id, for every channel that has an owner."""
        state = self.get("/state")
        return {
            channel["id"]: channel["owner"]
            for instance in state["instances"]
            for tunnel in instance["tunnels"]
            for channel in tunnel["channels"]
            if channel["owner"]
        }


class HandOverCounter:
    """Counts how often a channel moves from one client to another; it reads the owners every half second."""

    def __init__(self, admin: EmulatorAdmin, interval: float = 0.5) -> None:
        self._admin = admin
        self._interval = interval
        self._stop = threading.Event()
        self._last: dict[str, str] = {}
        self._thread = threading.Thread(target=self._run, name="hand-overs", daemon=True)
        self.count = 0
        self.missed = 0

    def __enter__(self) -> HandOverCounter:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join(timeout=30)

    def _run(self) -> None:
        while not self._stop.wait(self._interval):
            try:
                owners = self._admin.owners()
            except OSError:
                self.missed += 1
                continue
            self.count += sum(1 for channel, owner in owners.items() if self._last.get(channel, owner) != owner)
            self._last.update(owners)
