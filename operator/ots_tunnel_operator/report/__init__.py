"""From world, assessment and plan to status and events."""

from __future__ import annotations

from typing import Any

#: The status of an object or a part of it, in camelCase; what is not known is absent.
Status = dict[str, Any]
