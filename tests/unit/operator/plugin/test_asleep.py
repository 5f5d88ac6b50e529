"""What `kubectl ott` says of an object of which no worker runs, because nothing is to be read."""

from __future__ import annotations

from typing import Any

from ots_tunnel_operator.console.channels import channels_document
from ots_tunnel_operator.console.fleet import line_of
from ots_tunnel_operator.console.sight import Sight
from ots_tunnel_operator.plugin.edits import pause, resume
from ots_tunnel_operator.plugin.fleet import fleet_table
from ots_tunnel_operator.plugin.ott import Ott
from ots_tunnel_operator.plugin.text.screen import Screen
from ots_tunnel_operator.plugin.why.view import why_lines
from ots_tunnel_operator.times import timestamp
from tests.support.operator.plugin_objects import NOW, body, conditions, status

WIDE = Screen(width=240)


def sleeper(mode: str = "Auto", ready: str = "True", **changes: Any) -> Ott:
    settings = {"mode": mode, "minReplicas": 0, "scaleToZero": {"enabled": True, "peekIntervalSeconds": 300}}
    document = body(replicas=3, autoscaling=settings, **changes)
    sleep = {"since": timestamp(NOW - 7200), "generation": 7}
    decision = {"time": timestamp(NOW - 7200), "from": 1, "to": 0, "reason": "Asleep", "message": "nothing was read"}
    document["status"] = status(
        conditions=conditions(Ready=(ready, "Asleep" if ready == "True" else "NotObserved", "no worker runs")),
        autoscaling={"desiredReplicas": 0, "specReplicas": 3, "recommendedReplicas": 0, "sleep": sleep}
        | {"lastDecision": decision},
        readyReplicas=0,
        replicas=0,
        workers=[],
        channels={"total": 4, "stream": 4, "open": 0, "unowned": 4},
        lag=None,
    )
    return Ott(document)


def said(ott: Ott) -> str:
    return " ".join("\n".join(why_lines(ott, WIDE, NOW)).split())


def test_why_says_that_it_sleeps_who_looks_and_what_ends_it() -> None:
    text = said(sleeper())

    assert "It has been asleep for 2 h: every change was read, so that no worker runs" in text
    assert "the operator looks every 5 min whether there is something to read." in text
    assert "Something to read: a worker starts as soon as a look of the operator finds it." in text
    assert "Nothing: a worker starts by itself." in text
    assert "2 h ago, ScaledDown: from 1 to 0 workers, Asleep: nothing was read" in text
    for wrong in ("spec.replicas is 0", "Give it workers", "without a worker", "lag is not known"):
        assert wrong not in text


def test_one_that_may_have_something_to_read_is_not_said_to_sleep() -> None:
    text = said(sleeper(ready="Unknown"))

    assert "It has been asleep" not in text
    assert "It is not known whether it works" in text


def test_without_auto_it_has_the_workers_of_the_spec() -> None:
    assert sleeper("Disabled").wanted_workers == 3
    assert not sleeper("Disabled").is_asleep
    assert (sleeper().wanted_workers, sleeper().is_asleep) == (0, True)
    assert not sleeper(suspend=True).is_asleep


def test_lists_do_not_warn_of_its_channels() -> None:
    text = "\n".join(fleet_table([sleeper()], WIDE, NOW))

    assert "Asleep" in text
    assert "unowned" not in text
    assert line_of(sleeper())["unowned"] == 0
    assert channels_document(Sight(sleeper()))["counts"]["unowned"] == 0
    assert sleeper().peek_interval == 300
    assert Ott(body()).peek_interval is None


def test_pausing_counts_what_it_may_have_slept() -> None:
    assert "within 5 d" in "\n".join(pause(sleeper()).words)


def test_resuming_does_not_blame_the_spec() -> None:
    text = "\n".join(resume(sleeper(suspend=True)).words)

    assert "it had no worker when it was paused" in text
    assert "spec.replicas is 0" not in text
