"""What the parts of a checked document are made of where nothing is checked: the names that they use of pydantic.

A part is an object with its fields as attributes. A field that the constructor leaves out has its default, which is an
attribute of the class. Constraints and validators are dropped.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, TypeVar

_T = TypeVar("_T")

#: Keywords of a model, which nothing reads.
ConfigDict = dict
StrictInt = int
StrictStr = str
#: Of no use without a validator.
ValidationInfo = object


class BaseModel:
    """A part whose fields another process has checked. It does not change."""

    def __init__(self, **fields: Any) -> None:
        """Raises: TypeError: there is no such field."""
        names = _fields(type(self))
        for name in fields.keys() - names:
            raise TypeError(f"{type(self).__name__} has no field {name}, allowed is one of {', '.join(names)}")
        self.__dict__.update({name: fields.get(name, getattr(type(self), name, None)) for name in names})

    def __setstate__(self, state: Mapping[str, Any]) -> None:
        """Take the fields from the state of a copy, or from that of a pickled model of pydantic."""
        self.__dict__.update(state.get("__dict__", state))

    def __setattr__(self, name: str, value: Any) -> None:
        raise TypeError(f"{type(self).__name__} is frozen, so {name} cannot be set")

    def __iter__(self) -> Iterator[tuple[str, Any]]:
        """Name and value of every field, as a model of pydantic has it."""
        return iter(self.__dict__.items())

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and self.__dict__ == other.__dict__

    def __hash__(self) -> int:
        return hash((type(self), *self.__dict__.values()))

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(f'{name}={value!r}' for name, value in self)})"


def _fields(kind: type) -> dict[str, None]:
    """Names of a part's fields, in their order."""
    return {
        name: None
        for each in reversed(kind.__mro__)
        for name, annotation in vars(each).get("__annotations__", {}).items()
        if not annotation.startswith("ClassVar")
    }


def Field(*, default: Any = None, default_factory: Callable[[], Any] | None = None, **_constraints: Any) -> Any:
    """The default of a field; None where it has to be given."""
    return default if default_factory is None else default_factory()


def field_validator(*_fields: str, **_settings: Any) -> Callable[[_T], _T]:
    """Leave the method as it is, and uncalled."""
    return lambda method: method


#: The same, for what would check a model as a whole.
model_validator = field_validator


def _dropped(*_values: Any, **_settings: Any) -> None:
    """Part of an annotation that nothing reads."""


AfterValidator = BeforeValidator = Discriminator = Tag = to_camel = to_snake = _dropped
