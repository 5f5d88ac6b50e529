"""The strings below the fields of a class, which are their documentation."""

from __future__ import annotations

import ast
import inspect
import textwrap
from collections.abc import Mapping
from itertools import pairwise


def attribute_docstrings(model: type) -> Mapping[str, str]:
    """Attribute -> the string below it in the source of the class, on one line."""
    body = ast.parse(textwrap.dedent(inspect.getsource(model))).body[0]
    assert isinstance(body, ast.ClassDef)
    return {
        attribute.target.id: " ".join(text.value.value.split())
        for attribute, text in pairwise(body.body)
        if isinstance(attribute, ast.AnnAssign)
        and isinstance(attribute.target, ast.Name)
        and isinstance(text, ast.Expr)
        and isinstance(text.value, ast.Constant)
        and isinstance(text.value.value, str)
    }
