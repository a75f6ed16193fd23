"""Checks edited tool input against the schema that the model was given.

The gateway keeps each session's last request, and that holds the real `tools` with
their JSON schemas, so edits are checked by the very schema the CLI will apply.
"""

from __future__ import annotations

from typing import Any

from jsonschema.exceptions import SchemaError
from jsonschema.protocols import Validator
from jsonschema.validators import Draft202012Validator, validator_for
from referencing import Registry
from referencing.exceptions import Unresolvable

from agents.errors import InvalidInputError
from agents.models import ApprovalRequest
from agents.rendering.text import preview

from .requests import tool_schema

MESSAGE_CHARACTERS = 300
_KINDS = {
    str: "a text",
    bool: "true or false",
    int: "a whole number",
    float: "a number",
    list: "a list",
    dict: "an object",
    type(None): "null",
}


def check_input(approval: ApprovalRequest, updated: dict[str, Any]) -> None:
    """Raises: InvalidInputError naming what is wrong with the edited input."""
    schema = tool_schema(approval.session_id, approval.tool_name)
    if schema is None:
        _check_shape(approval.tool_input, updated)
        return
    try:
        error = next(_validator(schema).iter_errors(updated), None)
    except (SchemaError, Unresolvable):
        _check_shape(approval.tool_input, updated)
        return
    if error is not None:
        where = ".".join(str(part) for part in error.absolute_path)
        # The sentence quotes the value, which may be a whole file.
        what = preview(error.message, MESSAGE_CHARACTERS)
        raise _refusal(f"The input does not fit: {where + ': ' if where else ''}{what}")


def _validator(schema: dict[str, Any]) -> Validator:
    """Raises: SchemaError. Tool schemas are strangers' data: nothing is fetched."""
    kind = validator_for(schema, default=Draft202012Validator)
    kind.check_schema(schema)
    return kind(schema, registry=Registry())


def _check_shape(original: dict[str, Any], updated: dict[str, Any]) -> None:
    """Without a schema: the same names, each with the same kind of value."""
    for name, value in original.items():
        if name not in updated:
            raise _refusal(f"“{name}” is missing.")
        if type(updated[name]) is not type(value):
            raise _refusal(f"“{name}” must stay {_KINDS[type(value)]}.")
    for name in updated:
        if name not in original:
            raise _refusal(f"“{name}” is not part of this call.")


def _refusal(sentence: str) -> InvalidInputError:
    return InvalidInputError(sentence, field="updated_input")
