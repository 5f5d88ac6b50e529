"""Words for the allowed values of a field, where its type does not tell them."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Words:
    """Part of a field's `Annotated`, where the type alone does not describe the allowed values.

    Args:
        allowed: the allowed values, in words instead of a regular expression.
        because: the reason, where it is the service's.
    """

    allowed: str = ""
    because: str = ""
