"""The plugin folder through which the CLI's own Skill tool finds a person's skills.

    <data>/cli/<session>/s/<digest>/.claude-plugin/plugin.json
                                    skills/<name>/SKILL.md and its further files

Written anew for each state of the skills, so that its path says what is in it, and
shown to the agent read-only. A link or a hook can't be in it: everything is written
here from rows.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from pathlib import Path
from uuid import UUID

from agents.conf import cli_homes_dir

from .disk import private_folder, remove_tree
from .skill_packages import MAIN_FILE, SkillPackage, safe_path, skill_file

PLUGIN_NAME = "my"
"""The model sees the skills as `my:<name>`."""


def plugins_path(session_id: UUID) -> Path:
    """Where the session's plugin folders are, or will be; nothing is made."""
    return cli_homes_dir() / session_id.hex / "s"


def write_plugin(session_id: UUID, skills: Sequence[SkillPackage]) -> Path | None:
    """The folder with exactly these skills; None where there are none."""
    if not skills:
        return None
    texts = _texts(skills)
    folder = plugins_path(session_id) / _digest(texts)
    if folder.is_dir():
        return folder.resolve()
    private_folder(folder.parent)
    half_made = folder.with_suffix(".new")
    remove_tree(half_made)
    for path, data in texts.items():
        file = half_made / path
        file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        file.write_bytes(data)
        file.chmod(0o400)
    half_made.rename(folder)
    return folder.resolve()


def forget_other_plugins(session_id: UUID, kept: Path | None) -> None:
    """Remove earlier states; no process of the session may be alive."""
    folder = plugins_path(session_id)
    if not folder.is_dir():
        return
    for earlier in folder.iterdir():
        if kept is None or earlier.name != kept.name:
            remove_tree(earlier)


def _texts(skills: Sequence[SkillPackage]) -> dict[str, bytes]:
    manifest = {"name": PLUGIN_NAME, "description": "Skills of this person"}
    texts = {".claude-plugin/plugin.json": json.dumps(manifest).encode()}
    for skill in skills:
        base = f"skills/{skill.name}"
        main = skill_file(skill.name, skill.description, skill.content)
        texts[f"{base}/{MAIN_FILE}"] = main.encode()
        for path, data in skill.files.items():
            texts[f"{base}/{safe_path(path)}"] = data
    return texts


def _digest(texts: dict[str, bytes]) -> str:
    digest = hashlib.sha256()
    for path, data in sorted(texts.items()):
        for part in (path.encode(), data):
            digest.update(len(part).to_bytes(8, "big") + part)
    return digest.hexdigest()[:16]
