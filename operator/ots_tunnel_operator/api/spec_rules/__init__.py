"""CEL rules between fields of different blocks of the spec; the rules of one block stand on its model."""

from __future__ import annotations

from typing import Final

from ots_tunnel_operator.api.spec_rules.engines import ENGINES_RULES
from ots_tunnel_operator.api.spec_rules.query import QUERY_RULES
from ots_tunnel_operator.api.spec_rules.sides import SIDES_RULES
from ots_tunnel_operator.api.spec_rules.snapshot import SNAPSHOT_RULES

#: In the order in which the CRD has them.
SPEC_RULES: Final = (*ENGINES_RULES, *QUERY_RULES, *SNAPSHOT_RULES, *SIDES_RULES)
