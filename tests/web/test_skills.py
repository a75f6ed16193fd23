"""The pages for skills and prompt templates."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Callable
from typing import Any

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client

from agents.domain import skills
from agents.models import AgentSession, PromptTemplate, Run, Skill, User
from agents.workspaces.skill_packages import SkillPackage
from tests import factories
from tests.dom import Node, parse

SignIn = Callable[[User], Client]
PACKAGE = SkillPackage("review", "When wanted", "Look twice.", {"a.txt": b"x"})

pytestmark = pytest.mark.django_db


@pytest.fixture
def client(alice: User, sign_in: SignIn) -> Client:
    return sign_in(alice)


def page_of(response: Any) -> Node:
    return parse(response.content.decode())


def upload(client: Client, name: str, data: bytes) -> Any:
    file = SimpleUploadedFile(name, data)
    return client.post("/settings/skills/", {"file": file})


def test_an_uploaded_skill_is_listed_downloaded_and_deleted(client: Client) -> None:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        archive.writestr("x/SKILL.md", "---\nname: Review\n---\n# How to look\nTwice.")
        archive.writestr("x/a.txt", "x")

    assert upload(client, "x.zip", out.getvalue()).status_code == 302
    skill = Skill.objects.get()
    page = page_of(client.get("/settings/skills/"))
    assert "/review" in page.words
    assert "How to look" in page.words

    exported = client.get(f"/settings/skills/{skill.pk}/export/")
    assert exported["Content-Disposition"] == 'attachment; filename="review.zip"'
    with zipfile.ZipFile(io.BytesIO(exported.content)) as archive:
        assert archive.namelist() == ["review/SKILL.md", "review/a.txt"]

    client.post(f"/settings/skills/{skill.pk}/delete/")
    assert not Skill.objects.exists()


@pytest.mark.parametrize(
    ("name", "data", "sentence"),
    [
        ("x.zip", b"PK broken", "The ZIP file can't be read."),
        ("SKILL.md", b"No name", "The file says no name"),
        ("x.md", b"", "The file is empty."),
        ("x.md", b"x" * (5 * 1024 * 1024 + 1), "larger than 5 MB"),
    ],
)
def test_a_file_that_is_no_skill_is_refused_with_a_sentence(
    client: Client, name: str, data: bytes, sentence: str
) -> None:
    response = upload(client, name, data)

    assert response.status_code == 422
    assert sentence in page_of(response).words
    assert not Skill.objects.exists()


def test_a_skill_is_written_and_changed_in_a_form(client: Client) -> None:
    fields = {"name": "Plan it", "description": "When", "content": "Think."}
    assert client.post("/settings/skills/new/", fields).status_code == 302
    skill = Skill.objects.get()
    assert skill.name == "plan-it"

    address = f"/settings/skills/{skill.pk}/"
    assert page_of(client.get(address)).find("id_content").text.strip() == "Think."
    changed = {**fields, "content": "Think twice."}
    assert client.post(address, changed).status_code == 302
    skill.refresh_from_db()
    assert skill.content == "Think twice."

    again = client.post("/settings/skills/new/", {**fields, "name": "PLAN it"})
    assert again.status_code == 422
    assert "You have a skill “plan-it” already." in page_of(again).words


def test_files_of_a_skill_are_removed_in_its_form(client: Client, alice: User) -> None:
    skill, _ = skills.add_package(alice, PACKAGE)
    address = f"/settings/skills/{skill.pk}/"
    fields = {"name": "review", "description": "When", "content": "Look."}

    assert "a.txt (1 bytes)" in page_of(client.get(address)).words
    client.post(address, {**fields, "removed": ["a.txt"]})

    assert not skill.files.exists()


# Templates


def rows(*fields: dict[str, str]) -> dict[str, str]:
    data = {"fields-TOTAL_FORMS": str(len(fields)), "fields-INITIAL_FORMS": "0"}
    for number, field in enumerate(fields):
        data |= {f"fields-{number}-{key}": value for key, value in field.items()}
    return data


ALL_TYPES = (
    {"name": "who", "type": "text", "required": "on", "default": "me"},
    {"name": "why", "type": "long_text"},
    {"name": "many", "type": "number", "label": "How many"},
    {"name": "how", "type": "choice", "options": "fast\n\nwell\nfast"},
    {"name": "day", "type": "date"},
    {"name": "", "type": "text"},
)
TEXT = "{{who}}, {{why}}, {{many}}, {{how}}, {{day}}, {{new}}"


@pytest.fixture
def template(client: Client) -> PromptTemplate:
    fields = {"name": "Ask", "text": TEXT, **rows(*ALL_TYPES)}
    assert client.post("/settings/templates/new/", fields).status_code == 302
    return PromptTemplate.objects.get()


def test_a_template_is_made_with_typed_fields(
    client: Client, template: PromptTemplate
) -> None:
    assert [(f["name"], f["type"]) for f in template.fields] == [
        *(("who", "text"), ("why", "long_text"), ("many", "number")),
        *(("how", "choice"), ("day", "date"), ("new", "text")),
    ]
    assert template.fields[3]["options"] == ["fast", "well"]
    page = page_of(client.get(f"/settings/templates/{template.pk}/"))
    names = page.find_all("input", name="fields-5-name")
    assert names[0].attributes["value"] == "new"


def test_filling_one_in_gives_the_text_to_a_new_agent(
    client: Client, template: PromptTemplate
) -> None:
    address = f"/settings/templates/{template.pk}/use/"
    form = page_of(client.get(address))
    assert form.find("id_field_who").attributes["value"] == "me"
    assert form.find("id_field_many").attributes["type"] == "number"
    assert form.find("id_field_day").attributes["type"] == "date"

    values = {"who": "you", "why": "a\nb", "many": "10.50", "how": "well"}
    data = {f"field_{name}": value for name, value in values.items()}
    page = page_of(
        client.post(address, {**data, "field_day": "2026-12-01", "field_new": "{{x}}"})
    )

    (task,) = page.find("new-agent").find_all("textarea", name="task")
    assert task.text.strip() == "you, a\nb, 10.5, well, 2026-12-01, {{x}}"


def test_or_to_the_composer_of_a_session(
    client: Client, template: PromptTemplate, run: Run, bob: User, sign_in: SignIn
) -> None:
    factories.end_turn(run)
    session: AgentSession = run.session
    foreign = factories.make_session(bob)
    address = f"/settings/templates/{template.pk}/use/"
    listed = page_of(client.get(f"/settings/templates/?session={session.pk}"))
    links = [node.attributes.get("href") for node in listed.find_all("a")]
    assert f"{address}?session={session.pk}" in links

    data = {"field_who": "you", "field_new": "now", "session": str(session.pk)}
    page = page_of(client.post(address, data))

    assert page.find("composer-text").text == "you, , , , , now"
    assert session.messages.count() == 1
    assert client.post(address, {**data, "session": foreign.pk}).status_code == 404


@pytest.mark.parametrize(
    ("data", "sentence"),
    [
        ({"field_new": "x", "field_who": ""}, "This field is required."),
        ({"field_many": "lots"}, "Enter a number."),
        ({"field_how": "badly"}, "Select a valid choice."),
        ({"field_day": "someday"}, "Enter a valid date."),
    ],
)
def test_values_that_dont_fit_are_said(
    client: Client, template: PromptTemplate, data: dict[str, str], sentence: str
) -> None:
    response = client.post(f"/settings/templates/{template.pk}/use/", data)

    assert response.status_code == 422
    assert sentence in page_of(response).words


@pytest.mark.parametrize(
    ("field", "sentence"),
    [
        ({"name": "no good"}, "letters, digits and underscores"),
        ({"name": "how", "type": "choice"}, "A choice needs options"),
        ({"name": "unused"}, "does not use the field"),
    ],
)
def test_fields_that_dont_fit_are_said_and_nothing_typed_is_lost(
    client: Client, field: dict[str, str], sentence: str
) -> None:
    fields = {"name": "Ask", "text": "How? {{how}}", **rows(field)}

    response = client.post("/settings/templates/new/", fields)

    assert response.status_code == 422
    assert sentence in page_of(response).words
    assert page_of(response).find("id_text").text.strip() == "How? {{how}}"
    assert not PromptTemplate.objects.exists()


def test_a_template_is_deleted(client: Client, template: PromptTemplate) -> None:
    client.post(f"/settings/templates/{template.pk}/delete/")

    assert not PromptTemplate.objects.exists()
