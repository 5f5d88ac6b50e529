"""What the parts of the document have in common."""

from __future__ import annotations

from pathlib import Path

from pydantic import BaseModel, ConfigDict, Field, ValidationError
from pydantic.alias_generators import to_camel


class ConfigModel(BaseModel):
    """Base of the document's parts: frozen, camelCase, unknown keys refused."""

    model_config = ConfigDict(frozen=True, extra="forbid", alias_generator=to_camel, populate_by_name=True)


class CredentialsConfig(ConfigModel):
    """Where the AccessKey pair is."""

    directory: Path
    """Folder with the files `accessKeyId`, `accessKeySecret` and, for temporary keys, `securityToken`.
    They are read again when they change, so a rotated Secret needs no restart."""


class InstanceConfig(ConfigModel):
    """An instance of the service and who calls it."""

    endpoint: str = Field(pattern=r"^https?://[^/\s]+/?$")
    """Instance endpoint without a path, such as https://shop.cn-hangzhou.ots.aliyuncs.com."""
    instance: str = Field(min_length=1)
    """Instance name."""
    credentials: CredentialsConfig


def describe(error: ValidationError) -> str:
    """One clause per wrong field: where, what was found, what is allowed."""
    clauses = []
    for item in error.errors(include_url=False):
        where = ".".join(str(part) for part in item["loc"]) or "document"
        # What stands under a name that is none of ours may be anything, a secret too.
        shown = item["type"] != "extra_forbidden" and not isinstance(item["input"], dict | list)
        found = f", found {item['input']!r}" if shown else ""
        clauses.append(f"{where}: {item['msg']}{found}")
    return "; ".join(clauses)
