"""The file of profiles."""

from __future__ import annotations

from pathlib import Path

import pytest

from ots_tunnel.connections.profiles import default_origin, profile_origin, profiles_path, read_profiles
from ots_tunnel.errors import ConfigError
from ots_tunnel.model import Credentials

FILE = """
default: shop
profiles:
  shop:
    endpoint: https://shop.cn-hangzhou.ots.aliyuncs.com
    instance: shop
    credentials: {accessKeyId: id, accessKeySecret: hush, securityToken: token}
  local:
    endpoint: http://127.0.0.1:8300
    credentials: {directory: keys}
"""


def written(folder: Path, text: str, mode: int = 0o600) -> Path:
    path = folder / "profiles.yaml"
    path.write_text(text)
    path.chmod(mode)
    return path


def test_a_profile_names_the_parts_that_it_has(tmp_path: Path) -> None:
    path = written(tmp_path, FILE)
    keys = tmp_path / "keys"
    keys.mkdir()
    (keys / "accessKeyId").write_text("local")
    (keys / "accessKeySecret").write_text("hush")

    shop, local = profile_origin(path, "shop"), profile_origin(path, "local")

    assert (shop.endpoint, shop.instance) == ("https://shop.cn-hangzhou.ots.aliyuncs.com", "shop")
    assert shop.credentials is not None
    assert shop.credentials() == Credentials("id", "hush", "token")
    assert shop.names["credentials"] == f"{path}: profiles.shop.credentials"
    assert (local.endpoint, local.instance) == ("http://127.0.0.1:8300", None)
    assert local.credentials is not None
    assert local.credentials() == Credentials("local", "hush", None)
    assert default_origin(path).instance == "shop"
    assert "hush" not in repr((shop, read_profiles(path)))


def test_without_a_file_there_is_no_default(tmp_path: Path) -> None:
    assert default_origin(tmp_path / "none").endpoint is None
    assert default_origin(written(tmp_path, "profiles: {}")).endpoint is None


def test_the_place_of_the_file_can_be_chosen() -> None:
    assert profiles_path({"HOME": "/h"}) == Path("/h/.config/ots-tunnel/profiles.yaml")
    assert profiles_path({"HOME": "/h", "XDG_CONFIG_HOME": "/x"}) == Path("/x/ots-tunnel/profiles.yaml")
    assert profiles_path({"HOME": "/h", "OTS_TUNNEL_PROFILES": "/p.yaml"}) == Path("/p.yaml")


def test_keys_that_others_may_read_are_refused(tmp_path: Path) -> None:
    path = written(tmp_path, FILE, 0o640)

    with pytest.raises(ConfigError) as refused:
        read_profiles(path)

    assert str(refused.value) == (
        f"{path}: found mode 640, allowed is 600, because the file holds keys: chmod 600 {path}"
    )
    read_profiles(
        written(tmp_path, FILE.replace("{accessKeyId: id, accessKeySecret: hush, securityToken: token}", "null"), 0o644)
    )


def test_an_unknown_profile_is_answered_with_the_known_ones(tmp_path: Path) -> None:
    path = written(tmp_path, FILE)

    with pytest.raises(ConfigError) as unknown:
        profile_origin(path, "shpo")

    assert str(unknown.value) == f"profile: found 'shpo', allowed are those of {path}: shop, local"
    with pytest.raises(ConfigError, match="No such file"):
        profile_origin(tmp_path / "none", "shop")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[]", "document: found a list of 0, allowed is a mapping with default, profiles"),
        (
            "profiles: {shop: {endpont: x}}",
            "profiles.shop.endpont: unknown, allowed is endpoint, instance, credentials",
        ),
        (
            "profiles: {shop: {endpoint: shop}}",
            "profiles.shop.endpoint: found 'shop', allowed is http(s)://host[:port]",
        ),
        ("{default: nobody, profiles: {shop: {}}}", "default: found 'nobody', allowed is one of shop"),
        (
            "profiles: {shop: {credentials: {accessKeySecret: hush}}}",
            "profiles.shop.credentials: allowed is directory, or accessKeyId and accessKeySecret",
        ),
        (
            "profiles: {shop: {credentials: {directory: k, accessKeySecret: hush}}}",
            "profiles.shop.credentials: found directory and keys, allowed is one of both",
        ),
        ("profiles: {shop: {credentials: hush}}", "profiles.shop.credentials: found a text, allowed is a mapping with"),
        ("profiles: {shop: {credentials: {accessKeyId: [hush]}}}", "profiles.shop.credentials.accessKeyId: found"),
    ],
)
def test_a_wrong_file_is_named_with_the_field(tmp_path: Path, text: str, message: str) -> None:
    path = written(tmp_path, text)

    with pytest.raises(ConfigError) as wrong:
        read_profiles(path)

    assert str(wrong.value).startswith(f"{path}: {message}")
    assert "hush" not in str(wrong.value)
