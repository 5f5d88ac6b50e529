"""A pass that could not observe its object: what is logged, and when the object shows it.

The cause is a refusal or an unexpected error, or a spec that this release cannot read. Every condition is then Unknown:
at once, or, where the error may be over in the next pass, when passes have failed for Settings.unknown_seconds.
"""

from __future__ import annotations

import logging
from collections.abc import Callable

from pydantic import ValidationError

from ots_tunnel.config.messages.describing import describe
from ots_tunnel_operator.diagnosis import internal_problem, kube_problem, shortened, spec_unreadable
from ots_tunnel_operator.kube.claims import Claims
from ots_tunnel_operator.kube.errors import KubeError
from ots_tunnel_operator.kube.reflector import StaleCopy
from ots_tunnel_operator.log_actions import LogAction
from ots_tunnel_operator.loop_cache import LoopCache
from ots_tunnel_operator.reasons import Problem
from ots_tunnel_operator.report.reporter import Reporter
from ots_tunnel_operator.settings import Settings
from ots_tunnel_operator.status_write import StatusOutdated

logger = logging.getLogger(__name__)


class FailedPass:
    """Logs and shows failed passes of all objects."""

    def __init__(self, reporter: Reporter, claims: Claims, settings: Settings, clock: Callable[[], float]) -> None:
        self._reporter = reporter
        self._claims = claims
        self._settings = settings
        self._clock = clock

    async def show(self, namespace: str, name: str, cache: LoopCache, error: Exception, started: float) -> Problem:
        """Log the error, and make the status Unknown where it is time; the problem behind it.

        Args:
            started: when the pass began, Unix seconds.
        """
        problem = _diagnosed(error, where(namespace, name, error))
        cache.failing_since = started if cache.failing_since is None else cache.failing_since
        now = self._clock()
        is_shown = not _is_passing(error) or now - cache.failing_since >= self._settings.unknown_seconds
        # the status of an object that another operator serves is that one's to write
        if is_shown and cache.body is not None and not self._claims.names_another(cache.body):
            try:
                await self._reporter.report_unobserved(cache.body, problem, cache, now)
            except (KubeError, StatusOutdated) as refused:
                cache.outdated = True
                logger.warning("a failed pass could not be reported", extra=where(namespace, name, refused))
            except Exception as bug:
                # a loop that ends is never started again, so not even this may end it
                logger.exception("a failed pass could not be reported", extra=where(namespace, name, bug))
        return problem


def is_answered(error: Exception) -> bool:
    """Whether a failed pass shows that the process works: the object cannot be read by this release, or the API server
    has answered that the operator may not. No restart helps."""
    return isinstance(error, ValidationError) or (isinstance(error, KubeError) and error.status == 403)


def where(namespace: str, name: str, error: Exception) -> dict[str, str]:
    """What a log line of a failed pass names."""
    return {
        "action": LogAction.PASS_FAILED,
        "namespace": namespace,
        "object": name,
        "error": f"{type(error).__name__}: {shortened(str(error))}",
    }


def _diagnosed(error: Exception, place: dict[str, str]) -> Problem:
    """The problem behind an error, which is logged."""
    match error:
        case KubeError():
            logger.warning("the API server refused a call of a pass", extra=place)
            return kube_problem(error)
        case ValidationError():
            # CRD and release disagree; other objects are not affected
            unreadable = place | {"action": LogAction.OBJECT_UNREADABLE}
            logger.error("an object does not fit the CRD of this release", extra=unreadable)
            return spec_unreadable(describe(error))
        case _:
            # the edge of the loop: the log has the traceback
            logger.error("a pass failed", exc_info=error, extra=place)
            return internal_problem(error)


def _is_passing(error: Exception) -> bool:
    """Whether an error of the API server may be over in the next pass."""
    if not isinstance(error, KubeError) or isinstance(error, StaleCopy):
        return False
    return error.status in (0, 409, 429) or error.status >= 500
