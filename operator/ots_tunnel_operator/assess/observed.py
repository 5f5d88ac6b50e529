"""Whether a pass could observe an object that it knew before. Pure."""

from __future__ import annotations

from ots_tunnel_operator.reasons import UNOBSERVED, Problem
from ots_tunnel_operator.world.absence import Failure
from ots_tunnel_operator.world.world import World


def find_unobserved(world: World) -> Problem | None:
    """Why source, sink or tunnel of an object that worked before could not be observed; None where they were.

    Before, nothing is hidden: an endpoint that never answered is a finding about the spec.
    """
    return next(iter(_unobserved(world)), None)


def is_unobserved(world: World, problem: Problem) -> bool:
    """Whether the problem is that one of them could not be observed."""
    return problem in _unobserved(world)


def _unobserved(world: World) -> list[Problem]:
    if world.resource.undecided:
        return []
    failures = (item for item in (world.source, world.destination, world.tunnel) if isinstance(item, Failure))
    return [failure.problem for failure in failures if failure.problem.reason in UNOBSERVED]
