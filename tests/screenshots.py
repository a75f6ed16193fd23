"""`python -m tests.screenshots`: the pictures of the README, from a real server.

Demo model, real CLI, Chromium. Rerun after a change of the pages.
"""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path

from playwright.sync_api import Page, expect, sync_playwright

from tests.server import PASSWORD, ROOT, Server

FOLDER = ROOT / "docs" / "images"
TASK = (
    "think about which flowers feed bees then list the files then write the file"
    " bees.md with the text `# For bees\n\n- sage: May to July\n- lavender: June to"
    " August\n- borage: until the frost`"
)


def main() -> None:
    FOLDER.mkdir(parents=True, exist_ok=True)
    with (
        tempfile.TemporaryDirectory(prefix="os-pictures-") as folder,
        Server(Path(folder) / "data") as server,
        sync_playwright() as playwright,
    ):
        browser = playwright.chromium.launch(
            executable_path=shutil.which("chromium"), args=["--no-sandbox"]
        )
        page = browser.new_page(
            viewport={"width": 1440, "height": 900}, base_url=server.address
        )
        take_session(page, server)
        browser.close()


def take_session(page: Page, server: Server) -> None:
    """An agent that has looked around and now asks before it writes."""
    page.goto(server.setup_path)
    page.get_by_label("Username").fill("olivia")
    page.get_by_label("Password").fill(PASSWORD)
    page.get_by_label("Repeat it").fill(PASSWORD)
    page.get_by_role("button").last.click()
    page.get_by_label("Task", exact=True).fill(TASK)
    page.get_by_role("button", name="Start agent").click()
    expect(page.get_by_role("button", name="Approve", exact=True)).to_be_visible(
        timeout=60_000
    )
    page.screenshot(path=FOLDER / "session.png")


if __name__ == "__main__":
    main()
