"""A copy that a list and a watch keep: what it shows after events, lost events, refusals and silence."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from random import Random
from typing import Any

import pytest

from ots_tunnel_operator.kube import reflector as module
from ots_tunnel_operator.kube.cluster import Change, Listing, Selection
from ots_tunnel_operator.kube.errors import KindMissing, KubeError
from ots_tunnel_operator.kube.kinds import DEPLOYMENT, SPARK_APPLICATION, Manifest
from ots_tunnel_operator.kube.reflector import Reflector
from tests.support.kube.cluster_model import ClusterModel
from tests.support.waiting import until

ALL = Selection(DEPLOYMENT)


def item(name: str, uid: str = "1", **labels: str) -> dict[str, Any]:
    return {"metadata": {"name": name, "namespace": "shop", "uid": uid, "labels": labels}}


class Copy:
    """A running reflector over a model, with the events that it reported."""

    def __init__(self, model: ClusterModel, selection: Selection) -> None:
        self.model = model
        self.events: list[tuple[str, str, str]] = []
        self.lost: list[Selection] = []
        self.reflector = Reflector(
            model, selection, self._changed, lost=self.lost.append, entropy=Random(1), index="team"
        )

    def names(self) -> list[str]:
        return sorted(found["metadata"]["name"] for found in self.reflector.objects())

    def _changed(self, selection: Selection, event: str, manifest: Manifest) -> None:
        self.events.append((event, manifest["metadata"]["name"], manifest["metadata"]["uid"]))


@asynccontextmanager
async def running(model: ClusterModel, selection: Selection = ALL) -> AsyncIterator[Copy]:
    copy = Copy(model, selection)
    task = asyncio.create_task(copy.reflector.run())
    await settle()
    try:
        yield copy
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def settle() -> None:
    for _ in range(20):
        await asyncio.sleep(0)


@pytest.fixture
def model() -> ClusterModel:
    return ClusterModel()


@pytest.fixture(autouse=True)
def no_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "RETRY", module.Backoff(0.0, 1.0, 0.0, 0.0))
    monkeypatch.setattr(module, "SHORTEST_SECONDS", 0.0)


async def test_the_copy_follows_the_events(model: ClusterModel) -> None:
    model.put(DEPLOYMENT, item("old", team="a"))
    async with running(model) as copy:
        await copy.reflector.check()
        model.put(DEPLOYMENT, item("new", team="a"))
        model.put(DEPLOYMENT, item("old", team="b"))
        await settle()

        assert copy.names() == ["new", "old"]
        assert [found["metadata"]["name"] for found in copy.reflector.labelled("shop", "a")] == ["new"]
        model.remove(DEPLOYMENT, "shop", "new")
        await settle()

        assert copy.reflector.get("shop", "new") is None
        assert copy.reflector.labelled("shop", "a") == []
        assert copy.events[-1] == ("DELETED", "new", "1")


async def test_a_deletion_that_no_watch_delivered_leaves_no_ghost(model: ClusterModel) -> None:
    model.put(DEPLOYMENT, item("ghost"))
    async with running(model) as copy:
        model.lose(DEPLOYMENT, "shop", "ghost")
        await settle()

        assert copy.names() == []
        assert copy.events == [("CHANGED", "ghost", "1"), ("DELETED", "ghost", "1")]
        assert model.calls.count(("list", "deployments")) == 2


async def test_an_object_of_the_same_name_is_another_one(model: ClusterModel) -> None:
    model.put(DEPLOYMENT, item("name", uid="1"))
    async with running(model) as copy:
        model.put(DEPLOYMENT, item("name", uid="2"))
        await settle()

        assert copy.events[1:] == [("DELETED", "name", "1"), ("CHANGED", "name", "2")]


async def test_an_answer_to_a_write_is_ahead_of_the_watch_and_is_not_set_back(model: ClusterModel) -> None:
    async with running(model) as copy:
        written = item("mine")
        written["metadata"]["resourceVersion"] = "100"
        copy.reflector.accept(written)
        model.put(DEPLOYMENT, item("mine", team="earlier"))
        await settle()

        found = copy.reflector.get("shop", "mine")
        assert found is not None
        assert found["metadata"]["resourceVersion"] == "100"


async def test_an_answer_about_an_object_that_was_deleted_since_is_ignored(model: ClusterModel) -> None:
    answer = model.put(DEPLOYMENT, item("gone"))
    async with running(model) as copy:
        model.remove(DEPLOYMENT, "shop", "gone")
        await settle()
        copy.reflector.accept(answer)

        assert copy.names() == []


async def test_a_refusal_is_raised_at_once_and_reported_once(model: ClusterModel) -> None:
    async with running(model) as copy:
        model.fail(KubeError(403, "Forbidden", "may not watch"))
        await settle()

        with pytest.raises(KubeError, match="may not watch"):
            await copy.reflector.check()
        assert copy.lost == [ALL]
        model.fail(None)
        await settle()
        await copy.reflector.check()


async def test_a_passing_error_is_raised_only_when_nothing_recent_is_known(
    model: ClusterModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with running(model) as copy:
        model.fail(KubeError(500, "InternalError", "etcd is away"))
        await settle()

        await copy.reflector.check()
        monkeypatch.setattr(module, "PATIENCE_SECONDS", -1.0)
        with pytest.raises(KubeError, match="etcd is away"):
            await copy.reflector.check()


async def test_before_the_first_list_any_error_is_raised(model: ClusterModel) -> None:
    model.fail(KubeError(500, "InternalError", "etcd is away"))
    async with running(model) as copy:
        with pytest.raises(KubeError, match="etcd is away"):
            await copy.reflector.check()


async def test_a_silent_watch_is_not_vouched_for(model: ClusterModel, monkeypatch: pytest.MonkeyPatch) -> None:
    async with running(model) as copy:
        monkeypatch.setattr(module, "STALE_SECONDS", -1.0)

        with pytest.raises(KubeError, match="no sign of deployments"):
            await copy.reflector.check()


class WordlessWatches(ClusterModel):
    """Every watch is accepted and ends without an event: after some seconds, and with an error where one is given."""

    def __init__(self, seconds: float, error: KubeError | None = None) -> None:
        super().__init__()
        self.asked: list[float] = []
        self.seconds = seconds
        self.error = error

    async def watch(self, selection: Selection, since: str, seconds: float) -> AsyncIterator[Change]:
        self.calls.append(("watch", selection.kind.plural))
        self.asked.append(seconds)
        yield Change("BOOKMARK", {"metadata": {"resourceVersion": since}})
        await asyncio.sleep(self.seconds)
        if self.error is not None:
            raise self.error


@pytest.mark.parametrize("error", [None, KubeError(0, "SocketTimeoutError", "silent")], ids=["closed", "silent"])
async def test_what_no_watch_delivers_is_listed(error: KubeError | None) -> None:
    model = WordlessWatches(0.0, error)
    async with running(model) as copy:
        model.put(DEPLOYMENT, item("new"))
        await until(lambda: copy.names() == ["new"], 5)
        model.remove(DEPLOYMENT, "shop", "new")
        await until(lambda: copy.names() == [], 5)


async def test_a_watch_without_a_change_is_no_reason_to_list(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "WATCH_SECONDS", 0.02)
    model = WordlessWatches(0.02)
    async with running(model):
        await until(lambda: model.calls.count(("watch", "deployments")) > 5, 5)

    assert model.calls.count(("list", "deployments")) == 1


async def test_a_kind_that_is_not_installed_has_no_objects(model: ClusterModel) -> None:
    model.put(SPARK_APPLICATION, item("a"))
    async with running(model, Selection(SPARK_APPLICATION)) as copy:
        model.fail(KindMissing(404, "NotFound", "no such kind"))
        await settle()

        await copy.reflector.check()
        assert copy.names() == []


async def test_a_kind_that_is_served_no_more_has_deleted_nothing(
    model: ClusterModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    model.put(DEPLOYMENT, item("a"))
    model.put(DEPLOYMENT, item("b"))
    async with running(model) as copy:
        monkeypatch.setattr(module, "PATIENCE_SECONDS", -1.0)
        monkeypatch.setattr(module, "RETRY", module.Backoff(60.0, 1.0, 60.0, 0.0))
        model.fail(KindMissing(404, "NotFound", "404 page not found"))
        await settle()

        assert copy.names() == ["a", "b"]
        with pytest.raises(KubeError, match="404 page not found"):
            await copy.reflector.check()
    assert "DELETED" not in {event for event, _, _ in copy.events}


async def test_a_defect_ends_the_copy_and_is_raised(model: ClusterModel) -> None:
    async with running(model) as copy:
        model.fail(TypeError("surprise"))
        await settle()

        with pytest.raises(KubeError, match="surprise"):
            await copy.reflector.check()


async def test_one_object_is_kept_without_a_list(model: ClusterModel) -> None:
    model.put(DEPLOYMENT, item("other"))
    async with running(model, Selection(DEPLOYMENT, "shop", name="one")) as copy:
        await copy.reflector.check()
        assert copy.names() == []
        model.put(DEPLOYMENT, item("one"))
        await settle()

        assert copy.names() == ["one"]
        model.lose(DEPLOYMENT, "shop", "one")
        await settle()

        assert copy.names() == []
        assert ("list", "deployments") not in model.calls


class InPages(ClusterModel):
    """Gives a list out one object a page; `failures` are raised in place of the pages after the first one."""

    def __init__(self) -> None:
        super().__init__()
        self.failures: list[KubeError] = []

    async def listing(self, selection: Selection, rest: str = "") -> Listing:
        if rest and self.failures:
            raise self.failures.pop()
        whole = await super().listing(selection)
        number = int(rest or 0)
        following = number + 1 if number + 1 < len(whole.items) else ""
        return Listing(whole.items[number : number + 1], whole.version, str(following))


async def test_a_list_in_pages_is_one_list() -> None:
    model = InPages()
    for name in ("a", "b", "c", "ghost"):
        model.put(DEPLOYMENT, item(name))
    async with running(model) as copy:
        assert copy.names() == ["a", "b", "c", "ghost"]
        model.lose(DEPLOYMENT, "shop", "ghost")
        await settle()

        assert copy.names() == ["a", "b", "c"]
        assert [event for event in copy.events if event[0] == "DELETED"] == [("DELETED", "ghost", "1")]


async def test_a_list_whose_next_page_is_too_old_begins_anew_and_takes_nothing_for_deleted() -> None:
    model = InPages()
    for name in ("a", "b"):
        model.put(DEPLOYMENT, item(name))
    async with running(model) as copy:
        model.failures.append(KubeError(410, "Expired", "the provided continue parameter is too old"))
        model.put(DEPLOYMENT, item("ghost"))
        await settle()
        model.lose(DEPLOYMENT, "shop", "ghost")
        await settle()

        assert model.failures == []
        assert copy.names() == ["a", "b"]
        assert [event for event in copy.events if event[0] == "DELETED"] == [("DELETED", "ghost", "1")]


async def test_an_answer_that_comes_while_a_list_is_read_leaves_no_ghost() -> None:
    """Between a watch that was too old and the end of the list nothing tells that the object was deleted before."""
    late = item("gone")
    late["metadata"]["resourceVersion"] = "5"

    class WithLateAnswer(ClusterModel):
        async def listing(self, selection: Selection, rest: str = "") -> Listing:
            if not rest:
                return Listing((), "9", "next")
            copies[0].accept(late)
            return Listing((), "9")

    copies: list[Reflector] = []
    copy = Copy(WithLateAnswer(), ALL)
    copies.append(copy.reflector)
    task = asyncio.create_task(copy.reflector.run())
    await copy.reflector.check()

    assert copy.names() == []
    assert copy.events == [("CHANGED", "gone", "1"), ("DELETED", "gone", "1")]
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
