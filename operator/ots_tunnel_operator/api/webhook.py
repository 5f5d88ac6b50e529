"""A web service as the sink of an object (docs/sinks.md, `http`)."""

from __future__ import annotations

import re
from typing import Annotated

from pydantic import AfterValidator, ConfigDict, Field

from ots_tunnel.endpoint import ENDPOINT
from ots_tunnel_operator.api.schema import ApiModel, cel_text, rule, rules
from ots_tunnel_operator.api.source import CertificateKey, KeyName, SecretKey

#: An endpoint with a path and a query, in ASCII without spaces and without a fragment, which would never be sent.
WEB_URL = ENDPOINT.removesuffix("/?$") + r'([/?][!"$-~]*)?$'
WEB_URL_WORDS = "http(s)://host[:port]/path without user name, spaces and #"


def _web_url(text: str) -> str:
    if not re.fullmatch(WEB_URL, text):
        raise ValueError(f"allowed is {WEB_URL_WORDS}")
    return text


#: The message does not repeat a password.
WebUrl = Annotated[
    str,
    AfterValidator(_web_url),
    Field(
        max_length=2048,
        json_schema_extra=rules(
            {
                "rule": f"self.matches('{cel_text(WEB_URL)}')",
                "message": f"url: allowed is {WEB_URL_WORDS}",
                "messageExpression": (
                    "'url: found ' + (self.contains('@') ? 'a user name or password' : '\\'' + self + '\\'') + "
                    f"', allowed is {WEB_URL_WORDS}'"
                ),
            }
        ),
    ),
]


class SigningKey(SecretKey):
    """One key of a Secret in the object's namespace, with the secret that signs requests."""

    key: KeyName = "secret"
    """Key of the Secret; behind `whsec_` its value is base64, any other value is taken literally."""


class HttpSink(ApiModel):
    """A web service that accepts batches of CloudEvents."""

    model_config = ConfigDict(
        json_schema_extra=rules(
            rule(
                "!has(self.caRef) || self.url.startsWith('https:')",
                "http.caRef is only for http.url https://host/path",
                field=".caRef",
            )
        )
    )

    url: WebUrl
    """Address to which batches are posted, http(s)://host[:port]/path without a user name. A change restarts the
    workers one by one."""
    hmac_secret_ref: SigningKey | None = None
    """Secret that signs every request (Standard Webhooks); workers read a changed Secret without a restart. Absent
    means no signature."""
    ca_ref: CertificateKey | None = None
    """Certificate authorities of the service, beside those of the image; workers read a changed Secret without a
    restart."""
    timeout_seconds: Annotated[int, Field(ge=1, le=300)] = 30
    """Seconds that a request may take, but never more than a third of the difference of
    workers.heartbeatTimeoutSeconds and workers.heartbeatIntervalSeconds."""
