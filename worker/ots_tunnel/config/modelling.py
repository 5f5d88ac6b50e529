"""What the parts of a document are made of: pydantic, or in a process whose document another one checks, plain classes.

See `ots_tunnel.checking`. Every name that a part uses of pydantic is one of these.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ots_tunnel import checking

if TYPE_CHECKING or not checking.is_apart:
    from pydantic import (
        AfterValidator,
        BaseModel,
        BeforeValidator,
        ConfigDict,
        Discriminator,
        Field,
        StrictInt,
        StrictStr,
        Tag,
        ValidationInfo,
        field_validator,
        model_validator,
    )
    from pydantic.alias_generators import to_camel, to_snake
else:
    from ots_tunnel.checking.plain_parts import (
        AfterValidator,
        BaseModel,
        BeforeValidator,
        ConfigDict,
        Discriminator,
        Field,
        StrictInt,
        StrictStr,
        Tag,
        ValidationInfo,
        field_validator,
        model_validator,
        to_camel,
        to_snake,
    )

__all__ = [
    "AfterValidator",
    "BaseModel",
    "BeforeValidator",
    "ConfigDict",
    "Discriminator",
    "Field",
    "StrictInt",
    "StrictStr",
    "Tag",
    "ValidationInfo",
    "field_validator",
    "model_validator",
    "to_camel",
    "to_snake",
]
