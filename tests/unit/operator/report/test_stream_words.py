"""What conditions and `kubectl ott why` say of an object that reads a stream is about a stream and its shards."""

from __future__ import annotations

import re
from typing import Any

import pytest

from ots_tunnel.errors import ConnectError
from ots_tunnel.model import ChannelStatus
from ots_tunnel_operator.diagnosis import Place, service_problem
from ots_tunnel_operator.plugin.ott import Ott
from ots_tunnel_operator.plugin.text.screen import Screen
from ots_tunnel_operator.plugin.why.view import why_lines
from ots_tunnel_operator.reasons import Problem, Reason
from ots_tunnel_operator.world.absence import UNREAD, Failure, Missing
from ots_tunnel_operator.world.service import Peek, Tunnel
from ots_tunnel_operator.world.world import World
from tests.support.operator.objects import EMULATOR, tunnel_object
from tests.support.operator.stream_worlds import (
    BY_LEASES,
    stream_description,
    stream_pod,
    stream_recorded,
    stream_resource,
    stream_world,
)
from tests.support.operator.worlds import NOW, UID, channel, deployment, report_channel, reported

FREE = Tunnel(stream_description(*(channel(shard, ChannelStatus.CLOSE, client="") for shard in ("s1", "s2"))), {})
OWNED = Tunnel(stream_description(channel("s1"), channel("s2")), {})
MOVING = Tunnel(stream_description(channel("s1"), channel("s2", ChannelStatus.CLOSING)), {})
EMPTY = {shard: Peek(NOW - 30, waits=False, empty=NOW - 30, is_of_lease=True) for shard in ("s1", "s2")}
STOPPED: dict[str, Any] = {"tunnel": FREE, "pods": (), "children": deployment(0), "peeks": EMPTY}
SILENT = Failure(
    service_problem(
        ConnectError("refused"), Place("spec.source", EMULATOR, "demo", "flights", "ots-credentials", "TunnelReady")
    )
)
NO_SECRET = Failure(Problem(Reason.SECRET_NOT_FOUND, "no such Secret", ("CredentialsValid", "SinkReady")))
NO_KEYS = Failure(Problem(Reason.SECRET_NOT_FOUND, "no such Secret", ("CredentialsValid",)))
SLEEPY = {"mode": "Auto", "minReplicas": 0, "scaleToZero": {"enabled": True}}

#: State -> the spec, and what was observed.
STATES: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "follows": ({}, {}),
    "moving": ({}, {"tunnel": MOVING, "pods": (stream_pod(report_channel("s1")), stream_pod(report_channel("s2")))}),
    "suspended": ({"suspend": True}, STOPPED),
    "suspended, a pod is lost": ({"suspend": True}, STOPPED | {"tunnel": OWNED}),
    "no workers": ({"replicas": 0}, STOPPED),
    "asleep": ({"autoscaling": SLEEPY}, STOPPED),
    "asleep, not looked at": ({"autoscaling": SLEEPY}, STOPPED | {"peeks": {}}),
    "no answer": ({}, {"source": SILENT, "tunnel": UNREAD}),
    "no answer about the stream": ({}, {"tunnel": SILENT}),
    "suspended, no answer": ({"suspend": True}, STOPPED | {"source": SILENT, "tunnel": UNREAD}),
    "no Secret of the sink": ({}, STOPPED | {"sink_credentials": NO_SECRET, "destination": UNREAD}),
    "no Secret of the source": ({}, {"source_credentials": NO_KEYS, "source": UNREAD, "tunnel": UNREAD}),
    "no table": ({}, {"source": Missing(), "tunnel": UNREAD}),
    "no stream": ({}, {"tunnel": Missing()}),
}


def shown(spec: dict[str, Any], observed: dict[str, Any], *, is_new: bool = False) -> Ott:
    status = {} if is_new else stream_recorded(phase="Streaming")
    if "autoscaling" in spec:
        status["autoscaling"] = {"desiredReplicas": 0, "specReplicas": 1}
    document = tunnel_object(**(BY_LEASES | spec))
    document["metadata"] |= {"uid": UID, "generation": 3, "annotations": {"ots-tunnel.dev/operator": "a/b"}}
    of: World = stream_world(stream_resource(status, **spec), **observed)
    return Ott(document | {"status": reported(of)})


def words(ott: Ott) -> str:
    conditions = [f"{each.type}: {each.message}" for each in ott.conditions]
    text = " ".join([*conditions, *why_lines(ott, Screen(width=10_000), NOW)])
    # names of conditions, reasons, programs and documents are those of every object
    return re.sub(r"TunnelReady|CreatingTunnel|TunnelAvailable|Channels[A-Z]\w+|\S*ots-tunnel\S*|no tunnel: ", "", text)


@pytest.mark.parametrize("is_new", [False, True])
@pytest.mark.parametrize("state", STATES)
def test_no_tunnel_and_no_channel_is_named(state: str, is_new: bool) -> None:
    spec, observed = STATES[state]

    text = words(shown(spec, observed | ({"children": {}, "pods": ()} if is_new else {}), is_new=is_new))

    assert not re.findall(r".{0,60}(?:tunnel|[Cc]hannel).{0,60}", text)


def test_without_workers_nothing_is_followed() -> None:
    text = " ".join(why_lines(shown(*STATES["no workers"]), Screen(width=10_000), NOW))

    assert "No worker is wanted (NoWorkersWanted" in text
    assert "It follows" not in text
    assert "lag is not known" not in text


def test_an_end_that_is_not_reached_is_an_end() -> None:
    found = shown({"source__stream__endTime": "2030-01-01T00:00:00Z"}, {}).condition("Completed")

    assert (found.status, found.reason) == ("False", "StreamOpen")
    assert found.message == "not every shard was read up to the end time yet"


@pytest.mark.parametrize(("start", "is_warned"), [("Earliest", False), ("Latest", True)])
def test_to_start_over_with_latest_leaves_out_what_was_not_delivered(start: str, is_warned: bool) -> None:
    text = stream_resource(stream_recorded(), source__stream__startFrom=start).start_over()

    assert ("with startFrom Earliest" in text) is is_warned
