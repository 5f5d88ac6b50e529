"""A headless Chromium, driven by its DevTools protocol: real keys, a real layout, and what a reader would see."""

from __future__ import annotations

import asyncio
import base64
import itertools
import json
import shutil
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp

from tests.support.lacking import lack
from tests.support.waiting import until

PROGRAM = shutil.which("chromium")
QUIET = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-sync",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-dev-shm-usage",
)
#: For a browser that a test drives.
DRIVEN = (*QUIET, "--hide-scrollbars", "--remote-debugging-port=0")
#: Key -> its code for the browser, and the text that it types.
KEYS = {
    "Tab": ("Tab", 9, ""),
    "Enter": ("Enter", 13, "\r"),
    "Escape": ("Escape", 27, ""),
    "/": ("Slash", 191, "/"),
}
#: Seconds that the browser has for one answer.
ANSWER_SECONDS = 30.0


class Page:
    """One page; `complaints` has every error of a script, and everything that the browser refused to load or to run."""

    def __init__(self, socket: aiohttp.ClientWebSocketResponse) -> None:
        self.complaints: list[str] = []
        self._socket = socket
        self._session = ""
        self._numbers = itertools.count(1)
        self._waiting: dict[int, asyncio.Future[dict[str, Any]]] = {}

    async def listen(self) -> None:
        """Take answers and events until the browser ends."""
        async for message in self._socket:
            found = json.loads(message.data)
            if "id" in found:
                self._waiting.pop(found["id"]).set_result(found)
            elif found["method"] == "Runtime.exceptionThrown":
                self.complaints.append(json.dumps(found["params"]["exceptionDetails"]))
            elif found["method"] == "Log.entryAdded" and found["params"]["entry"]["level"] == "error":
                self.complaints.append(found["params"]["entry"]["text"])

    async def call(self, method: str, **params: Any) -> dict[str, Any]:
        """Call a method of the protocol; its result."""
        number = next(self._numbers)
        future: asyncio.Future[dict[str, Any]] = asyncio.get_running_loop().create_future()
        self._waiting[number] = future
        message = {"id": number, "method": method, "params": params}
        await self._socket.send_json(message | ({"sessionId": self._session} if self._session else {}))
        async with asyncio.timeout(ANSWER_SECONDS):
            answer = await future
        assert "error" not in answer, (method, answer)
        found: dict[str, Any] = answer["result"]
        return found

    async def attach(self) -> None:
        """Make a page, and speak to it from now on."""
        target = await self.call("Target.createTarget", url="about:blank")
        found = await self.call("Target.attachToTarget", targetId=target["targetId"], flatten=True)
        self._session = found["sessionId"]
        for method in ("Page.enable", "Runtime.enable", "Log.enable"):
            await self.call(method)

    async def open(self, url: str) -> None:
        """Open an address."""
        await self.call("Page.navigate", url=url)

    async def value(self, expression: str) -> Any:
        """The value of an expression in the page; errors of a page that is being loaded are None."""
        found = await self.call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        return None if "exceptionDetails" in found else found["result"].get("value")

    async def until(self, expression: str, seconds: float = 30) -> Any:
        """Wait for an expression to be true; its value."""
        return await until(lambda: self.value(expression), seconds, expression, pause=0.05)

    async def text(self, selector: str = "body") -> str:
        """The visible text of an element."""
        return str(await self.value(f"document.querySelector({json.dumps(selector)}).innerText"))

    async def press(self, *keys: str) -> None:
        """Press keys, one after the other."""
        for key in keys:
            code, number, text = KEYS.get(key, (f"Key{key.upper()}", ord(key.upper()[0]), key))
            values = {"key": key, "code": code, "windowsVirtualKeyCode": number}
            down = {"type": "keyDown", "text": text} if text else {"type": "rawKeyDown"}
            await self.call("Input.dispatchKeyEvent", **down, **values)
            await self.call("Input.dispatchKeyEvent", type="keyUp", **values)

    async def resize(self, width: int, height: int = 900) -> None:
        """Set the size of the window in CSS pixels."""
        values = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False}
        await self.call("Emulation.setDeviceMetricsOverride", **values)

    async def prefer(self, scheme: str) -> None:
        """Set the reader's colour scheme: light or dark."""
        await self.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])

    async def picture(self, path: Path) -> None:
        """Write a picture of the page."""
        found = await self.call("Page.captureScreenshot", format="png", captureBeyondViewport=True)
        await asyncio.to_thread(_write, path, base64.b64decode(found["data"]))


@asynccontextmanager
async def browser_page(folder: Path) -> AsyncIterator[Page]:
    """A page of a new browser, whose files are in this folder."""
    if PROGRAM is None:
        lack("browser", "no chromium here: tests/cluster/packages.sh browser installs it")
    process = await asyncio.create_subprocess_exec(
        PROGRAM,
        *DRIVEN,
        f"--user-data-dir={folder}",
        stdout=asyncio.subprocess.DEVNULL,
        stderr=asyncio.subprocess.DEVNULL,
    )
    try:
        place = folder / "DevToolsActivePort"
        port, path = await until(lambda: _lines(place), 45, "a port of the browser", pause=0.05)
        async with (
            aiohttp.ClientSession() as session,
            session.ws_connect(f"ws://127.0.0.1:{port}{path}", max_msg_size=0) as socket,
        ):
            page = Page(socket)
            listening = asyncio.create_task(page.listen())
            try:
                await page.attach()
                yield page
            finally:
                listening.cancel()
    finally:
        process.terminate()
        async with asyncio.timeout(ANSWER_SECONDS):
            await process.wait()


def _write(path: Path, content: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)


def _lines(place: Path) -> list[str] | None:
    found = place.read_text().split() if place.exists() else []
    return found if len(found) == 2 else None
