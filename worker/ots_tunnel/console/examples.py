"""Examples at the end of a command's help. Pure."""

from __future__ import annotations


def examples(*commands: str) -> str:
    """The epilog of a command: one example a line.

    Args:
        commands: as they are typed.
    """
    # click keeps the lines of a paragraph that begins with a backspace
    return "Examples:\n\n\b\n" + "\n".join(f"  {command}" for command in commands)
