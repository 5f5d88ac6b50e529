"""Values of spec fields that the API server and the model have to judge alike."""

from __future__ import annotations

#: Times of a stream window that are taken.
MOMENTS = (
    "1971-01-01T00:00:00Z",
    "2026-01-31T12:00:00+08:00",
    "2026-01-31T12:00:00.5-23:59",
    "2026-01-31T12:00:00.123456Z",
    "2026-01-31T12:00:00.123456789Z",
    "2026-01-31T12:00:00.1234567891Z",
    "2199-12-31T23:59:59Z",
)

#: Later times: an end may be that late, a start may not.
ENDS = (
    "2262-05-01T00:00:00Z",
    "9999-12-31T23:59:59Z",
    "9999-12-31T23:59:59.9999999-23:59",
    "9999-12-31T23:59:59.9999999+23:59",
)

#: Ends that the API server once took, in a field that is immutable: they are refused now, and read where they stand.
OLD_ENDS = (
    "0001-01-01T00:00:00Z",
    "0999-12-31T12:00:00Z",
    # the service would take it for no time
    "1970-01-01T00:00:00Z",
    "2026-01-31t12:00:00z",
    "2026-01-31T12:00:00z",
)

#: Times that are refused.
NO_MOMENTS = (
    "0000-01-01T00:00:00Z",
    "2026-01-31T12:00:00",
    "2026-01-31T12:00:00x5Z",
    "2026-01-31T12:00:00.Z",
    "10000-01-01T00:00:00Z",
    "2026-01-31T12:00:00+24:00",
    "2026-01-31",
    "2026-02-30T12:00:00Z",
)

#: Images that are taken, and that are refused; the last one has a space that ASCII does not know.
IMAGES = ("", "registry.example:5000/ots-tunnel:1@sha256:00")
NO_IMAGES = ("ots tunnel:1", "ots-tunnel:1\n", "ots\u00a0tunnel:1")

#: Addresses of web services that are taken, and that are refused.
WEB_URLS = (
    "http://hook",
    "https://hooks.shop.example:8443/orders/new?shop=1&key=a@b",
    "http://[::1]:8080/",
    "https://hooks.shop.example?shop=1",
)
NO_WEB_URLS = (
    "hooks.shop.example/orders",
    "ftp://hooks.shop.example/",
    "https://user:word@hooks.shop.example/",
    "https://hooks.shop.example/a b",
    "https://hooks.shop.example/#/orders",
    "https://hooks.shop.example:0/",
    "https://hooks.shop.example:65536/",
    "https://hooks.shop.example/\n",
)
