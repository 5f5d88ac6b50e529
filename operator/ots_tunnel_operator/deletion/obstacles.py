"""Why a deletion has to wait."""

from __future__ import annotations


class NotYet(Exception):
    """Deletion has to wait; the text names the cause."""


class Elsewhere(NotYet):
    """Another operator serves the object and will release it."""


class JustClaimed(NotYet):
    """The object was claimed in this moment: the deletion has not been tried yet."""


class Draining(NotYet):
    """Workers hand back their channels: the deletion only waits for them, and nothing is lost if it does not."""


class Obstacle(NotYet):
    """Deletion waits for something that may never end by itself; the text says what to do."""


class Doubtful(Elsewhere, Obstacle):
    """It cannot be told whether the operator that the object names is still there."""
