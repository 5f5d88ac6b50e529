"""Pictures of the state machines of a channel's connection and of the client, from the tables that the worker runs on.

Transitions without an effect are left out.
"""

from __future__ import annotations

from ots_tunnel.model import ChannelStatus
from ots_tunnel.protocol.channel import TRANSITIONS, Outcome, State, Trigger
from ots_tunnel.protocol.lifecycle import CLIENT_TRANSITIONS, ClientState

_EVENTS = {
    "Vanished": "vanished",
    "Drain": "drain",
    "Connected": "checkpoint read",
    "ConnectFailed": "no checkpoint",
    "PipelineFinished": "read to the end",
    "PipelineFailed": "error",
    "PipelineStopped": "stopped",
}
_OUTCOMES = {
    Outcome.START: "start",
    Outcome.DRAIN: "finish batch, store checkpoint",
    Outcome.ABANDON: "stop at once, no checkpoint",
    Outcome.REPORT_CLOSE: "report CLOSE",
    Outcome.REPORT_TERMINATED: "report TERMINATED",
}


def picture() -> str:
    """The machine as a Mermaid diagram."""
    edges: dict[tuple[State, State, Outcome], list[str]] = {}
    for (state, trigger), (following, outcome) in TRANSITIONS.items():
        if state is not following or outcome is not Outcome.NOTHING:
            edges.setdefault((state, following, outcome), []).append(_word(trigger))
    lines = ["stateDiagram-v2", "    [*] --> WAIT"]
    lines += [f"    {state.name}: {state.value}" for state in State]
    for (state, following, outcome), words in edges.items():
        does = f" / {_OUTCOMES[outcome]}" if outcome in _OUTCOMES else ""
        lines.append(f"    {state.name} --> {following.name}: {', '.join(words)}{does}")
    return "```mermaid\n" + "\n".join(lines) + "\n```\n"


def client_picture() -> str:
    """The machine of the worker as a client, as a Mermaid diagram."""
    lines = ["stateDiagram-v2", "    [*] --> READY"]
    lines += [f"    {state.name}: {state.value}" for state in ClientState]
    lines += [
        f"    {state.name} --> {following.name}: {event.value}"
        for (state, event), following in CLIENT_TRANSITIONS.items()
    ]
    return "```mermaid\n" + "\n".join(lines) + "\n```\n"


def _word(trigger: Trigger) -> str:
    return trigger.name if isinstance(trigger, ChannelStatus) else _EVENTS[trigger.__name__]
