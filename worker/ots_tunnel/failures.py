"""The one error that ended a group of tasks."""

from __future__ import annotations


def first_error(group: BaseExceptionGroup[BaseException]) -> BaseException:
    """The first failure of a task group: what the others failed on is usually its consequence."""
    error = group.exceptions[0]
    return first_error(error) if isinstance(error, BaseExceptionGroup) else error
