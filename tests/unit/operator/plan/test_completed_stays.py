"""What was Completed stays so, whatever is seen of source, tunnel and destination; only a reset takes it back."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from ots_tunnel.model import ChannelId, ChannelInfo, ChannelStatus, ChannelType, Checkpoint, Stage, Token, TunnelType
from ots_tunnel_operator.names import ANNOTATION_FILES_PLACE
from ots_tunnel_operator.plan.actions import ApplyObject, CreateTunnel, EnsureDestination
from ots_tunnel_operator.reasons import Problem, Reason
from ots_tunnel_operator.times import timestamp
from ots_tunnel_operator.world.absence import Failure, Missing, Unread
from ots_tunnel_operator.world.resource import Resource
from ots_tunnel_operator.world.service import Table, Tunnel
from ots_tunnel_operator.world.world import Competitor, World
from tests.support.operator.spark_worlds import SPARK
from tests.support.operator.stream_worlds import LEASES, stream_description, stream_recorded, stream_resource
from tests.support.operator.worlds import (
    COPY,
    FRESH,
    KEYS,
    NOW,
    SCHEMA,
    TUNNEL_ID,
    UID,
    base,
    channel,
    deployment,
    description,
    planned,
    pod,
    recorded,
    report_channel,
    reported,
    resource,
    world,
)

DONE: dict[str, Any] = {"conditions": [{"type": "Completed", "status": "True", "reason": "EndTimeReached"}]}
WINDOW = {"startFrom": "Latest", "endTime": timestamp(NOW - 100)}
STREAM: dict[str, Any] = {"source__tunnel__type": "Stream", "source__tunnel__stream": WINDOW}
BY_LEASES: dict[str, Any] = {"source__stream": {"leaseTable": LEASES, "endTime": timestamp(NOW - 100)}}
SECRET = {"secretRef": {"name": "keys"}}
READ = channel("c1", ChannelStatus.CLOSE, client="", consumed=NOW - 120, rows=50)
SNAPSHOT = {"state": "Completed", "finishedTime": timestamp(NOW - 300)}

#: Every form of an object that has an end, once it is Completed.
FORMS: dict[str, Resource] = {
    "base": resource(recorded(**DONE), source__tunnel__type="BaseData"),
    "stream": resource(recorded(**DONE), **STREAM),
    "both": resource(recorded(**DONE), source__tunnel__stream=WINDOW),
    "leases": stream_resource(stream_recorded(**DONE), **BY_LEASES),
    "base by Spark": resource(
        recorded(**DONE, tunnel={}, snapshot=SNAPSHOT | {"tunnelId": UID}), **SPARK, source__tunnel__type="BaseData"
    ),
    "both, base by Spark": resource(
        recorded(**DONE, snapshot=SNAPSHOT | {"tunnelId": TUNNEL_ID}), **SPARK, source__tunnel__stream=WINDOW
    ),
}


def condition(found: World) -> tuple[str, str]:
    """Status and reason of the condition."""
    [shown] = [each for each in reported(found)["conditions"] if each["type"] == "Completed"]
    return shown["status"], shown["reason"]


def completed(found: World) -> str:
    """Status of the condition."""
    return condition(found)[0]


def is_at_rest(found: World) -> bool:
    """Whether a plan makes nothing and starts nothing."""
    for action in planned(found).actions:
        if isinstance(action, CreateTunnel | EnsureDestination):
            return False
        if isinstance(action, ApplyObject) and action.manifest["kind"] in ("Deployment", "SparkApplication"):
            spec = action.manifest["spec"]
            if not spec.get("suspend") and spec.get("replicas") != 0:
                return False
    return True


def test_a_destination_that_was_dropped_is_not_created_again_for_a_tunnel_that_never_moved() -> None:
    unmoved = Tunnel(description(channel("c1", client=""), kind=TunnelType.Stream), {ChannelId("c1"): FRESH})
    found = world(FORMS["stream"], tunnel=unmoved, destination=Missing(), pods=(), children=deployment(0))

    assert completed(found) == "True"
    assert is_at_rest(found)


def test_leases_that_are_gone_with_the_destination_begin_nothing_anew() -> None:
    fresh = Tunnel(stream_description(channel("s1", ChannelStatus.CLOSE, client=""), service_time=NOW), {})
    found = world(FORMS["leases"], tunnel=fresh, destination=Missing(), pods=(), children=deployment(0))

    assert completed(found) == "True"
    assert is_at_rest(found)


@pytest.mark.parametrize("form", ["base", "stream", "both"])
def test_a_look_that_lists_no_channel_takes_nothing_back(form: str) -> None:
    for tunnel in (Tunnel(description()), Tunnel(description(READ, stage=Stage.INIT))):
        found = world(FORMS[form], tunnel=tunnel, pods=(), children=deployment(0))

        assert completed(found) == "True"
        assert planned(found).replicas == 0


def test_an_end_by_time_is_still_one_while_no_channel_is_listed() -> None:
    found = world(FORMS["stream"], tunnel=Tunnel(description()), pods=(), children=deployment(0))

    assert condition(found) == ("True", "EndTimeReached")


def test_base_channels_that_are_listed_later_are_read() -> None:
    found = world(FORMS["base"], tunnel=Tunnel(description(base("b2"))), pods=(), children=deployment(0))

    assert completed(found) == "False"


def test_rows_that_spark_has_copied_are_not_copied_again() -> None:
    empty = Table(COPY, empty=True)
    found = world(FORMS["base by Spark"], tunnel=Unread(), destination=empty, pods=(), children={})

    assert completed(found) == "True"
    assert is_at_rest(found)


def test_another_place_of_files_takes_nothing_back() -> None:
    files = {"sink": {"files": {"url": "s3://shop/orders", "endpoint": "http://other:9000", "credentials": SECRET}}}
    stopped = deployment(0)
    stopped["Deployment", "flights-copy"]["metadata"]["annotations"] = {ANNOTATION_FILES_PLACE: "s3://shop/orders"}
    # the worker is gone, and the service has not noticed yet
    unmoved = Tunnel(description(channel("c1"), kind=TunnelType.Stream), {ChannelId("c1"): FRESH})
    of = resource(recorded(destination={}, **DONE), **STREAM, **files)

    assert completed(world(of, tunnel=unmoved, pods=(), children=stopped)) == "True"


def test_an_object_without_an_end_is_not_completed_whatever_its_status_says() -> None:
    assert completed(world(resource(recorded(**DONE)))) == "False"


def failure(reason: Reason) -> Failure:
    return Failure(Problem(reason, "refused", ("TunnelReady", "SinkReady", "CredentialsValid")))


FAILURES = st.sampled_from((Reason.AUTH_FAILED, Reason.SERVICE_UNAVAILABLE, Reason.SERVICE_REFUSED)).map(failure)
CHANNELS = st.builds(
    channel,
    st.sampled_from(("c1", "c2", "c3")),
    st.sampled_from(ChannelStatus),
    kind=st.sampled_from(ChannelType),
    client=st.sampled_from(("", "01234567-pod-1", "ffffffff-foreign")),
    consumed=st.sampled_from((0.0, NOW - 500, NOW - 5)),
    rows=st.sampled_from((0, 5)),
)


def tunnels(form: str) -> st.SearchStrategy[Tunnel]:
    describe = stream_description if form == "leases" else description

    def make(channels: list[ChannelInfo], moved: bool | None, same: float | None, **changes: Any) -> Tunnel:
        token = Checkpoint(Token("CAISCxIFaXQ6NTAYACAy"), 7) if moved else FRESH
        checkpoints = None if moved is None else {found.channel_id: token for found in channels}
        return Tunnel(describe(*channels, **changes), checkpoints, same_since=same)

    changes: dict[str, st.SearchStrategy[Any]] = {
        "service_time": st.sampled_from((None, NOW, NOW - 200)),
        "expired": st.booleans(),
    }
    if form != "leases":
        changes |= {"stage": st.sampled_from(Stage), "kind": st.sampled_from(TunnelType)}
        changes["tunnel_id"] = st.sampled_from((TUNNEL_ID, TUNNEL_ID, "another"))
    unique = st.lists(CHANNELS, max_size=3, unique_by=lambda found: found.channel_id)
    return st.builds(make, unique, st.sampled_from((None, True, False)), st.sampled_from((None, NOW - 50)), **changes)


@st.composite
def looks(draw: st.DrawFn) -> World:
    """Whatever may be seen of an object that was Completed."""
    form = draw(st.sampled_from(sorted(FORMS)))
    tables = st.builds(
        Table, st.just(COPY), empty=st.sampled_from((None, True, False)), created=st.sampled_from((None, NOW - 10))
    )
    sources = st.builds(Table, st.just(SCHEMA), stream_retention_seconds=st.sampled_from((None, 100_000)))
    absences = st.one_of(st.just(Missing()), st.just(Unread()), FAILURES)
    workers = st.builds(pod, st.just("pod-1"), st.just(report_channel("c1")), deleting=st.booleans())
    number = draw(st.integers(0, 2))
    return world(
        FORMS[form],
        tunnel=draw(st.one_of(tunnels(form), absences)),
        source=draw(st.one_of(sources, absences)),
        destination=draw(st.one_of(tables, absences)),
        source_credentials=draw(st.one_of(st.just(KEYS), FAILURES)),
        pods=tuple(draw(st.lists(workers, max_size=1))),
        children=draw(st.sampled_from(({}, deployment(number)))),
        elder=draw(st.sampled_from((None, None, Competitor("elder", "shop", NOW - 5000, "a")))),
    )


def lists_unread_rows(found: World) -> bool:
    """Whether there are existing rows to be read, which is the one thing that takes it back."""
    if found.resource.wire_type != "BaseData" or not isinstance(found.tunnel, Tunnel):
        return False
    return any(each.status is not ChannelStatus.TERMINATED for each in found.tunnel.description.channels)


@given(looks())
def test_no_look_takes_it_back(found: World) -> None:
    assume(not lists_unread_rows(found))

    assert completed(found) == "True"
    assert is_at_rest(found)
