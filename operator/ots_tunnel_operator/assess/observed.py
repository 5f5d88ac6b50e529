"""Whether a pass could observe an object that it knew before. Pure."""

from __future__ import annotations

from ots_tunnel_operator.reasons import UNOBSERVED, Problem
from ots_tunnel_operator.world import Failure, World


def find_unobserved(world: World) -> Problem | None:
    """Why source, sink or tunnel of an object that worked before could not be observed; None where they were.

    Before, nothing is hidden: an endpoint that never answered is a finding about the spec.
    """
    if world.resource.undecided:
        return None
    for observed in (world.source, world.destination, world.tunnel):
        if isinstance(observed, Failure) and observed.problem.reason in UNOBSERVED:
            return observed.problem
    return None
