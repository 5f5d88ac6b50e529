"""A course in words: what it does, what it writes and what it loses; operator and plugin say the same. Pure."""

from __future__ import annotations

from dataclasses import dataclass

from ots_tunnel_operator.reset.facts import Facts
from ots_tunnel_operator.reset.forms import Course, Loss, Lost, Start
from ots_tunnel_operator.times import timestamp


@dataclass(frozen=True, slots=True)
class Words:
    """One sentence each."""

    does: str
    writes: str
    loses: str

    def __str__(self) -> str:
        return f"{self.does} {self.writes} {self.loses}"


def words_of(course: Course, facts: Facts) -> Words:
    """The course in three sentences."""
    until = "what the other tunnel delivers" if course.adopts else "the creation of the new tunnel"
    return Words(_does(course, facts), _writes(course, facts), loses(course.loss, until))


def loses(loss: Loss | None, unknown_end: str) -> str:
    """What is lost, as a sentence.

    Args:
        loss: None where nothing is.
        unknown_end: what stands for an end that is not known yet.
    """
    if loss is None:
        return "It loses nothing."
    start = "since a time that is not known" if loss.start is None else f"after {timestamp(loss.start)}"
    until = unknown_end if loss.end is None else timestamp(loss.end)
    if loss.what is Lost.DELETIONS:
        return (
            f"It loses deletions: rows that were deleted in the source {start} and before {until} stay in the "
            "destination, unless you empty it first."
        )
    return (
        f"It loses changes: what was committed {start} and before {until} never reaches the destination, and no copy "
        "of existing rows follows that would make up for it."
    )


def _does(course: Course, facts: Facts) -> str:
    if not facts.needs_tunnel:
        return "It forgets the copy by Spark and its record."
    if course.adopts:
        return f"It forgets tunnel {facts.former}, and uses the one that has the name {facts.tunnel!r} now."
    done = "deletes" if course.deletes else "forgets"
    return f"It {done} tunnel {facts.former or 'of that name'}, and creates tunnel {facts.tunnel!r} {_kind(course)}."


def _kind(course: Course) -> str:
    start = course.start
    if start is None:
        return "as the spec has it"
    return f"for changes alone, which begins {_begin(start)}"


def _begin(start: Start) -> str:
    match start.start_from:
        case "Latest":
            return "at its creation"
        case "Earliest":
            return "with the oldest change that the stream keeps"
        case _:
            return f"at {start.start_time}"


def _writes(course: Course, facts: Facts) -> str:
    if course.adopts:
        return "It writes what that tunnel delivers from its checkpoints on."
    if course.start is None:
        return _writes_base(facts)
    if course.start.start_from == "Latest":
        return "It writes changes from then on: no existing row, and nothing twice."
    if not facts.is_table:
        return "It writes every change from then on, also those that were delivered before: these come twice."
    return (
        "It writes every change from then on again: until it has caught up, the destination goes back to older values "
        "and rows; where single versions are deleted, a version may be missing afterwards."
    )


def _writes_base(facts: Facts) -> str:
    who = "Spark writes" if facts.by_spark else "Workers write"
    if not facts.is_table:
        return f"{who} every existing row of table {facts.table!r} again, beside what was delivered before."
    return (
        f"{who} every existing row of table {facts.table!r} again, over the rows of the destination; of a table that "
        "this object has copied to before, onExisting is not asked again."
    )
