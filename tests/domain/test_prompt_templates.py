"""Prompt templates: their fields, and the text that comes out."""

from __future__ import annotations

from typing import Any

import pytest

from agents.domain.prompt_templates import (
    field_names,
    plain_field,
    render_template,
    save_template,
)
from agents.errors import InvalidInputError
from agents.models import PromptTemplate, User


def template(owner: User, text: str, *names: str, **fields: Any) -> PromptTemplate:
    own_fields = [plain_field(name) for name in names]
    return PromptTemplate(
        owner=owner, name=fields.get("name", "T"), text=text, fields=own_fields
    )


def test_fields_that_only_the_text_names_are_plain_texts(alice: User) -> None:
    saved = save_template(template(alice, "{{ b }} and {{a}} and {{b}}", "a"))

    assert [field["name"] for field in saved.fields] == ["a", "b"]
    assert saved.fields[1] == {
        **{"name": "b", "label": "B", "type": "text", "required": True},
        **{"options": [], "default": ""},
    }


@pytest.mark.parametrize(
    ("text", "names", "sentence"),
    [
        ("{{a}}", ("a", "a"), "same name"),
        ("{{a}}", ("a", "b"), "does not use the field “b”"),
        (" ".join(f"{{{{f{n}}}}}" for n in range(21)), (), "20 fields"),
    ],
)
def test_fields_that_dont_fit_are_refused(
    alice: User, text: str, names: tuple[str, ...], sentence: str
) -> None:
    with pytest.raises(InvalidInputError, match=sentence):
        save_template(template(alice, text, *names))


def test_a_name_is_there_once_for_each_person(alice: User, bob: User) -> None:
    save_template(template(alice, "x"))
    save_template(template(bob, "x"))

    with pytest.raises(InvalidInputError, match="already"):
        save_template(template(alice, "y"))


def test_values_are_put_in_once_and_not_looked_at(alice: User) -> None:
    filled = render_template(
        template(alice, "{{a}} {{ b }} {{c}} {x}"), {"a": "{{b}}", "b": "\\1 & <b>"}
    )

    assert filled == "{{b}} \\1 & <b>  {x}"


def test_only_plain_names_are_fields() -> None:
    assert field_names("{{a}} {{ 1b }} {{c-d}} {{_e}} {{}}") == ["a", "_e"]
