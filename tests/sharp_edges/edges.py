"""The sharp edges of the vendor's two workers (docs/protocol.md 6.1 and 6.2), and whether they can exist here."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class Applies:
    """We could have it; a test named after it shows that we do not.

    Args:
        defect: what the vendor's worker does.
    """

    defect: str


@dataclass(frozen=True)
class CannotApply:
    """There is nothing here that could have it.

    Args:
        reason: why.
    """

    reason: str


EDGES: Mapping[str, Applies | CannotApply] = {
    "G1": Applies("a base channel resumed at its end is taken for one of the stream"),
    "G2": Applies("the date's fraction is month, day and hour"),
    "G3": Applies("the epoch of a record's position is dropped"),
    "G4": Applies("a cell's version points into the decoder, and at 0 where there is none"),
    "G5": Applies("state machine and heartbeat under way share a channel that changes"),
    "G6": Applies("the last token may be lost when it arrives together with the close"),
    "G7": Applies("a token counts as stored before it is, and a failed one is not stored again"),
    "G8": Applies("shutdown runs while records are being processed"),
    "G9": Applies("a channel that waits for its turn does not hear that it is to close"),
    "G10": Applies("pauses and repeated calls cannot be interrupted"),
    "G11": Applies("a channel counts as finished when its records were handed over, not when they were confirmed"),
    "G12": Applies("heartbeats wait for checkpoints to be read, channel by channel"),
    "G13": Applies("successive heartbeat answers may be handled out of order"),
    "G14": Applies("one hiccup ends the worker, and its channels stay locked"),
    "G15": Applies("a timeout below the interval is replaced silently, by one that may be below it, too"),
    "G16": Applies("a client that connects while the worker is told to stop is left behind"),
    "G17": Applies("no error comes out of the daemon but for three codes; others repeat silently"),
    "G18": Applies("every channel opens the same log file anew"),
    "G19": Applies("reading what is trimmed is repeated although it cannot heal"),
    "G20": Applies("an empty answer ends the process"),
    "G21": Applies("damaged rows yield no rows and no error; checksums are not looked at"),
    "G22": Applies("a header it does not know spoils the signature"),
    "G23": Applies("a timeout's fraction is cut off on the wire"),
    "G24": Applies("broken connections are recognised by a text in the wrong case"),
    "J1": Applies("a pause is drawn twice, so that another one is slept than was logged, growing much faster"),
    "J2": Applies("records wait in memory for the pause before they are delivered"),
    "J3": Applies("an error while a channel is set up is lost, and the channel does nothing for ever"),
    "J4": Applies("a wait for a permit that is broken off gives back a permit it never had"),
    "J5": Applies("the second worker of a configuration replaces the first one's limit"),
    "J6": Applies("one processor serves all channels and is shut down with the first that closes"),
    "J7": Applies("a channel's state crosses threads unprotected"),
    "J8": Applies("checkpoint errors vanish, and after a mismatch nothing is sent again"),
    "J9": Applies("a dead client goes on for minutes; denied permissions are tried for ever"),
    "J10": Applies("a channel is given back by force while its records are being processed"),
    "J11": Applies("a failed read discards the pages read before it"),
    "J12": Applies("no answer is taken for the end of the channel"),
    "J13": Applies("a full pool makes reading run where heartbeats do"),
    "J14": Applies("closing stores no checkpoint"),
    "J15": Applies("a third field in an error hides its code"),
    "J16": Applies("every client carries the name of the operating system"),
    "J17": Applies("the worker's end is silent"),
    "J18": Applies("every start leaves a hook behind"),
    "J19": Applies("tokens, which hold primary keys, are logged"),
    "J20": Applies("the lag of base channels is the time since 1970"),
}
