"""A deleted object is released by hand where no operator will run again."""

from __future__ import annotations

import json
import shlex

import pytest

from ots_tunnel_operator import names
from ots_tunnel_operator.plugin.ott import Ott
from ots_tunnel_operator.plugin.serving import Serving
from ots_tunnel_operator.plugin.why.advice import next_steps
from tests.support.kube.api_server import ApiServer
from tests.support.operator.objects import tunnel_object

pytestmark = pytest.mark.api

OTHER = "example.com/other"


def test_the_operators_finalizer_goes_and_those_of_others_stay(api_server: ApiServer) -> None:
    document = tunnel_object("left-alone")
    document["metadata"]["finalizers"] = [OTHER, names.FINALIZER]
    api_server.must("apply", "--server-side", "-f", "-", document=document)
    api_server.must("delete", "ott", "left-alone", "--wait=false")

    _, release = next_steps(Ott(json.loads(api_server.must("get", "ott", "left-alone", "-o", "json"))), Serving("a/b"))
    _, *words = shlex.split(release.commands[0])
    api_server.must(*words)

    kept = json.loads(api_server.must("get", "ott", "left-alone", "-o", "json"))["metadata"]["finalizers"]
    assert kept == [OTHER]
    # the place is now another one's
    assert api_server.kubectl(*words).returncode != 0
    api_server.must("patch", "ott", "left-alone", "--type", "merge", "-p", '{"metadata":{"finalizers":null}}')
    assert "NotFound" in api_server.kubectl("get", "ott", "left-alone").stderr
