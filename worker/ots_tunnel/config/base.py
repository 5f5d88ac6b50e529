"""The base model of the document's parts, and the types that several of them use."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path
from typing import Annotated, Any
from urllib.parse import urlsplit

from ots_tunnel.config.modelling import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    ValidationInfo,
    field_validator,
    to_camel,
)
from ots_tunnel.config.problems import NotAllowed
from ots_tunnel.config.words import Words
from ots_tunnel.endpoint import ENDPOINT_WORDS, INSTANCE, INSTANCE_WORDS, is_endpoint


class ConfigModel(BaseModel):
    """Base of the document's parts: frozen, camelCase, without unknown keys."""

    model_config = ConfigDict(
        frozen=True, extra="forbid", alias_generator=to_camel, populate_by_name=True, allow_inf_nan=False
    )

    @field_validator("*", mode="before")
    @classmethod
    def _is_of_its_kind(cls, value: Any, info: ValidationInfo) -> Any:
        """Refuse conversions between kinds of values, such as "5" or `yes` for a number."""
        kind = cls.model_fields[info.field_name or ""].annotation
        if (kind in (int, float) and isinstance(value, bool | str)) or (kind is bool and not isinstance(value, bool)):
            raise NotAllowed
        return value


def _without_login(url: str) -> str:
    """Refuse a user name or password: the document holds no secrets, and logs repeat addresses."""
    try:
        parts = urlsplit(url)
        has_login, port = parts.username is not None or parts.password is not None, parts.port
    except ValueError:  # such as a port above 65535
        raise NotAllowed from None
    if has_login or port == 0:
        raise NotAllowed
    return url


def _endpoint(text: str) -> str:
    if not is_endpoint(text):
        raise NotAllowed
    return text


def _not_a_number(time: Any) -> Any:
    if isinstance(time, bool | int | float):  # its unit and origin would be guesses
        raise NotAllowed
    return time


def _with_a_zone(time: datetime) -> datetime:
    if time.tzinfo is None:
        raise NotAllowed
    return time


def _not_empty(path: Any) -> Any:
    if path == "":  # pathlib would read it as the working directory
        raise NotAllowed
    return path


WebUrl = Annotated[
    str,
    # what follows a # would never be sent
    Field(pattern=r"^https?://[^/#\s][^#\s]*$"),
    AfterValidator(_without_login),
    Words("http(s)://host[:port]/path without a user name and password, spaces and #"),
]
Endpoint = Annotated[str, AfterValidator(_endpoint), Words(ENDPOINT_WORDS)]
InstanceName = Annotated[str, Field(pattern=INSTANCE, max_length=64), Words(INSTANCE_WORDS)]
TableName = Annotated[
    str,
    Field(pattern=r"^[A-Za-z_][A-Za-z0-9_]*$", max_length=255),
    Words("up to 255 letters, digits and underscores, no digit first"),
]
Name = Annotated[str, Field(min_length=1)]
#: A time with a time zone.
ZonedTime = Annotated[datetime, BeforeValidator(_not_a_number), AfterValidator(_with_a_zone)]
NonEmptyPath = Annotated[Path, BeforeValidator(_not_empty), Words("a path that is not empty")]


class CredentialsConfig(ConfigModel):
    """Location of the AccessKey pair."""

    directory: NonEmptyPath
    """Folder with the files `accessKeyId`, `accessKeySecret` and, for temporary keys, `securityToken`.
    They are read again when they change, so a rotated Secret needs no restart."""


class InstanceConfig(ConfigModel):
    """An instance of the service, with the credentials for its calls."""

    endpoint: Endpoint
    """Instance endpoint without a path, such as https://shop.cn-hangzhou.ots.aliyuncs.com."""
    instance: InstanceName
    """Instance name."""
    credentials: CredentialsConfig
