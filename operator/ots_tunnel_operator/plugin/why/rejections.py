"""What to type where a sink has refused for good: it depends on what the refusal is about. Pure."""

from __future__ import annotations

from ots_tunnel_operator.plugin.ott import Ott
from ots_tunnel_operator.plugin.why import commands
from ots_tunnel_operator.plugin.why.starting_over import start_over
from ots_tunnel_operator.plugin.why.step import Step
from ots_tunnel_operator.sink_refusals import Subject, may_leave_out, subject_of


def sink_rejected(ott: Ott) -> list[Step]:
    """Steps by the words of the sink, which the condition Stalled has."""
    again = commands.own(ott, "restart")
    match subject_of(ott.condition("Stalled").message):
        case Subject.SETTING:
            text = "Correct the field of spec.delivery that the message names; onPermanentError has no say in it:"
            return [Step(text, (commands.edit(ott),))]
        case Subject.FILE:
            text = "Restore the file or the folder that the message names, and start its workers again:"
            return [Step(text, (again,)), start_over(ott, "Where that is lost, s")]
        case Subject.TABLE:
            return [Step("Correct the destination as the message says, and start its workers again:", (again,))]
        case Subject.RECORD:
            return _of_records(ott, again)


def _of_records(ott: Ott, again: str) -> list[Step]:
    restart = Step("After a correction outside of the object, start its workers again:", (again,))
    if not may_leave_out(ott.spec):
        return [Step("Correct what the sink names:", (commands.edit(ott),)), restart]
    text = "Correct what the sink names, or keep such records with onPermanentError DeadLetter in delivery.deadLetter:"
    patch = '{"spec":{"delivery":{"onPermanentError":"Skip"}}}'
    return [
        Step(text, (commands.edit(ott),)),
        restart,
        Step(
            "Or leave out every record that the sink refuses; to the sink they are lost:", (commands.merge(ott, patch),)
        ),
    ]
