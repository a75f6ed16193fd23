"""Adding pictures, paths, tools and skills to a message, and seeing them on it."""

from __future__ import annotations

import io
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client
from PIL import Image

from agents.domain import messages, skills
from agents.models import AgentSession, Message, Run, Share, User
from agents.models.sessions import ShareRight
from agents.rendering.images import keep_image
from agents.workspaces.skill_packages import SkillPackage
from tests import factories
from tests.dom import Node, parse

HTMX = {"HX-Request": "true"}
SignIn = Callable[[User], Client]

pytestmark = pytest.mark.django_db


def png(name: str = "red.png") -> SimpleUploadedFile:
    out = io.BytesIO()
    Image.new("RGB", (8, 4), "red").save(out, "PNG")
    return SimpleUploadedFile(name, out.getvalue(), content_type="text/html")


def page_of(response: Any) -> Node:
    return parse(response.content.decode())


def send(client: Client, session: AgentSession, **fields: Any) -> Any:
    headers = fields.pop("headers", HTMX)
    data = {"text": "Look at this", **fields}
    return client.post(f"/sessions/{session.pk}/messages/", data, headers=headers)


@pytest.fixture
def idle(run: Run) -> AgentSession:
    factories.end_turn(run)
    (Path(run.session.cwd) / "src").mkdir()
    (Path(run.session.cwd) / "src" / "app.py").write_text("pass")
    return run.session


@pytest.fixture
def pictured(idle: AgentSession, alice: User) -> Message:
    file = png()
    image = keep_image(file.read(), "red.png")
    return messages.send_message(
        idle, author=alice, text="Look", attachments={"images": [image]}
    )


def test_all_that_was_added_is_kept_and_shown(
    idle: AgentSession, alice: User, sign_in: SignIn
) -> None:
    skills.add_package(alice, SkillPackage("review", "When", "Look twice."))
    client = sign_in(alice)

    response = send(
        client,
        idle,
        path=["src/app.py"],
        paths="src\n\n later.txt ",
        tools=["Grep"],
        skills=["review"],
        images=[png(), png("blue.png")],
    )

    assert response.status_code == 200
    message = idle.messages.order_by("-seq")[0]
    assert message.content["attached"] == {
        "paths": ["src/app.py", "src/", "later.txt"],
        "tools": ["Grep"],
        "skills": ["review"],
        "images": ["red.png", "blue.png"],
    }
    fresh = page_of(response).find("composer-add")
    assert "open" not in fresh.find_all("details")[0].attributes
    assert not [n for n in fresh.find_all("input") if "checked" in n.attributes]
    shown = page_of(client.get(f"/sessions/{idle.pk}/")).find(f"message-{message.pk}")
    (attached,) = shown.find_all("ul", aria_label="Attached")
    assert attached.words == "src/app.py src/ later.txt Skill review Grep"
    assert [node.attributes["alt"] for node in attached.find_all("img")] == [
        *("red.png", "blue.png")
    ]


def test_a_picture_is_shown_to_whoever_sees_the_message(
    pictured: Message, alice: User, charlie: User, sign_in: SignIn
) -> None:
    address = f"/messages/{pictured.pk}/image/"

    whole = sign_in(alice).get(address, {"n": "0"})
    small = sign_in(alice).get(address, {"n": "0", "small": "1"})

    assert (whole["Content-Type"], small["Content-Type"]) == ("image/png", "image/jpeg")
    assert whole["X-Content-Type-Options"] == "nosniff"
    assert whole["Cache-Control"].startswith("private")
    assert Image.open(io.BytesIO(whole.content)).size == (8, 4)
    assert sign_in(charlie).get(address, {"n": "0"}).status_code == 404
    for wrong in ("1", "-1", "x", "", "9999"):
        assert sign_in(alice).get(address, {"n": wrong}).status_code == 404


@pytest.mark.parametrize(
    ("fields", "sentence"),
    [
        ({"images": [SimpleUploadedFile("x.png", b"<script>")]}, "is not a picture"),
        ({"images": [SimpleUploadedFile("x.png", b"")]}, "empty"),
        ({"images": [png() for _ in range(9)]}, "takes 8 pictures"),
        ({"paths": "/etc/passwd"}, "outside the session"),
        ({"path": ["../x"]}, "belongs to the site"),
        ({"tools": ["Teleport"]}, "not one of the available choices"),
        ({"skills": ["gone"]}, "not one of the available choices"),
    ],
)
def test_what_cant_be_added_is_said_and_nothing_sent(
    idle: AgentSession,
    alice: User,
    sign_in: SignIn,
    fields: dict[str, Any],
    sentence: str,
) -> None:
    client = sign_in(alice)

    for headers in ({}, HTMX):
        for file in fields.get("images") or ():
            file.seek(0)
        response = send(client, idle, **fields, headers=headers)

        assert response.status_code == 422
        assert sentence in page_of(response).find("composer-errors").words
        if not headers:
            assert page_of(response).find("composer-text").text == "Look at this"
            (fold,) = page_of(response).find("composer-add").find_all("details")
            assert "open" in fold.attributes
    assert idle.messages.count() == 1


def test_the_folders_files_are_listed_to_be_ticked(
    idle: AgentSession, alice: User, bob: User, sign_in: SignIn
) -> None:
    folder = Path(idle.cwd)
    (folder / ".hidden").touch()
    (folder / "way-out").symlink_to("/etc")
    Share.objects.create(session=idle, user=bob, right=ShareRight.VIEW)
    address = f"/sessions/{idle.pk}/paths/"

    ticked = page_of(sign_in(alice).get(address, headers=HTMX))
    page = page_of(sign_in(alice).get(address))

    boxes = ticked.find_all("input", name="path")
    assert [box.attributes["value"] for box in boxes] == ["src/", "src/app.py"]
    assert "src/app.py" in page.words
    assert sign_in(bob).get(address).status_code == 403


def test_a_new_agent_takes_them_along(alice: User, sign_in: SignIn) -> None:
    client = sign_in(alice)
    fields = {
        **{"task": "Look", "mode": "agent", "effort": "low", "network": "none"},
        **{"security_mode": "ask", "paths": "a.txt"},
    }

    refused = client.post("/sessions/new/", {**fields, "paths": "/etc/passwd"})
    launched = client.post("/sessions/new/", {**fields, "images": png()})

    assert refused.status_code == 422
    assert "leaves the agent's folder" in page_of(refused).find("new-agent-add").words
    assert launched.status_code == 302
    (message,) = Message.objects.all()
    assert message.content["attached"] == {"paths": ["a.txt"], "images": ["red.png"]}


def test_an_edit_shows_and_keeps_what_came_with_the_message(
    pictured: Message, alice: User, sign_in: SignIn
) -> None:
    client = sign_in(alice)
    address = f"/messages/{pictured.pk}/edit/"

    assert page_of(client.get(address)).find_all("ul", aria_label="Attached")
    assert client.post(address, {"text": "Look again"}).status_code == 302

    edited = Message.objects.get(text="Look again")
    assert edited.attachments == pictured.attachments
    assert edited.content == pictured.content
