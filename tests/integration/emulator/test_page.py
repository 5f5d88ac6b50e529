"""The admin page in a real browser shows the emulator's state. A picture of it is written to build/reports."""

from __future__ import annotations

import json
import re
import subprocess
from html import unescape
from pathlib import Path

import pytest

from ots_emulator import Emulator, Settings
from ots_emulator.admin import application
from ots_emulator.server.history import CallRecord
from ots_tunnel.client.sync_table import SyncTableClient
from ots_tunnel.client.sync_tunnel import SyncTunnelClient
from ots_tunnel.client.table_calls import RowChange
from ots_tunnel.model import Action, Credentials, KeyColumn, KeyType, TunnelType
from ots_tunnel.protocol.plainbuffer.codec import encode_row
from ots_tunnel.protocol.plainbuffer.column import Column
from ots_tunnel.tables import TableAdmin, TableSchema
from tests.support.lacking import lack
from tests.support.programs.browser import PROGRAM, QUIET

REPORTS = Path(__file__).parents[3] / "build" / "reports"
KEYS = Credentials("test-id", "test-secret")

pytestmark = [
    pytest.mark.timeout(120),
    pytest.mark.usefixtures("chromium"),
    pytest.mark.xdist_group("page"),  # they share one browser
]


@pytest.fixture(scope="module")
def chromium() -> None:
    """There is a browser."""
    if PROGRAM is None:
        lack("browser", "no chromium here: tests/cluster/packages.sh browser installs it")


def browse(url: str, folder: Path, *options: str) -> str:
    """The page's elements after its scripts have run for some seconds of virtual time."""
    command = [str(PROGRAM), *QUIET, f"--user-data-dir={folder}", "--virtual-time-budget=4000", *options, url]
    return subprocess.run(command, check=True, capture_output=True, text=True, timeout=60).stdout


def texts(document: str) -> list[str]:
    """The visible texts, in order."""
    body = re.sub(r"<script.*?</script>", "", document.partition("<body>")[2], flags=re.DOTALL)
    return [text for text in (unescape(part).strip() for part in re.split(r"<[^>]+>", body)) if text]


def prepare(emulator: Emulator) -> str:
    """A table with rows and a stream, a tunnel half done, a worker connected, a refused call."""
    admin = TableAdmin(emulator.endpoint, "demo", lambda: KEYS)
    admin.create(TableSchema("orders", (KeyColumn("id", KeyType.INTEGER),)))
    table = SyncTableClient(emulator.endpoint, "demo", lambda: KEYS)
    changes = [
        RowChange(Action.PUT, encode_row((("id", number),), [Column("note", "a secret of a row")]))
        for number in range(150)
    ]
    table.batch_write("orders", changes)
    table.close()
    client = SyncTunnelClient(emulator.endpoint, "demo", KEYS)
    tunnel = client.create_tunnel("orders", "orders-copy", TunnelType.BaseAndStream)
    with pytest.raises(Exception, match="OTSTunnelExist"):
        client.create_tunnel("orders", "orders-copy", TunnelType.BaseAndStream)
    client.close()
    return tunnel


def test_the_page_shows_the_emulators_state(tmp_path: Path) -> None:
    REPORTS.mkdir(parents=True, exist_ok=True)
    picture = REPORTS / "emulator-page.png"
    picture.unlink(missing_ok=True)
    settings = Settings(partitions=3, init_delay=0.0)
    with Emulator(
        {"demo": {"test-id": "test-secret"}, "other": {"test-id": "test-secret"}}, settings=settings
    ) as emulator:
        prepare(emulator)
        document = browse(emulator.admin_url + "/", tmp_path / "dom", "--dump-dom")
        browse(
            emulator.admin_url + "/",
            tmp_path / "picture",
            "--window-size=1280,1100",
            f"--screenshot={picture}",
            "--hide-scrollbars",
        )

    shown = texts(document)
    for expected in (
        "live",
        "Instance demo",
        "Instance other",
        "orders",
        "150",
        "orders-copy",
        "BaseAndStream of table orders, ProcessBaseData",
        "BaseData_0",
        "BaseData",
        "Stream",
        "WAIT",
        "no clients",
        "no tables",
        "CreateTable",
        "BatchWriteRow",
        "tunnel/create",
        "OTSTunnelExist",
        "409",
    ):
        assert expected in shown, expected
    assert "0 of 6 channels done, consumed up to never" in shown
    assert "secret" not in document.partition("<body>")[2]
    assert picture.stat().st_size > 20_000


def test_client_names_are_shown_as_text(tmp_path: Path) -> None:
    evil = "<img src=x onerror=document.title='owned'>"
    with Emulator({evil: {"test-id": "test-secret"}}) as emulator:
        document = browse(emulator.admin_url + "/", tmp_path, "--dump-dom")

    assert f"Instance {evil}" in texts(document)
    assert "<img" not in document
    assert "<title>ots-emulator</title>" in document


def test_the_page_copes_with_hundreds_of_channels(tmp_path: Path) -> None:
    with Emulator(settings=Settings(partitions=200, init_delay=0.0, partition_rows=2)) as emulator:
        tunnel = prepare(emulator)
        document = browse(emulator.admin_url + "/", tmp_path, "--dump-dom")
        state = emulator.call("state")

    channels = len(state["instances"][0]["tunnels"][0]["channels"])
    assert channels >= 200
    assert any(text.startswith(f"0 of {channels} channels done") for text in texts(document))
    assert tunnel not in texts(document)


#: Sets focus, selection and scroll position, and reports after two more looks of the page what is left of them.
PROBE = """<pre id="probe"></pre><script>
  const calls = document.getElementById("calls");
  const report = () => [document.activeElement.tagName, String(getSelection()), calls.scrollTop];
  setTimeout(() => {
    document.querySelector("summary").focus();
    getSelection().selectAllChildren(document.querySelector("td.id"));
    calls.scrollTop = 7;
    const before = report();
    setTimeout(() => {
      const result = { before, after: report(), width: document.documentElement.scrollWidth, view: innerWidth };
      document.getElementById("probe").textContent = "RESULT " + JSON.stringify(result);
    }, 2500);
  }, 700);
</script></body>"""


def test_a_reader_keeps_focus_selection_and_place_in_a_narrow_window(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    page = tmp_path / "page.html"
    page.write_bytes(application.PAGE.read_bytes().replace(b"</body>", PROBE.encode()))
    monkeypatch.setattr(application, "PAGE", page)
    with Emulator(settings=Settings(init_delay=0.0)) as emulator:
        prepare(emulator)
        for number in range(60):
            emulator.history.add(CallRecord(1.7e9 + number, "demo", "GetRow", 200, "", 0.1, 10, 10))
        url = emulator.admin_url + "/"
        document = browse(url, tmp_path / "dom", "--window-size=400,800", "--dump-dom", "--virtual-time-budget=6000")

    (result,) = [json.loads(text.removeprefix("RESULT ")) for text in texts(document) if text.startswith("RESULT ")]
    assert result["before"] == ["SUMMARY", "BaseData_0", 7]
    assert result["after"] == result["before"]
    assert result["width"] <= result["view"]
