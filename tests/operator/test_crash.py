"""An operator that is killed at any write reaches the same final state after its restart.

The server executes every write; the operator is killed before it reads the answer, or right after. The final state of
the restarted operator is compared with the one of an undisturbed run.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from tests.operator.scenes.crash_proxy import Moment
from tests.operator.scenes.end_state import Document, difference, end_state
from tests.operator.scenes.operator_scene import OperatorScene, running_scene
from tests.operator.scenes.snapshot_driver import finish_snapshot
from tests.support.kube.api_server import ApiServer
from tests.support.operator.query_worlds import BY_QUERY

pytestmark = [pytest.mark.api, pytest.mark.timeout(300)]

#: Seconds without a write after which a run is over: six polls of the operator.
QUIET_SECONDS = 3.0
_numbers = itertools.count(1)


@dataclass(frozen=True)
class Story:
    """One course of an object: changes to its spec, preparation before the counted writes, and the end of them."""

    name: str
    is_over: Callable[[OperatorScene], bool]
    changes: dict[str, Any] = field(default_factory=dict)
    prepare: Callable[[OperatorScene, Path, Path], None] | None = None
    last: str = "/poddisruptionbudgets/copy-workers"
    """Path of the last write that every run makes; writes of status figures may follow."""


@dataclass(frozen=True)
class Undisturbed:
    """Writes and final state of a run without a kill."""

    writes: list[str]
    state: Document

    def number(self, part: str) -> int:
        """Number, from 1, of the first write whose path ends with `part`."""
        return next(number for number, write in enumerate(self.writes, 1) if write.endswith(part))


def _workers_wanted(scene: OperatorScene) -> bool:
    pods = scene.kube.list("Pod", scene.namespace)
    return all(map(scene.is_true, ("TunnelReady", "SinkReady"))) and any(
        "copy-" in pod["metadata"]["name"] for pod in pods
    )


def _snapshot_wanted(scene: OperatorScene) -> bool:
    return scene.kube.get("SparkApplication", scene.namespace, "copy-snapshot") is not None


def _query_wanted(scene: OperatorScene) -> bool:
    found = scene.kube.get("SparkApplication", scene.namespace, "copy-stream")
    return found is not None and scene.is_true("TunnelReady")


def _copied_by_spark(scene: OperatorScene) -> bool:
    return scene.status().get("snapshot", {}).get("state") == "Completed" and _workers_wanted(scene)


def _copy_by_spark(scene: OperatorScene, kubeconfig: Path, folder: Path) -> None:
    """Run the operator up to the end of the snapshot, and stop it by SIGTERM."""
    scene.operator.start()
    scene.until(lambda: _snapshot_wanted(scene), "the snapshot's application is there")
    assert scene.operator.stop() == 0
    finish_snapshot(scene, kubeconfig, folder)


SPARK = {"engine": {"baseData": "Spark", "stream": "Workers"}}
CREATION = Story("workers", _workers_wanted)
SNAPSHOT = Story("snapshot", _snapshot_wanted, SPARK, last="/sparkapplications/copy-snapshot")
STREAM_AFTER_SNAPSHOT = Story("stream", _copied_by_spark, SPARK, _copy_by_spark)
QUERY = Story("query", _query_wanted, BY_QUERY, last="/sparkapplications/copy-stream")
STORIES = (CREATION, SNAPSHOT, STREAM_AFTER_SNAPSHOT, QUERY)


class StoryPlayer:
    """Runs stories on one API server, each in a new namespace."""

    def __init__(self, api: ApiServer, folder: Path) -> None:
        self._api = api
        self._folder = folder
        self._undisturbed: dict[str, Undisturbed] = {}

    @contextmanager
    def prepared(self, story: Story) -> Iterator[OperatorScene]:
        """Prepare a story up to its first counted write; the operator does not run yet."""
        name = f"{story.name}-{next(_numbers)}"
        folder = self._folder / name
        folder.mkdir()
        with running_scene(self._api.kubeconfig, name, folder, is_forked=True) as scene:
            scene.create(**story.changes)
            if story.prepare is not None:
                story.prepare(scene, self._api.kubeconfig, folder)
            scene.proxy.arm()
            yield scene

    def undisturbed(self, story: Story) -> Undisturbed:
        """Return the run without a kill; it is made once per story."""
        if story.name not in self._undisturbed:
            with self.prepared(story) as scene:
                scene.operator.start()
                scene.until(lambda: story.is_over(scene), "the story is over")
                scene.until_quiet(QUIET_SECONDS)
                self._undisturbed[story.name] = Undisturbed(list(scene.proxy.writes), end_state(scene))
        return self._undisturbed[story.name]

    def difference_after_kill(self, story: Story, number: int, moment: Moment) -> str:
        """Kill the operator at one write, restart it, and return the difference of the final states as text."""
        expected = self.undisturbed(story)
        with self.prepared(story) as scene:
            scene.arm(number, moment)
            scene.operator.start()
            scene.until(lambda: scene.proxy.killed.is_set() or _is_past(scene, story), "the operator is killed")
            if not scene.proxy.killed.is_set():
                late = number > expected.number(story.last)
                return "" if late else f"only {len(scene.proxy.writes)} writes, the operator was not killed"
            assert not scene.operator.is_running
            scene.operator.start()
            try:
                scene.until(lambda: end_state(scene) == expected.state, "the undisturbed end")
                scene.until_quiet(QUIET_SECONDS / 2)
            except AssertionError:
                return difference(expected.state, end_state(scene)) + "\n" + scene.operator.last_output()
            return difference(expected.state, end_state(scene))


def _is_past(scene: OperatorScene, story: Story) -> bool:
    """Whether the story ended without a kill, because this run had fewer writes of figures."""
    if not story.is_over(scene):
        return False
    scene.until_quiet(QUIET_SECONDS)
    return True


@pytest.fixture(scope="module")
def player(spark_api_server: ApiServer, tmp_path_factory: pytest.TempPathFactory) -> StoryPlayer:
    return StoryPlayer(spark_api_server, tmp_path_factory.mktemp("crash"))


@pytest.mark.unmeasured
@pytest.mark.xdist_group("crash")  # they compare with one undisturbed run
@pytest.mark.lasts(14)
@pytest.mark.parametrize(
    ("story", "path", "moment"),
    [
        (CREATION, "/tablestoretunnels/copy/status", Moment.AFTER),
        (CREATION, "/CreateTable", Moment.BEFORE),
        (CREATION, "/tunnel/create", Moment.BEFORE),
        (STREAM_AFTER_SNAPSHOT, "/tablestoretunnels/copy/status", Moment.BEFORE),
        (QUERY, "/sparkapplications/copy-stream", Moment.BEFORE),
    ],
    ids=["first-status", "create-table", "create-tunnel", "snapshot-recorded", "query-applied"],
)
def test_killed_at_a_write_that_matters(player: StoryPlayer, story: Story, path: str, moment: Moment) -> None:
    number = player.undisturbed(story).number(path)

    assert player.difference_after_kill(story, number, moment) == ""


@pytest.mark.long
@pytest.mark.lasts(250)
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("moment", list(Moment))
@pytest.mark.parametrize("story", STORIES, ids=lambda story: story.name)
def test_killed_at_every_write(player: StoryPlayer, story: Story, moment: Moment) -> None:
    writes = player.undisturbed(story).writes
    print(f"{story.name}: {len(writes)} writes")

    failed: list[str] = []
    for number, write in enumerate(writes, 1):
        if found := player.difference_after_kill(story, number, moment):
            failed.append(f"killed {moment} the answer of write {number} {write}:\n{found}")
            print(failed[-1])

    assert not failed, "\n\n".join(failed)
