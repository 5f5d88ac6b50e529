"""Why a deletion has to wait."""

from __future__ import annotations


class NotYet(Exception):
    """Deletion has to wait; the text names the cause."""


class Elsewhere(NotYet):
    """Another operator serves the object and will release it."""


class JustClaimed(NotYet):
    """The object was claimed in this moment: the deletion has not been tried yet."""


class WorkerDraining(NotYet):
    """A worker hands back its channels, for which its pod has its grace period."""


class Draining(NotYet):
    """What reads the tunnel ends: the deletion only waits for that, and nothing is lost if it does not."""


class LastDraining(WorkerDraining, Draining):
    """A worker drains, and nothing else is to be done."""


class Obstacle(NotYet):
    """Deletion waits for something that may never end by itself; the text says what to do."""


class Doubtful(Elsewhere, Obstacle):
    """It cannot be told whether the operator that the object names is still there."""
