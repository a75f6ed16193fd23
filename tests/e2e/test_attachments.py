"""Adding to a message what is not words: ticked, picked and pasted."""

from __future__ import annotations

import base64
import io

import pytest
from PIL import Image
from playwright.sync_api import expect

from .people import Person

pytestmark = [pytest.mark.e2e, pytest.mark.cli]

_PASTE = """(field, data) => {
  const bytes = Uint8Array.from(atob(data), (c) => c.charCodeAt(0));
  const clipboardData = new DataTransfer();
  clipboardData.items.add(new File([bytes], "pasted.png", { type: "image/png" }));
  const event = new ClipboardEvent("paste", { clipboardData, bubbles: true });
  field.dispatchEvent(event);
}"""


def png() -> bytes:
    out = io.BytesIO()
    Image.new("RGB", (30, 20), "green").save(out, "PNG")
    return out.getvalue()


def test_a_message_takes_along_what_was_ticked_and_pasted(olivia: Person) -> None:
    session = olivia.start_agent(
        "write the file notes.md with the text `milk`", Security_mode="full"
    )
    session.ends_as("Completed")
    page = session.page
    add = page.locator("#composer-add")
    field = page.get_by_label("Message", exact=True)

    field.evaluate(_PASTE, base64.b64encode(png()).decode())
    expect(add.locator("details")).to_have_attribute("open", "")
    add.get_by_label("notes.md").check()
    add.get_by_label("Grep: search in files").check()
    expect(add).to_contain_text("3 chosen")
    field.fill("say thanks")
    field.press("Enter")
    session.ends_as("Completed", turns=2)

    attached = session.transcript.get_by_role("list", name="Attached")
    expect(attached).to_contain_text("notes.md")
    expect(attached).to_contain_text("Grep")
    expect(attached.get_by_alt_text("pasted.png")).to_be_visible()
    expect(add.locator("details")).not_to_have_attribute("open", "")
    page.get_by_label("Session menu").click()
    page.get_by_role("link", name="What the model saw").click()
    seen = page.get_by_role("main")
    expect(seen).to_contain_text('<context_file path="notes.md">')
    expect(seen).to_contain_text("image/png, about")
