"""Prompt templates: a text with fields, stored whole, and filled in by a person."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

from django.db import IntegrityError, transaction

from agents.errors import InvalidInputError
from agents.models import PromptTemplate
from agents.models.templates import FieldType
from agents.rendering.text import clean_json, clean_text

MAX_FIELDS: Final = 20
FIELD_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,39}")
_PLACE = re.compile(r"\{\{\s*([A-Za-z_][A-Za-z0-9_]{0,39})\s*\}\}")


@transaction.atomic
def save_template(template: PromptTemplate) -> PromptTemplate:
    """Store a template; fields that only its text names are plain, required texts.

    Raises: InvalidInputError naming the field.
    """
    template.name = clean_text(template.name).strip()
    template.text = clean_text(template.text).replace("\r\n", "\n").strip()
    template.fields = clean_json(_complete(template.text, template.fields))
    try:
        with transaction.atomic():
            template.save()
    except IntegrityError as error:
        raise InvalidInputError(
            f"You have a template “{template.name}” already.", field="name"
        ) from error
    return template


def _complete(text: str, fields: list[dict[str, Any]]) -> list[dict[str, Any]]:
    used = field_names(text)
    known = [str(field["name"]) for field in fields]
    if len(known) != len(set(known)):
        raise InvalidInputError("Two fields have the same name.")
    unused = [name for name in known if name not in used]
    if unused:
        raise InvalidInputError(
            f"The text does not use the field “{unused[0]}”: write"
            f" {{{{{unused[0]}}}}} where its value goes.",
            field="text",
        )
    missing = [plain_field(name) for name in used if name not in known]
    if len(fields) + len(missing) > MAX_FIELDS:
        raise InvalidInputError(f"A template can have {MAX_FIELDS} fields.")
    return [*fields, *missing]


def plain_field(name: str) -> dict[str, Any]:
    return {
        "name": name,
        "label": name.replace("_", " ").capitalize(),
        "type": FieldType.TEXT.value,
        "required": True,
        "options": [],
        "default": "",
    }


def field_names(text: str) -> list[str]:
    """The names of all `{{fields}}`, each once, in the order of the text."""
    return list(dict.fromkeys(found[1] for found in _PLACE.finditer(text)))


def render_template(template: PromptTemplate, values: Mapping[str, Any]) -> str:
    """The text with the values in place; what a value contains is not looked at."""
    return _PLACE.sub(lambda found: str(values.get(found[1], "")), template.text)
