"""Named profiles: one YAML file with the endpoint, the instance and the keys of every instance that a person uses."""

from __future__ import annotations

import os
import stat
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Self

from pydantic import ConfigDict, Field, SecretStr, ValidationError, model_validator

from ots_tunnel.config import ConfigModel
from ots_tunnel.config.base import Endpoint, InstanceName, NonEmptyPath
from ots_tunnel.config.messages.describing import describe
from ots_tunnel.config.problems import Contradiction
from ots_tunnel.config.yaml_file import read_yaml
from ots_tunnel.connections.connection import Origin
from ots_tunnel.credentials import CredentialsProvider, FileCredentials, static_credentials
from ots_tunnel.errors import ConfigError
from ots_tunnel.model import Credentials

#: Variable that names another file.
FILE_VARIABLE = "OTS_TUNNEL_PROFILES"
#: Mode bits of a file with keys that must not be set, as ssh asks for it.
_OTHERS = stat.S_IRWXG | stat.S_IRWXO

Secret = Annotated[SecretStr, Field(min_length=1)]


class ProfileCredentials(ConfigModel):
    """The keys themselves, or the folder of their files."""

    model_config = ConfigDict(hide_input_in_errors=True)

    directory: NonEmptyPath | None = None
    """Folder with the files `accessKeyId`, `accessKeySecret` and, for temporary keys, `securityToken`; a relative path
    begins at the folder of this file."""
    access_key_id: Secret | None = None
    """AccessKey id."""
    access_key_secret: Secret | None = None
    """AccessKey secret."""
    security_token: Secret | None = None
    """Token of temporary keys."""

    @model_validator(mode="after")
    def _is_one_of_both(self) -> Self:
        keys = (self.access_key_id, self.access_key_secret)
        if self.directory is None and None in keys:
            raise Contradiction("", "allowed is directory, or accessKeyId and accessKeySecret")
        if self.directory is not None and (*keys, self.security_token) != (None, None, None):
            raise Contradiction("", "found directory and keys, allowed is one of both")
        return self


class Profile(ConfigModel):
    """One instance."""

    endpoint: Endpoint | None = None
    """Instance endpoint without a path, such as https://shop.cn-hangzhou.ots.aliyuncs.com."""
    instance: InstanceName | None = None
    """Instance name."""
    credentials: ProfileCredentials | None = None


class ProfilesFile(ConfigModel):
    """The whole file."""

    default: str | None = None
    """Profile that holds where neither options nor variables say anything else."""
    profiles: dict[str, Profile]
    """Profiles by their names."""

    @model_validator(mode="after")
    def _default_exists(self) -> Self:
        if self.default is not None and self.default not in self.profiles:
            raise Contradiction("default", f"found {self.default!r}, allowed is one of {', '.join(self.profiles)}")
        return self


def profiles_path(environment: Mapping[str, str]) -> Path:
    """The file: that of `OTS_TUNNEL_PROFILES`, or `ots-tunnel/profiles.yaml` in the user's folder of settings."""
    if named := environment.get(FILE_VARIABLE):
        return Path(named)
    home = environment.get("HOME") or str(Path.home())
    settings = environment.get("XDG_CONFIG_HOME") or os.path.join(home, ".config")
    return Path(settings) / "ots-tunnel" / "profiles.yaml"


def read_profiles(path: Path) -> ProfilesFile:
    """Read and check the file.

    Raises:
        ConfigError: it is missing or malformed, or holds keys and others may read it.
    """
    document = read_yaml(path)
    try:
        file = ProfilesFile.model_validate(document, by_alias=True, by_name=False)
    except ValidationError as error:
        raise ConfigError(f"{path}: {describe(error, ProfilesFile)}") from error
    mode = stat.S_IMODE(path.stat().st_mode)
    has_keys = any(each.credentials and each.credentials.access_key_secret for each in file.profiles.values())
    if has_keys and mode & _OTHERS:
        raise ConfigError(f"{path}: found mode {mode:o}, allowed is 600, because the file holds keys: chmod 600 {path}")
    return file


def profile_origin(path: Path, name: str) -> Origin:
    """What a profile names.

    Raises:
        ConfigError: as `read_profiles`, or there is no such profile; names those that exist.
    """
    file = read_profiles(path)
    if name not in file.profiles:
        known = ", ".join(file.profiles) or "none"
        raise ConfigError(f"profile: found {name!r}, allowed are those of {path}: {known}")
    return _origin(path, name, file.profiles[name])


def default_origin(path: Path) -> Origin:
    """What the default profile names; nothing where there is no file or no default.

    Raises:
        ConfigError: as `read_profiles`.
    """
    file = read_profiles(path) if path.exists() else ProfilesFile(profiles={})
    return Origin() if file.default is None else _origin(path, file.default, file.profiles[file.default])


def _origin(path: Path, name: str, profile: Profile) -> Origin:
    prefix = f"profiles.{name}"
    names = {part: f"{path}: {prefix}.{part}" for part in ("endpoint", "instance", "credentials")}
    credentials = None if profile.credentials is None else _provider(path, profile.credentials)
    return Origin(profile.endpoint, profile.instance, credentials, names)


def _provider(path: Path, credentials: ProfileCredentials) -> CredentialsProvider:
    if credentials.directory is not None:
        return FileCredentials(path.parent / credentials.directory.expanduser())
    key_id, secret = credentials.access_key_id, credentials.access_key_secret
    assert key_id is not None
    assert secret is not None
    token = credentials.security_token
    pair = Credentials(
        key_id.get_secret_value(), secret.get_secret_value(), None if token is None else token.get_secret_value()
    )
    return static_credentials(pair)
