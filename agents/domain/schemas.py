"""Checks edited tool input against the schema that the model was given.

The gateway keeps each session's last request, and that holds the real `tools` with
their JSON schemas, so edits are checked by the very schema the CLI will apply.
"""

from __future__ import annotations

from typing import Any

from jsonschema import Draft202012Validator
from jsonschema.exceptions import SchemaError

from agents.errors import InvalidInputError
from agents.models import ApprovalRequest

from .requests import tool_schema


def check_input(approval: ApprovalRequest, updated: dict[str, Any]) -> None:
    """Raises: InvalidInputError naming what is wrong with the edited input."""
    schema = tool_schema(approval.session_id, approval.tool_name)
    if schema is None:
        _check_shape(approval.tool_input, updated)
        return
    try:
        error = next(Draft202012Validator(schema).iter_errors(updated), None)
    except SchemaError:
        _check_shape(approval.tool_input, updated)
        return
    if error is not None:
        where = ".".join(str(part) for part in error.absolute_path)
        raise InvalidInputError(
            f"The input does not fit: {where + ': ' if where else ''}{error.message}",
            field="updated_input",
        )


def _check_shape(original: dict[str, Any], updated: dict[str, Any]) -> None:
    """Without a schema: the same names, each with the same kind of value."""
    for name, value in original.items():
        if name not in updated:
            raise InvalidInputError(f"“{name}” is missing.", field="updated_input")
        if type(updated[name]) is not type(value):
            raise InvalidInputError(
                f"“{name}” must stay a {type(value).__name__}.", field="updated_input"
            )
