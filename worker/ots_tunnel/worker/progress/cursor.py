"""The calls of one channel: its checkpoint, and the records from a token on."""

from __future__ import annotations

from ots_tunnel.client.page import Page
from ots_tunnel.client.tunnel import TunnelClient
from ots_tunnel.errors import OwnershipLost
from ots_tunnel.fence import ChannelFence
from ots_tunnel.model import ChannelId, Checkpoint, ClientId, Token, TunnelId
from ots_tunnel.protocol.service_codes import is_refusal
from ots_tunnel.transport import BeforeAnswer


class ChannelCursor:
    """The checkpoint and the records of one channel; the checkpoint is written only while the fence is open.

    Args:
        timeout: D, seconds that writing the checkpoint may take (docs/architecture.md rule 4).
        guard: asked right before the checkpoint is written.
        doubts: whether a checkpoint without an answer puts the channel in doubt (see `fence`).
    """

    def __init__(
        self,
        client: TunnelClient,
        ids: tuple[TunnelId, ClientId, ChannelId],
        *,
        timeout: float,
        guard: ChannelFence,
        doubts: bool,
    ) -> None:
        self._client = client
        self._ids = ids
        self._timeout = timeout
        self._guard = guard
        self._doubts = doubts
        #: Highest sequence number that was sent.
        self._sent = 0

    async def get(self) -> Checkpoint:
        """See `TunnelClient.get_checkpoint`."""
        stored = await self._client.get_checkpoint(*self._ids)
        if stored.sequence_number >= self._sent:
            self._guard.checkpoint_doubt.settle()
        return stored

    async def put(self, checkpoint: Checkpoint) -> None:
        """See `TunnelClient.checkpoint`.

        Raises:
            OwnershipLost: the guard forbids it.
        """
        doubt = self._guard.checkpoint_doubt
        self._sent = max(self._sent, checkpoint.sequence_number)
        if self._doubts:
            doubt.begin()
        try:
            await self._client.checkpoint(*self._ids, checkpoint, timeout=self._timeout, before_send=self._guard.check)
        except BaseException as error:
            # a proxy may answer in place of the service, which carries the checkpoint out nevertheless
            if isinstance(error, OwnershipLost) or is_refusal(error):
                doubt.confirm()
            else:
                doubt.abandon()
            raise
        if checkpoint.sequence_number >= self._sent:
            doubt.settle()
        else:
            doubt.confirm()

    async def read(self, token: Token, before_answer: BeforeAnswer) -> Page:
        """See `TunnelClient.read_records`."""
        return await self._client.read_records(*self._ids, token, before_answer=before_answer)
