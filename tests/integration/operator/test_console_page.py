"""The console in a real browser, with real keys; pictures of it are written to build/reports."""

from __future__ import annotations

import asyncio
import itertools
import time
from collections.abc import AsyncIterator
from contextlib import ExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from ots_tunnel_operator.console.console import Console, StandsStill
from ots_tunnel_operator.console.server import ConsoleServer
from ots_tunnel_operator.kube.errors import KubeError
from ots_tunnel_operator.metrics import OperatorMetrics
from ots_tunnel_operator.server import Health
from tests.support.operator.console_fleet import ListedFleet, looked_at, many, with_channels
from tests.support.operator.plugin_objects import body, by_shards, conditions, expired, healthy, late, unreachable
from tests.support.programs.browser import Page, browser_page

REPORTS = Path(__file__).parents[3] / "build" / "reports"
LEASE = "ots-tunnel-system/ots-tunnel-operator"
EVIL = "<img src=x onerror=\"document.title='owned'\"><script>document.title='owned'</script>\u202e'\"&amp;"

pytestmark = [
    pytest.mark.timeout(180),
    pytest.mark.xdist_group("page"),  # with the emulator's page: one browser at a time
]


def fleet() -> ListedFleet:
    """Four objects: one that waits for a person, one that is late, one that cannot be observed, one that works."""
    found, now = ListedFleet(), time.time()
    for name, ott in (("old", expired()), ("late", late()), ("unknown", unreachable()), ("orders", healthy())):
        ott.body["metadata"] |= {"name": f"{name}-copy", "uid": name}
        found.objects.append(looked_at(ott.body, now))
    found.objects[1] = (found.objects[1][0], with_channels(now))
    return found


class Scene:
    """A console, its server, and a page that shows it."""

    def __init__(self, page: Page) -> None:
        self.page = page
        self.health = Health(OperatorMetrics())
        self.health.ready = self.health.leading = True
        self.console = Console(self.health, LEASE)
        self._server = ExitStack()
        self.port = 0

    def serve(self) -> None:
        """Begin to serve, at the port of the last time."""
        self.port = self._server.enter_context(ConsoleServer(self.console, "127.0.0.1", self.port)).port

    def end(self) -> None:
        """Serve no longer."""
        self._server.close()

    async def show(
        self, fragment: str = "", ready: str = "!document.querySelector('main section:not([hidden])') === false"
    ) -> None:
        await self.page.open(f"http://127.0.0.1:{self.port}/{fragment}")
        await self.page.until(ready)


@asynccontextmanager
async def showing(folder: Path, objects: ListedFleet | None) -> AsyncIterator[Scene]:
    async with browser_page(folder) as page:
        scene = Scene(page)
        scene.serve()
        task = None if objects is None else asyncio.create_task(scene.console.follow(objects))
        await asyncio.sleep(0)
        try:
            yield scene
        finally:
            scene.end()
            if task is not None:
                task.cancel()


ROWS = "[...document.querySelectorAll('#objects tbody tr')].map(row => row.cells[0].innerText)"
DETAIL = "document.querySelectorAll('#detail h3').length"
FOCUS = "(node => /INPUT|SELECT/.test(node.tagName) ? node.id : node.innerText)(document.activeElement)"
ALARM = "(node => node.hidden ? '' : node.innerText)(document.getElementById('alarm'))"


async def test_the_fleet_what_needs_a_person_first(tmp_path: Path) -> None:
    async with showing(tmp_path, fleet()) as scene:
        page = scene.page
        await page.resize(1400)
        await scene.show(ready=f"{ROWS}.length === 4")

        assert await page.value(ROWS) == ["old-copy", "late-copy", "unknown-copy", "orders-copy"]
        text = await page.text("#fleet")
        for expected in ("4 objects: needs you 1, has a problem 2, works 1", "8m20s", "61 %", "2 of 3", "4, 1 unowned"):
            assert expected in text, expected
        assert "LagHigh: the slowest channel is more than" in text
        # every answer counts from 12 s of lag on
        await page.value("document.querySelector('th[data-key=lag] button').click()")
        assert await page.value(ROWS) == ["orders-copy", "unknown-copy", "late-copy", "old-copy"]
        await page.value("document.querySelector('th[data-key=lag] button').click()")
        # what is unknown is last in whichever order
        assert await page.value(ROWS) == ["late-copy", "orders-copy", "unknown-copy", "old-copy"]
        assert await page.value("document.querySelector('th[data-key=lag]').getAttribute('aria-sort')") == "descending"
        await page.value(
            "{ const e = document.getElementById('state'); e.value = 'trouble'; e.dispatchEvent(new Event('change')); }"
        )
        assert await page.value(ROWS) == ["late-copy", "unknown-copy", "old-copy"]
        # a reload shows the same
        await page.call("Page.reload")
        await page.until(f"{ROWS}.join() === 'late-copy,unknown-copy,old-copy'")
        assert await page.value("document.getElementById('state').value") == "trouble"
        await page.picture(REPORTS / "console-fleet.png")
        assert page.complaints == []


async def test_one_object_with_its_channels_and_its_way_out(tmp_path: Path) -> None:
    objects = fleet()
    async with showing(tmp_path, objects) as scene:
        page = scene.page
        for number in range(30):
            scene.console.sample(objects, missed=int(number == 10))
        await page.resize(1400)
        await scene.show("#object=shop%2Flate-copy", DETAIL)

        text = await page.text("#object")
        for expected in (
            "shop/late-copy",
            "shop/late-copy: existing rows and changes of table orders in shop -> table orders in shop-dr",
            "The slowest channel is 8 min 20 s behind (it counts as late from 1 min)",
            "kubectl -n shop scale ott/late-copy --replicas=4",
            "in memory only, since it began to lead",
            "Gaps are times in which it was not known.",
            "4 open, 4 terminated, 1 unowned",
            "orders-copy-7d4f-aaaaa",
            "OTSServerBusy: try again",
            "gave no answer: by the service's description",
            "client visitor",
            "A full bar is 8m20s of lag.",
            "docs/operations.md#laghigh explains it.",
            "rolling out 1 of 3",
        ):
            assert expected in text, expected
        widths = "[...document.querySelectorAll('svg.bar rect')].map(bar => bar.getBoundingClientRect().width)"
        shown = await page.value(widths)
        assert len(shown) == 4  # the lag of the fifth channel is not known
        assert shown[0] > 100 > 10 > shown[-1]
        label = await page.value("document.querySelector('svg.spark').getAttribute('aria-label')")
        assert label == "Lag of the last 8m: now 8m20s, at most 8m20s"
        assert await page.value("document.querySelectorAll('svg.spark polyline').length") == 2
        await page.picture(REPORTS / "console-object.png")
        assert page.complaints == []


async def test_an_object_without_a_tunnel_has_shards(tmp_path: Path) -> None:
    found, now = by_shards(), time.time()
    objects = ListedFleet()
    objects.objects.append((dict(found.body), with_channels(now)))
    async with showing(tmp_path, objects) as scene:
        page = scene.page
        await page.resize(1400)
        await scene.show("#object=shop%2Forders-copy", DETAIL)

        text = await page.text("#object")
        for expected in (
            "shop/orders-copy: changes of table orders in shop",
            "5 shards are read",
            "Shards over workers",
            "5 shards: 5 open.",
            "2 shards; 2,650 rows/s; busy 61 %",
            "gave no answer: by its leases",
            "client visitor",
        ):
            assert expected in text, expected
        assert "hannel" not in text
        cells = "[...document.querySelectorAll('.holder')].at(-1).querySelector('tbody tr').innerText"
        assert "\t-\t" in await page.value(cells), "the service counts no rows of a shard"
        await page.picture(REPORTS / "console-shards.png")
        assert page.complaints == []


async def test_names_and_messages_are_text_and_nothing_else(tmp_path: Path) -> None:
    found = body("evil")
    # no API server lets a name pass that has a slash, or any of this
    name = EVIL.replace("/", "|")
    found["metadata"] |= {"name": name, "namespace": name, "uid": "evil"}
    found["spec"]["source"]["table"] = found["spec"]["sink"]["tablestore"]["table"] = EVIL
    stalled = ("True", "TunnelExpired", EVIL)
    found["status"]["conditions"] = conditions(Ready=("False", "TunnelExpired", EVIL), Stalled=stalled)
    found["status"]["phase"] = EVIL
    found["status"]["lag"]["slowest"][0] |= {"id": EVIL, "worker": EVIL}
    found["status"]["workers"][0]["name"] = EVIL
    objects = ListedFleet()
    objects.objects = [looked_at(found, posted={(EVIL, EVIL): time.time()})]
    async with showing(tmp_path, objects) as scene:
        page = scene.page
        await scene.show(ready=f"{ROWS}.length === 1")
        assert await page.value(ROWS) == [name]
        assert await page.value("document.querySelectorAll('img, tbody script').length") == 0
        await page.value("document.querySelector('#objects a').click()")
        await page.until(DETAIL)

        text = await page.text("#object")
        assert text.count(EVIL) > 5
        assert f"{name}/{name}" in text
        assert await page.value("document.querySelectorAll('img, main script').length") == 0
        assert "owned" not in (await page.value("document.title")).replace(name, "")
        assert page.complaints == []

        # even a script of ours could make no markup of it
        refused = (
            "(() => { try { document.body.innerHTML = 'x'; return 'made' } catch (error) { return error.name } })()"
        )
        assert await page.value(refused) == "TypeError"


async def test_the_keyboard_reaches_everything(tmp_path: Path) -> None:
    async with showing(tmp_path, fleet()) as scene:
        page = scene.page
        await page.resize(1400)
        await scene.show(ready=f"{ROWS}.length === 4")
        await page.press("/")
        assert await page.value(FOCUS) == "text"
        await page.press("l", "a", "t", "e", "-")
        await page.until(f"{ROWS}.join() === 'late-copy'")
        await page.press("Escape")
        assert len(await page.value(ROWS)) == 4
        seen = []
        for _ in range(30):
            await page.press("Tab")
            seen.append(await page.value(FOCUS))
            if seen[-1] == "late-copy":
                break
        assert seen[-1] == "late-copy"
        assert {"namespace", "state", "Name", "Lag", "Why", "old-copy"} <= set(seen)
        outline = "(style => style.outlineStyle + style.outlineWidth)(getComputedStyle(document.activeElement))"
        assert await page.value(outline) == "solid3px"

        await page.press("Enter")
        await page.until(DETAIL)
        assert await page.value(FOCUS) == "shop/late-copy"
        await page.press("Tab")
        command = await page.value(FOCUS)
        assert command.startswith("kubectl ")
        # the page is drawn anew every second and asks again: the reader keeps the place
        time_of = "Number(document.getElementById('process').innerText.match(/:(\\d\\d) UTC/)[1])"
        before = await page.value(time_of)
        await page.until(f"{time_of} !== {before}")
        assert await page.value(FOCUS) == command

        await page.press("Escape")
        await page.until(f"{FOCUS} === 'late-copy'")
        assert len(await page.value(ROWS)) == 4
        assert page.complaints == []


@pytest.mark.parametrize("width", [320, 780, 1200])
async def test_a_narrow_window_needs_no_sideways_scrolling(tmp_path: Path, width: int) -> None:
    async with showing(tmp_path, fleet()) as scene:
        page = scene.page
        await page.resize(width)
        wide = "document.documentElement.scrollWidth > document.documentElement.clientWidth"
        await scene.show(ready=f"{ROWS}.length === 4")
        assert await page.value(wide) is False
        # where a table has no room, the titles of the columns are beside the cells, and the order is a choice
        is_narrow = width < 1180
        title = await page.value("getComputedStyle(document.querySelector('td'), '::before').content")
        assert title == ('"Name"' if is_narrow else "none")
        assert await page.value("document.getElementById('order').offsetParent !== null") is is_narrow
        await page.picture(REPORTS / f"console-fleet-{width}.png")

        await scene.show("#object=shop%2Flate-copy", DETAIL)
        assert await page.value(wide) is False
        await page.picture(REPORTS / f"console-object-{width}.png")


#: Every element with text of its own: its colour and the colour behind it.
COLOURS = """[...document.querySelectorAll('body *')].filter(node => node.checkVisibility()
  && [...node.childNodes].some(child => child.nodeType === 3 && child.data.trim())).map(node => {
    let behind = node;
    while (behind && getComputedStyle(behind).backgroundColor === 'rgba(0, 0, 0, 0)') behind = behind.parentElement;
    const paper = getComputedStyle(behind || document.body).backgroundColor;
    return [node.textContent.slice(0, 30), getComputedStyle(node).color, paper];
  })"""


def luminance(colour: str) -> float:
    """Relative luminance of `rgb(...)` (WCAG 2.2)."""
    shares = [int(part) / 255 for part in colour.partition("(")[2].rstrip(")").split(",")[:3]]
    linear = [share / 12.92 if share <= 0.04045 else ((share + 0.055) / 1.055) ** 2.4 for share in shares]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one: str, other: str) -> float:
    """Contrast of two colours, 1 to 21."""
    lighter, darker = sorted((luminance(one), luminance(other)), reverse=True)
    return (lighter + 0.05) / (darker + 0.05)


@pytest.mark.parametrize("scheme", ["light", "dark"])
async def test_light_and_dark_are_both_readable(tmp_path: Path, scheme: str) -> None:
    objects = fleet()
    async with showing(tmp_path, objects) as scene:
        page = scene.page
        await page.prefer(scheme)
        for fragment, ready in (
            ("", f"{ROWS}.length === 4"),
            ("#object=shop%2Flate-copy", DETAIL),
        ):
            await scene.show(fragment, ready)
            found: list[Any] = await page.value(COLOURS)
            assert len(found) > 30
            assert [each for each in found if contrast(each[1], each[2]) < 4.5] == []
        paper = await page.value("getComputedStyle(document.body).backgroundColor")
        assert (luminance(paper) > 0.5) is (scheme == "light")
        await page.picture(REPORTS / f"console-object-{scheme}.png")
        scene.end()
        await page.until(ALARM)
        found = [each for each in await page.value(COLOURS) if "No answer" in each[0]]
        assert found
        assert all(contrast(each[1], each[2]) >= 4.5 for each in found)


async def test_a_page_without_answers_says_so_and_recovers(tmp_path: Path) -> None:
    async with showing(tmp_path, fleet()) as scene:
        page = scene.page
        await scene.show(ready=f"{ROWS}.length === 4")
        assert await page.value(ALARM) == ""
        scene.end()

        alarm = await page.until(ALARM, 20)

        assert alarm.startswith("No answer from the operator since 20")
        assert "what is shown is as old as that" in alarm
        assert await page.value("document.title") == "no answer: ots-tunnel"
        assert await page.value("document.getElementById('alarm-text').getAttribute('role')") == "alert"
        # the reader sees it wherever the page is scrolled to
        assert await page.value("document.getElementById('alarm').getBoundingClientRect().top") >= 0
        assert await page.value(ROWS) != []
        old = await page.until(f"{ALARM}.match(/came (\\d+)s ago/)?.[1] > 2")
        assert old
        # another place: what was read is not taken for it
        await page.value("document.querySelector('#objects a').click()")
        await page.until("document.getElementById('detail').innerText === 'asking the operator'")
        await page.value("document.getElementById('home').click()")
        await page.until("!document.getElementById('fleet').hidden")

        scene.serve()
        await page.until(f"{ALARM} === ''", 20)
        assert await page.value(f"{ROWS}.length") == 4


async def test_an_event_loop_that_stands_still_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with showing(tmp_path, fleet()) as scene:
        page = scene.page
        await scene.show(ready=f"{ROWS}.length === 4")

        def stand_still() -> bytes:
            raise StandsStill("the operator's event loop has not run for 61 s")

        monkeypatch.setattr(scene.console, "fleet_json", stand_still)

        assert "(the operator's event loop has not run for 61 s)" in await page.until(ALARM, 20)


async def test_old_figures_are_told(tmp_path: Path) -> None:
    objects = ListedFleet()
    async with showing(tmp_path, objects) as scene:
        # now that the browser has begun, which may take a busy machine so long that all of them are old
        objects.objects = fleet().objects
        objects.objects[0] = looked_at(objects.objects[0][0], time.time() - 300)
        await scene.show(ready=f"{ROWS}.length === 4")

        alarm = await scene.page.until(ALARM)

        assert alarm.startswith("1 object has not been looked at for 1m,")
        ages = await scene.page.value(
            "[...document.querySelectorAll('td[data-title=\"Looked at\"].bad')].map(cell => cell.innerText)"
        )
        assert len(ages) == 1
        assert ages[0].startswith("5m")


async def test_an_api_server_that_does_not_answer_is_told(tmp_path: Path) -> None:
    objects = fleet()
    objects.refusal = KubeError(0, "Stale", "no sign of tablestoretunnels for 40 s")
    async with showing(tmp_path, objects) as scene:
        await scene.show(ready=f"{ROWS}.length === 4")

        assert "no sign of tablestoretunnels for 40 s): what is shown may be old" in await scene.page.until(ALARM)


async def test_a_replica_that_stands_by_says_where_to_look(tmp_path: Path) -> None:
    async with showing(tmp_path, None) as scene:
        scene.health.leading, scene.health.waits_for = False, "operator-6f5d_0c4e"
        await scene.show("#object=shop%2Forders-copy", ALARM)

        alarm = await scene.page.value(ALARM)

        assert "is standing by for operator-6f5d_0c4e: it knows no objects" in alarm
        assert f"kubectl -n ots-tunnel-system port-forward pod/operator-6f5d {scene.port}" in alarm
        await scene.page.value("document.getElementById('back').click()")
        await scene.page.until("!document.getElementById('fleet').hidden")
        assert "No objects" not in await scene.page.text()


async def test_an_operator_that_begins_to_lead_is_given_time_to_look(tmp_path: Path) -> None:
    objects = ListedFleet(healthy().body)
    async with showing(tmp_path, objects) as scene:
        await scene.show(ready=f"{ROWS}.length === 1")

        assert "not yet; status: " in await scene.page.text("#objects")
        assert await scene.page.value(ALARM) == ""


async def test_behind_a_service_the_answer_of_the_leader_is_taken(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with showing(tmp_path, fleet()) as scene:
        standing_by, asked, leader = Health(OperatorMetrics()), itertools.count(), scene.console.fleet_json
        standing_by.ready = True
        other = Console(standing_by, LEASE)

        def answer() -> bytes:
            return other.fleet_json() if next(asked) % 3 < 2 else leader()

        monkeypatch.setattr(scene.console, "fleet_json", answer)

        await scene.show(ready=f"{ROWS}.length === 4")

        assert await scene.page.value(ALARM) == ""


async def test_an_object_that_is_gone_is_told(tmp_path: Path) -> None:
    objects = fleet()
    async with showing(tmp_path, objects) as scene:
        await scene.show("#object=shop%2Forders-copy", DETAIL)
        objects.objects.pop()

        await scene.page.until("document.getElementById('detail').innerText.includes('knows no such object')", 20)


#: How often the page lays out its table, and the rows it then shows, for something that a reader does.
WORK = """(() => {
    const body = document.querySelector('#objects tbody'), seen = new MutationObserver(() => {});
    seen.observe(body.parentNode, {childList: true, subtree: true});
    ACT;
    const added = seen.takeRecords().flatMap(record => [...record.addedNodes]).filter(node => node.nodeName === 'TR');
    seen.disconnect();
    return added.length;
})()"""


async def test_a_thousand_objects_are_shown_row_by_row_once(tmp_path: Path) -> None:
    objects = ListedFleet()
    objects.objects = many(1000, time.time())
    async with showing(tmp_path, objects) as scene:
        page = scene.page
        await scene.show(ready=f"{ROWS}.length === 300")
        assert "1,000 objects: " in await page.text("#count")
        await page.value("document.getElementById('more').click()")
        assert await page.value("document.querySelectorAll('#objects tbody tr').length") == 1000
        for key in ("lag", "name", "state", "why"):
            act = f"document.querySelector('th[data-key={key}] button').click()"
            # an order lays out each line at most once, whatever was shown before
            assert 0 < await page.value(WORK.replace("ACT", act)) <= 1000
            assert await page.value("document.querySelectorAll('#objects tbody tr').length") == 1000
        for key, event in (("text", "input"), ("namespace", "change")):
            box = f"const box = document.getElementById('{key}'); box.value = 'team-07'; "
            assert await page.value(WORK.replace("ACT", box + f"box.dispatchEvent(new Event('{event}'))")) <= 50
        assert len(await page.value(ROWS)) == 50
        assert page.complaints == []
