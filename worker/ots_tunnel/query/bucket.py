"""What Hadoop is told of a bucket in which a query has its Delta table. Pure.

Hadoop calls the bucket from the JVM of the driver, which commits, and from those of the executors, which write files.
Neither has the keys in its settings, because Spark shows these in its page and its event log. They have a profile, a
small file in the form of Amazon's tools, and it names a command that prints the keys from the files of the Secret:

    [default]
    credential_process = printf '{"Version":1,"AccessKeyId":"%s",...}' "$(cat /etc/ots/secrets/sink/accessKeyId)" ...

Hadoop runs the command again before what it printed expires, so that keys which are replaced need no restart.
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from ots_tunnel.query.files import QueryFilesConfig

#: Name of the profile's file, beside the document.
PROFILE_FILE: Final = "bucket.ini"
#: Seconds after which the keys are read again, as workers do.
KEYS_SECONDS: Final = 60

#: How often a call is repeated, at first after half a second and each time after twice as long. Hadoop's own numbers,
#: 20 and 7, let a driver sleep for six minutes at a time while a store is busy, and for two before it tells that
#: nothing listens; a driver that has failed is started again anyway.
_RETRIES: Final = {"retry.throttle.limit": "6", "retry.limit": "4", "connection.establish.timeout": "10s"}

_PROFILE: Final = "default"
_PROVIDER: Final = "org.apache.hadoop.fs.s3a.auth.ProfileAWSCredentialsProvider"
_AMAZON: Final = "s3.amazonaws.com"
_REGION: Final = "us-east-1"


def bucket_settings(files: QueryFilesConfig, profile: Path | None) -> Mapping[str, str]:
    """Settings of a session that writes to a bucket; they concern no other bucket.

    Args:
        files: a place in a bucket.
        profile: the file of `profile_text`; None leaves it to the session where the credentials are.
    """
    found = {
        # always: a general setting of the session would lead to another store
        "endpoint": files.endpoint or _AMAZON,
        "endpoint.region": files.region or _REGION,
        "path.style.access": str(not files.bucket_in_host).lower(),
        **_RETRIES,
    }
    if profile is not None:
        found |= {
            "aws.credentials.provider": _PROVIDER,
            "auth.profile.file": str(profile),
            "auth.profile.name": _PROFILE,
        }
    bucket = urlsplit(files.url).netloc
    return {f"spark.hadoop.fs.s3a.bucket.{bucket}.{name}": value for name, value in found.items()}


def profile_text(directory: Path, *, seconds: int = KEYS_SECONDS) -> str:
    """The profile whose keys are in the files of a folder, `credentials.directory` of the document.

    Args:
        seconds: after which they are read again.
    """
    key, secret, token = (_value(directory / name) for name in ("accessKeyId", "accessKeySecret", "securityToken"))
    token_member = f"""$(t={token}; test -n "$t" && printf ',"SessionToken":"%s"' "$t")"""
    # what date takes in every system: seconds since 1970
    expires = f"$(date -u -d @$(($(date +%s)+{seconds})) +%Y-%m-%dT%H:%M:%SZ)"
    answer = """'{"Version":1,"AccessKeyId":"%s","SecretAccessKey":"%s"%s,"Expiration":"%s"}'"""
    values = " ".join(f'"{value}"' for value in (key, secret, token_member, expires))
    return f"[{_PROFILE}]\ncredential_process = printf {answer} {values}\n"


def _value(path: Path) -> str:
    """A command for the text of a file as `FileCredentials` has it, without white space around it, inside of JSON."""
    return rf"""$(cat {shlex.quote(str(path))} 2>/dev/null | tr -d '[:space:]' | sed 's/[\\"]/\\&/g')"""
