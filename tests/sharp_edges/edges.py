"""Known defects of the vendor's two workers (docs/protocol.md 6.1 and 6.2), and whether they are possible here."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class Applies:
    """The defect is possible here; a test named after it shows its absence.

    Args:
        defect: the behaviour of the vendor's worker.
    """

    defect: str


@dataclass(frozen=True)
class CannotApply:
    """The defect is not possible here.

    Args:
        reason: the part that is missing here.
    """

    reason: str


EDGES: Mapping[str, Applies | CannotApply] = {
    "G1": Applies("a base channel that is resumed at its end is treated as a stream channel"),
    "G2": Applies("the date's fraction is month, day and hour"),
    "G3": Applies("the epoch of a record's position is dropped"),
    "G4": Applies("a cell's version points into the decoder, and at 0 where the cell has none"),
    "G5": Applies("the state machine and a heartbeat under way share a mutable channel"),
    "G6": Applies("the last token may be lost when it arrives together with the close"),
    "G7": Applies("a token counts as stored before it is, and a failed one is not stored again"),
    "G8": Applies("shutdown runs while records are being processed"),
    "G9": Applies("a channel that waits for its turn does not react to CLOSING"),
    "G10": Applies("pauses and repeated calls cannot be interrupted"),
    "G11": Applies("a channel counts as finished when its records were delivered, not when they were confirmed"),
    "G12": Applies("heartbeats wait while checkpoints are read, channel by channel"),
    "G13": Applies("successive heartbeat answers may be handled out of order"),
    "G14": Applies("one temporary error ends the worker, and its channels stay locked"),
    "G15": Applies("a timeout below the interval is replaced silently, by one that may be below it as well"),
    "G16": Applies("a client that connects while the worker is stopping is left behind"),
    "G17": Applies("the daemon returns an error for three codes only; all others repeat silently"),
    "G18": Applies("every channel opens the same log file again"),
    "G19": Applies("reads of trimmed data are repeated although they can never succeed"),
    "G20": Applies("an empty answer ends the process"),
    "G21": Applies("damaged rows yield no rows and no error; checksums are not verified"),
    "G22": Applies("an unknown header corrupts the signature"),
    "G23": Applies("a timeout's fraction is cut off on the wire"),
    "G24": Applies("broken connections are recognised by a text in the wrong case"),
    "J1": Applies("a pause is drawn twice: the pause that is slept is not the logged one, and grows much faster"),
    "J2": Applies("records wait in memory for the pause before they are delivered"),
    "J3": Applies("an error while a channel is set up is lost, and the channel stays idle permanently"),
    "J4": Applies("an interrupted wait for a permit returns a permit that was never acquired"),
    "J5": Applies("the second worker of a configuration replaces the first one's limit"),
    "J6": Applies("one processor serves all channels and is shut down with the first that closes"),
    "J7": Applies("a channel's state crosses threads unprotected"),
    "J8": Applies("checkpoint errors are swallowed, and after a mismatch nothing is sent again"),
    "J9": Applies("a dead client stays in use for minutes; denied permissions are retried without end"),
    "J10": Applies("a channel is closed by force while its records are being processed"),
    "J11": Applies("a failed read discards the pages read before it"),
    "J12": Applies("a round without an answer counts as the end of the channel"),
    "J13": Applies("a full pool makes reads run on the thread of the heartbeats"),
    "J14": Applies("closing stores no checkpoint"),
    "J15": Applies("a third field in an error hides its code"),
    "J16": Applies("every client carries the name of the operating system"),
    "J17": Applies("the worker's end is silent"),
    "J18": Applies("every start leaves a hook behind"),
    "J19": Applies("tokens, which hold primary keys, are logged"),
    "J20": Applies("the lag of base channels is the time since 1970"),
}
