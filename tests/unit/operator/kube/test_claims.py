"""One operator serves an object: a claim is made once, respected while its operator lives, and then taken over."""

from __future__ import annotations

import contextlib
from typing import Any, cast

import pytest

from ots_tunnel_operator.kube.claims import GRACE_SECONDS, TAKEOVER_SECONDS, Claim, Claims
from ots_tunnel_operator.kube.cluster import Cluster
from ots_tunnel_operator.kube.errors import KubeError
from ots_tunnel_operator.kube.kinds import TUNNEL, Kind, Manifest
from ots_tunnel_operator.names import ANNOTATION_OPERATOR, ANNOTATION_SERVES
from tests.support.kube.kube_memory import KubeMemory
from tests.support.operator.worlds import NOW

OBJECT = ("TablestoreTunnel", "copy")


class Scene:
    """One object, the Lease of one operator, and the clock of another operator."""

    def __init__(self, mine: str = "b/lease") -> None:
        metadata = {"name": "copy", "namespace": "shop", "uid": "u1", "resourceVersion": "1"}
        self.kube = KubeMemory({OBJECT: {"metadata": metadata}})
        self.now = 1000.0
        self.claims = self.operator(mine)
        self.renewals = 0

    def operator(self, mine: str) -> Claims:
        return Claims(cast(Cluster, self.kube), mine, lambda: self.now, lambda: NOW + self.now)

    async def claim(self, claims: Claims | None = None) -> Claim:
        body = await self.kube.get(TUNNEL, "shop", "copy")
        assert body is not None
        return await (claims or self.claims).claim(body)

    def claimed_by(self, holder: str) -> None:
        self.kube.objects[OBJECT]["metadata"]["annotations"] = {ANNOTATION_OPERATOR: holder}

    @property
    def holder(self) -> str:
        found: str = self.kube.objects[OBJECT]["metadata"]["annotations"][ANNOTATION_OPERATOR]
        return found

    def renew(self, serves: str = "") -> None:
        self.renewals += 1
        metadata: dict[str, Any] = {"name": "lease", "namespace": "a", "uid": "l1"}
        metadata |= {"resourceVersion": str(self.renewals)}
        metadata |= {"annotations": {ANNOTATION_SERVES: serves}} if serves else {}
        self.kube.objects["Lease", "lease"] = {"metadata": metadata}


async def test_an_object_is_claimed_once() -> None:
    scene = Scene()

    assert [await scene.claim() for _ in range(3)] == [Claim.NEW, Claim.OURS, Claim.OURS]
    assert scene.holder == "b/lease"
    assert len(scene.kube.writes) == 1


async def test_one_of_two_operators_wins() -> None:
    scene = Scene()
    body = await scene.kube.get(TUNNEL, "shop", "copy")
    assert body is not None
    scene.renew()

    class Outdated(KubeMemory):
        async def patch(self, *arguments: Any, **more: Any) -> Manifest:
            raise KubeError(409, "Conflict", "the object has been modified")

    late = Claims(cast(Cluster, Outdated(scene.kube.objects)), "a/lease")
    assert await scene.claim() is Claim.NEW
    assert await late.claim(body) is Claim.NEW  # reads again, and finds the claim
    assert await scene.claim(late) is Claim.ELSEWHERE
    assert scene.holder == "b/lease"


async def test_a_claim_is_respected_while_its_lease_is_renewed(caplog: pytest.LogCaptureFixture) -> None:
    scene = Scene()
    scene.claimed_by("a/lease")

    with caplog.at_level("INFO", logger="ots_tunnel_operator"):
        for _ in range(20):
            scene.renew()
            scene.now += 15.0
            assert await scene.claim() is Claim.ELSEWHERE

    assert scene.kube.writes == []
    assert [vars(record)["lease"] for record in caplog.records] == ["a/lease"]


@pytest.mark.parametrize(
    ("serves", "is_taken"),
    [
        ("lake", True),
        ("lake, shop-dr", True),
        ("lake, shop", False),
        ("shop", False),
        ("every namespace", False),
        # an earlier release does not tell
        ("", False),
    ],
)
async def test_a_claim_of_an_operator_that_serves_other_namespaces_now_is_taken_over(
    serves: str, is_taken: bool
) -> None:
    scene = Scene()
    scene.claimed_by("a/lease")
    scene.renew("every namespace")
    assert await scene.claim() is Claim.ELSEWHERE
    began = scene.now = scene.now + 10 * TAKEOVER_SECONDS
    while scene.now - began < 2 * TAKEOVER_SECONDS:
        scene.renew(serves)
        if await scene.claim() is not Claim.ELSEWHERE:
            break
        scene.now += 5.0

    assert (scene.now - began) == (TAKEOVER_SECONDS if is_taken else 2 * TAKEOVER_SECONDS)
    assert scene.holder == ("b/lease" if is_taken else "a/lease")


@pytest.mark.parametrize("exists", [True, False], ids=["not renewed", "missing"])
async def test_a_claim_is_taken_over_when_its_operator_is_gone_and_acted_on_after_a_while(exists: bool) -> None:
    scene = Scene()
    scene.claimed_by("a/lease")
    if exists:
        scene.renew()
    began = scene.now
    while await scene.claim() is Claim.ELSEWHERE and scene.now < began + 10 * TAKEOVER_SECONDS:
        scene.now += 1.0

    assert scene.now - began == TAKEOVER_SECONDS
    assert scene.holder == "b/lease"
    assert await scene.claim() is Claim.ELSEWHERE
    scene.now += GRACE_SECONDS
    assert await scene.claim() is Claim.OURS
    assert len(scene.kube.writes) == 1


async def test_the_next_leader_waits_after_a_takeover_as_well() -> None:
    scene = Scene()
    scene.claimed_by("a/lease")
    scene.renew()
    await scene.claim()
    scene.now += TAKEOVER_SECONDS
    assert await scene.claim() is Claim.NEW
    scene.now += 1
    other = scene.operator("b/lease")

    assert await scene.claim(other) is Claim.ELSEWHERE
    scene.now += GRACE_SECONDS
    assert [await scene.claim(other), await scene.claim()] == [Claim.OURS, Claim.OURS]
    scene.now += TAKEOVER_SECONDS
    assert await scene.claim(scene.operator("b/lease")) is Claim.OURS
    assert len(scene.kube.writes) == 1


@pytest.mark.parametrize("status", [500, 409], ids=["lost", "sent twice"])
async def test_a_takeover_whose_answer_is_lost_is_acted_on_after_a_while_too(
    status: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    scene = Scene()
    scene.claimed_by("b/lease")
    assert await scene.claim() is Claim.OURS  # it has served the object before
    scene.claimed_by("a/lease")
    scene.renew()
    await scene.claim()
    scene.now += TAKEOVER_SECONDS
    patch = scene.kube.patch

    async def lose(*arguments: Any, **more: Any) -> Manifest:
        await patch(*arguments, **more)
        raise KubeError(status, "Lost", "the answer is lost")

    with monkeypatch.context() as losing, contextlib.suppress(KubeError):
        losing.setattr(scene.kube, "patch", lose)
        await scene.claim()

    assert (scene.holder, await scene.claim()) == ("b/lease", Claim.ELSEWHERE)
    scene.now += GRACE_SECONDS
    assert await scene.claim() is Claim.OURS


async def test_a_claim_that_comes_back_after_a_takeover_is_respected() -> None:
    scene = Scene()
    scene.claimed_by("a/lease")
    scene.renew()
    await scene.claim()
    scene.now += TAKEOVER_SECONDS
    assert await scene.claim() is Claim.NEW

    scene.claimed_by("a/lease")  # its Lease was looked at a moment ago, before it was renewed

    assert await scene.claim() is Claim.ELSEWHERE
    scene.now += TAKEOVER_SECONDS
    assert await scene.claim() is Claim.NEW


async def test_an_operator_that_comes_back_leaves_the_object_to_the_new_one() -> None:
    scene = Scene()
    scene.claimed_by("b/lease")
    former = scene.operator("a/lease")

    assert await scene.claim(former) is Claim.ELSEWHERE
    assert scene.holder == "b/lease"


@pytest.mark.parametrize(("status", "doubts"), [(403, True), (401, True), (500, False), (0, False)])
async def test_a_lease_that_cannot_be_read_counts_as_held(status: int, doubts: bool) -> None:
    class Forbidding(KubeMemory):
        looks = 0

        async def get(self, kind: Kind, namespace: str, name: str) -> Manifest | None:
            if kind.kind == "Lease":
                self.looks += 1
                raise KubeError(status, "Refused", "may not")
            return await super().get(kind, namespace, name)

    scene = Scene()
    scene.claimed_by("a/lease")
    scene.kube = forbidding = Forbidding(scene.kube.objects)
    claims = scene.operator("b/lease")
    body = await scene.kube.get(TUNNEL, "shop", "copy")
    assert body is not None
    assert claims.doubt(body) == ""
    for _ in range(10):
        scene.now += TAKEOVER_SECONDS / 2
        assert await scene.claim(claims) is Claim.ELSEWHERE

    assert ("must not read that Lease (Refused: may not)" in claims.doubt(body)) == doubts
    assert forbidding.looks == (5 if doubts else 10)
    assert scene.kube.writes == []
    del scene.kube.objects[OBJECT]["metadata"]["annotations"]
    assert await scene.claim(claims) is Claim.NEW


async def test_a_lease_that_may_be_read_again_is_judged_by_its_renewals() -> None:
    scene = Scene()
    scene.claimed_by("a/lease")
    body = await scene.kube.get(TUNNEL, "shop", "copy")
    assert body is not None
    readable, refused = scene.kube.get, [True]

    async def get(kind: Kind, namespace: str, name: str) -> Manifest | None:
        if kind.kind == "Lease" and refused[0]:
            raise KubeError(403, "Forbidden", "may not")
        return await readable(kind, namespace, name)

    scene.kube.get = get
    assert await scene.claim() is Claim.ELSEWHERE
    assert scene.claims.doubt(body)
    refused[0] = False
    scene.now += TAKEOVER_SECONDS
    assert await scene.claim() is Claim.ELSEWHERE
    assert not scene.claims.doubt(body)
    scene.now += TAKEOVER_SECONDS
    assert await scene.claim() is Claim.NEW


async def test_without_election_nothing_is_claimed_and_a_claim_is_respected() -> None:
    scene = Scene(mine="")

    assert await scene.claim() is Claim.OURS
    scene.claimed_by("a/lease")
    scene.renew()
    assert await scene.claim() is Claim.ELSEWHERE
    scene.now += TAKEOVER_SECONDS
    assert await scene.claim() is Claim.OURS
    assert scene.kube.writes == []


async def test_an_annotation_that_names_no_lease_is_replaced() -> None:
    scene = Scene()
    scene.claimed_by("nonsense")

    assert [await scene.claim(), scene.holder] == [Claim.NEW, "b/lease"]


async def test_a_refused_claim_is_an_error() -> None:
    scene = Scene()
    scene.kube.refusal = KubeError(403, "Forbidden", "may not")

    with pytest.raises(KubeError, match="may not"):
        await scene.claim()


@pytest.mark.parametrize(
    "holder", ["a", "a/", "/lease", "a/..", "a/../../../../../../api/v1/namespaces/b/secrets/keys"]
)
async def test_a_claim_by_what_no_lease_is_called_is_nobodys(holder: str) -> None:
    """Anybody who may edit the object writes the annotation, and the operator's rights are its own."""
    scene = Scene()
    scene.claimed_by(holder)

    assert await scene.claim() is Claim.NEW
    assert scene.holder == "b/lease"


async def test_nothing_is_kept_of_an_object_that_is_gone() -> None:
    scene = Scene()
    scene.claimed_by("a/lease")
    scene.renew()
    await scene.claim()
    scene.claims.forget("u1")

    assert not any(getattr(scene.claims, name) for name in ("_sighted", "_waits", "_logged"))
