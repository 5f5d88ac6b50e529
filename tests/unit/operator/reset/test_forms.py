"""What each form needs, where it begins, and what is lost: the table, line by line."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from ots_tunnel_operator.reset.facts import Facts, Found
from ots_tunnel_operator.reset.forms import Course, Loss, Lost, Refusal, Start, decide
from ots_tunnel_operator.reset.request import Existing, Form, Request
from ots_tunnel_operator.reset.words import words_of
from ots_tunnel_operator.times import timestamp

NOW = 1_800_000_000.0
DAY = 86_400.0
#: A copy of existing rows and changes that was at NOW - 3600, of a stream that keeps a week; its tunnel is gone.
USED = Facts(
    namespace="shop",
    name="orders-copy",
    kind="BaseAndStream",
    by_spark=False,
    table="orders",
    tunnel="orders-copy",
    sink="tablestore",
    former="t-1",
    is_used=True,
    is_ours=True,
    found=Found.GONE,
    creates=True,
    base_copied=True,
    delivered_until=NOW - 3600,
    kept_since=NOW - 6 * DAY,
    end=None,
    is_destination_lost=False,
    is_destination_empty=False,
    now=NOW,
)
STREAM = replace(USED, kind="Stream")
BASE = replace(USED, kind="BaseData", delivered_until=None)
BY_SPARK = replace(BASE, by_spark=True, former="")
EXPIRED = replace(USED, found=Found.RECORDED)
REPLACED = replace(USED, found=Found.ANOTHER)
ENDING = replace(STREAM, end=NOW + DAY)

NEW_TUNNEL, NEW_BASE = Request("a", Form.NEW_TUNNEL), Request("a", Form.NEW_BASE)
EARLIEST = Request("a", Form.REWIND)


def rewind(seconds: float) -> Request:
    """Back by some seconds."""
    return Request("a", Form.REWIND, timestamp(NOW - seconds))


def deleting(request: Request) -> Request:
    return replace(request, existing=Existing.DELETE)


def adopting(request: Request) -> Request:
    return replace(request, existing=Existing.ADOPT)


COURSES: dict[str, tuple[Request, Facts, Start | None, Loss | None]] = {
    "new tunnel": (NEW_TUNNEL, USED, Start("Latest"), Loss(Lost.CHANGES, NOW - 3600, None)),
    "new tunnel, unknown": (
        NEW_TUNNEL,
        replace(USED, delivered_until=None),
        Start("Latest"),
        Loss(Lost.CHANGES, None, None),
    ),
    "rewind to before": (rewind(7200), USED, Start("Timestamp", timestamp(NOW - 7200)), None),
    "rewind to exactly there": (rewind(3600), USED, Start("Timestamp", timestamp(NOW - 3600)), None),
    "rewind to after": (
        rewind(60),
        USED,
        Start("Timestamp", timestamp(NOW - 60)),
        Loss(Lost.CHANGES, NOW - 3600, NOW - 60),
    ),
    "rewind, unknown": (
        rewind(7200),
        replace(USED, delivered_until=None),
        Start("Timestamp", timestamp(NOW - 7200)),
        Loss(Lost.CHANGES, None, NOW - 7200),
    ),
    "rewind to the oldest": (EARLIEST, USED, Start("Earliest"), None),
    "rewind too late": (
        EARLIEST,
        replace(USED, delivered_until=NOW - 7 * DAY),
        Start("Earliest"),
        Loss(Lost.CHANGES, NOW - 7 * DAY, NOW - 6 * DAY),
    ),
    "rewind, unknown retention": (
        EARLIEST,
        replace(USED, kept_since=None),
        Start("Earliest"),
        Loss(Lost.CHANGES, NOW - 3600, NOW),
    ),
    "rewind into a lost table": (
        EARLIEST,
        replace(STREAM, is_destination_lost=True),
        Start("Earliest"),
        Loss(Lost.CHANGES, None, NOW - 6 * DAY),
    ),
    "new base over rows": (NEW_BASE, USED, None, Loss(Lost.DELETIONS, NOW - 3600, None)),
    "new base into an empty table": (NEW_BASE, replace(USED, is_destination_empty=True), None, None),
    "new base into a log": (NEW_BASE, replace(USED, sink="kafka"), None, Loss(Lost.CHANGES, NOW - 3600, None)),
    "new base of existing rows alone": (NEW_BASE, BASE, None, None),
    "new base before the first one was over": (
        NEW_BASE,
        replace(USED, base_copied=False),
        None,
        Loss(Lost.DELETIONS, NOW - 3600, None),
    ),
    "new base by Spark alone": (NEW_BASE, BY_SPARK, None, None),
    "new base into a lost table": (
        NEW_BASE,
        replace(USED, is_destination_lost=True, is_destination_empty=True),
        None,
        None,
    ),
    "adopt": (adopting(NEW_TUNNEL), REPLACED, None, Loss(Lost.CHANGES, NOW - 3600, None)),
    "adopt what the user manages": (
        adopting(NEW_TUNNEL),
        replace(REPLACED, creates=False),
        None,
        Loss(Lost.CHANGES, NOW - 3600, None),
    ),
    "with an end, nothing lost": (rewind(7200), ENDING, Start("Timestamp", timestamp(NOW - 7200)), None),
}


@pytest.mark.parametrize("name", COURSES)
def test_a_course(name: str) -> None:
    request, facts, start, loss = COURSES[name]

    assert decide(request, facts) == Course(request, False, request.existing is Existing.ADOPT, start, loss)


@pytest.mark.parametrize("request_", [NEW_TUNNEL, EARLIEST, NEW_BASE])
def test_a_tunnel_is_deleted_only_where_it_is_ours_and_that_is_asked_for(request_: Request) -> None:
    not_ours = replace(EXPIRED, is_ours=False)

    course = decide(deleting(request_), EXPIRED)
    assert isinstance(course, Course)
    assert course.deletes
    for request, facts in ((request_, EXPIRED), (request_, not_ours), (deleting(request_), not_ours)):
        assert isinstance(decide(request, facts), Refusal)


def test_a_tunnel_of_somebody_else_is_never_deleted() -> None:
    assert isinstance(decide(deleting(NEW_BASE), REPLACED), Refusal)


BY_HAND = "ots-tunnel tunnel delete orders orders-copy --from-object shop/orders-copy"
REFUSALS: dict[str, tuple[Request, Facts, str]] = {
    "unused": (NEW_BASE, replace(USED, is_used=False), "nothing is recorded that could be reset"),
    "no stream": (NEW_TUNNEL, BASE, "begins with changes, which tunnel.type BaseData does not have: use NewBase"),
    "no stream to rewind": (EARLIEST, BASE, "use NewBase"),
    "no existing rows": (NEW_BASE, STREAM, "tunnel.type Stream does not have: use NewTunnel or Rewind"),
    "base under way": (NEW_TUNNEL, replace(USED, base_copied=False), "not every existing row was copied, and form"),
    "base unknown": (EARLIEST, replace(USED, base_copied=None), "it is not known whether every existing row was"),
    "destination lost": (NEW_TUNNEL, replace(USED, is_destination_lost=True), "the rows in the destination are lost"),
    "start too old": (rewind(6 * DAY), USED, "the stream may not keep changes that old: name a time after"),
    "start in the future": (rewind(-60), USED, "is not in the past"),
    "start after the end": (rewind(60), replace(ENDING, end=NOW - 90), "is not before the end time"),
    "start, unknown retention": (rewind(60), replace(USED, kept_since=None), "leave startTime out"),
    "tunnel there": (NEW_BASE, EXPIRED, "ask with existingTunnel Delete (--delete-tunnel)"),
    "tunnel there, adopted": (adopting(NEW_TUNNEL), EXPIRED, "resume the object"),
    "tunnel of somebody else": (deleting(NEW_BASE), replace(EXPIRED, is_ours=False), f"delete it by `{BY_HAND}`"),
    "name taken": (NEW_BASE, REPLACED, "existingTunnel Adopt (--adopt-tunnel)"),
    "name taken, deleted by hand": (deleting(NEW_BASE), REPLACED, BY_HAND),
    "name taken, unfit": (
        adopting(NEW_TUNNEL),
        replace(REPLACED, mismatch="its type is Stream"),
        "does not fit the spec: its type is Stream",
    ),
    "nothing to adopt": (adopting(NEW_TUNNEL), USED, "there is no tunnel 'orders-copy': leave it out"),
    "nothing to adopt, nor to create": (NEW_TUNNEL, replace(USED, creates=False), "managementPolicy is UseExisting"),
    "end and loss": (NEW_TUNNEL, ENDING, "name an earlier startTime, or create another object"),
    "end and deletions": (NEW_BASE, replace(USED, end=NOW + DAY), "empty the destination first"),
}


@pytest.mark.parametrize("name", REFUSALS)
def test_a_refusal_says_why_and_what_to_do(name: str) -> None:
    request, facts, said = REFUSALS[name]
    found = decide(request, facts)

    assert isinstance(found, Refusal)
    assert said in found.message


SAID = {
    "new tunnel": (
        "It forgets tunnel t-1, and creates tunnel 'orders-copy' for changes alone, which begins at its creation.",
        "It writes changes from then on: no existing row, and nothing twice.",
        f"It loses changes: what was committed after {timestamp(NOW - 3600)} and before the creation of the new tunnel "
        "never reaches the destination, and no copy of existing rows follows that would make up for it.",
    ),
    "rewind to after": (
        "It forgets tunnel t-1, and creates tunnel 'orders-copy' for changes alone, which begins at "
        f"{timestamp(NOW - 60)}.",
        "It writes every change from then on again: until it has caught up, the destination goes back to older values "
        "and rows; where single versions are deleted, a version may be missing afterwards.",
        f"It loses changes: what was committed after {timestamp(NOW - 3600)} and before {timestamp(NOW - 60)} never "
        "reaches the destination, and no copy of existing rows follows that would make up for it.",
    ),
    "new base over rows": (
        "It forgets tunnel t-1, and creates tunnel 'orders-copy' as the spec has it.",
        "Workers write every existing row of table 'orders' again, over the rows of the destination; of a table that "
        "this object has copied to before, onExisting is not asked again.",
        f"It loses deletions: rows that were deleted in the source after {timestamp(NOW - 3600)} and before the "
        "creation of the new tunnel stay in the destination, unless you empty it first.",
    ),
    "adopt": (
        "It forgets tunnel t-1, and uses the one that has the name 'orders-copy' now.",
        "It writes what that tunnel delivers from its checkpoints on.",
        f"It loses changes: what was committed after {timestamp(NOW - 3600)} and before what the other tunnel delivers "
        "never reaches the destination, and no copy of existing rows follows that would make up for it.",
    ),
}


@pytest.mark.parametrize("name", SAID)
def test_each_form_is_spelled_out(name: str) -> None:
    request, facts, *_ = COURSES[name]
    course = decide(request, facts)

    assert isinstance(course, Course)
    words = words_of(course, facts)
    assert (words.does, words.writes, words.loses) == SAID[name]
    assert str(words) == " ".join(SAID[name])


@pytest.mark.parametrize(
    ("name", "changes", "said"),
    [
        ("rewind to the oldest", {}, "which begins with the oldest change that the stream keeps"),
        ("rewind to the oldest", {"sink": "kafka"}, "these come twice"),
        ("rewind to the oldest", {}, "It loses nothing."),
        ("rewind, unknown", {}, "since a time that is not known"),
        ("new base by Spark alone", {}, "It forgets the copy by Spark and its record."),
        ("new base over rows", {"by_spark": True}, "Spark writes every existing row"),
        ("new base into a log", {}, "beside what was delivered before"),
        ("new base over rows", {"former": ""}, "It forgets tunnel of that name"),
    ],
)
def test_words_for_other_sinks_engines_and_starts(name: str, changes: dict[str, Any], said: str) -> None:
    request, facts, *_ = COURSES[name]
    facts = replace(facts, **changes)
    course = decide(request, facts)

    assert isinstance(course, Course)
    assert said in str(words_of(course, facts))


def test_a_deletion_is_said() -> None:
    course = decide(deleting(NEW_BASE), EXPIRED)

    assert isinstance(course, Course)
    assert words_of(course, EXPIRED).does.startswith("It deletes tunnel t-1, and creates")
