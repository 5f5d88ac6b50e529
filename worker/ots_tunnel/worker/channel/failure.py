"""What the failure of one channel means for its worker."""

from __future__ import annotations

import logging

from ots_tunnel.errors import OwnershipLost, PossibleGap, ResourceGone, SinkRejected, TunnelError, TunnelExpired
from ots_tunnel.log_actions import LogAction
from ots_tunnel.model import ChannelId
from ots_tunnel.worker.context import ConsumerContext

logger = logging.getLogger(__name__)


def report_failure(context: ConsumerContext, channel_id: ChannelId, error: TunnelError) -> None:
    """Log a failure; it ends the worker if a new client cannot fix it, and hastens the heartbeat if it may be stale."""
    fields: dict[str, object] = {
        **context.log_fields(LogAction.CHANNEL_FAILED, channel_id),
        "error": f"{type(error).__name__}: {error}",
    }
    if isinstance(error, SinkRejected) and error.keys:
        fields["refused_keys"] = list(error.keys)  # a user has to find the rows, and no other place names them
    match error:
        case SinkRejected() | TunnelExpired() | PossibleGap():
            logger.error("channel failed for good", extra=fields)
            context.end_worker(error)
        case OwnershipLost() | ResourceGone():
            logger.warning("channel is no longer ours", extra=fields)
            context.beat_soon()
        case _:
            logger.error("channel failed", extra=fields)
