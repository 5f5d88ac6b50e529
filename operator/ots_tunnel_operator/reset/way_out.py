"""The exact commands that lead out of a state in which nothing can go on, for messages of conditions. Pure."""

from __future__ import annotations

from dataclasses import dataclass

from ots_tunnel_operator.reset.facts import Found
from ots_tunnel_operator.reset.request import Form

_OPTIONS = {Form.NEW_TUNNEL: "--new-tunnel", Form.REWIND: "--rewind Earliest", Form.NEW_BASE: "--new-base"}
_SAYS = "which first says what it writes and loses; nothing is reset by itself"


@dataclass(frozen=True, slots=True)
class Way:
    """The commands about one object.

    Args:
        kind: type of the tunnel in the spec.
        is_used: whether a tunnel, or a copy that needs none, is recorded.
        is_ours: whether the operator created the recorded tunnel for this object.
    """

    namespace: str
    name: str
    kind: str
    table: str
    tunnel: str
    is_used: bool
    is_ours: bool

    @property
    def pause(self) -> str:
        """Stop what consumes, and wait for it."""
        return pause_command(self.namespace, self.name)

    @property
    def delete(self) -> str:
        """Delete the tunnel that has the name, with its checkpoints."""
        return f"ots-tunnel tunnel delete {self.table} {self.tunnel} --from-object {self.namespace}/{self.name}"

    def reset(self, form: Form | None = None, *options: str) -> str:
        """Reset it; without a form by the one that loses least: what is there, or all that the stream still keeps."""
        usual = Form.REWIND if self.kind == "Stream" else Form.NEW_BASE
        return " ".join((f"kubectl ott reset {self.name} -n {self.namespace} {_OPTIONS[form or usual]}", *options))

    def steps(self, found: Found) -> tuple[str, ...]:
        """The commands, one after the other; `found` as of `words`."""
        if not self.is_used:
            return (self.delete,)
        deletes = found is Found.RECORDED and self.is_ours
        by_hand = () if found is Found.GONE or deletes else (self.delete,)
        reset = self.reset(None, *(("--delete-tunnel",) if deletes else ()), "--wait")
        return (self.pause, *by_hand, reset, f"kubectl ott resume {self.name} -n {self.namespace}")

    def words(self, found: Found) -> str:
        """What to type to start over.

        Args:
            found: the tunnel of the name.
        """
        if not self.is_used:
            return (
                f"to start over, empty the destination and, if nothing else uses the tunnel, delete it by "
                f"`{self.delete}`: the operator then creates another one"
            )
        match found:
            case Found.GONE:
                return f"to start over, `{self.pause}`, then `{self.reset()}`, {_SAYS}"
            case Found.RECORDED if self.is_ours:
                return f"to start over, `{self.pause}`, then `{self.reset(None, '--delete-tunnel')}`, {_SAYS}"
            case Found.RECORDED:
                steps = f"`{self.pause}`, delete the tunnel, which this object did not create, by `{self.delete}`"
                return f"to start over, {steps}, then `{self.reset()}`, {_SAYS}"
            case Found.ANOTHER:
                adopt = self.reset(Form.NEW_TUNNEL, "--adopt-tunnel")
                return (
                    f"`{self.pause}`; then, to use that one, `{adopt}`, or, to start over, delete it by "
                    f"`{self.delete}`, and `{self.reset()}`, {_SAYS}"
                )


def pause_command(namespace: str, name: str) -> str:
    """Stop what consumes for an object, and wait for it."""
    return f"kubectl ott pause {name} -n {namespace} --wait"
