"""What a person sends with a message: paths, tools, skills and pictures.

Stored on the message, so that a retry, an edit and a branch send the same again. A
skill is kept as it was at that moment; of a picture only what the model is given.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final
from uuid import UUID

from agents.errors import InvalidInputError
from agents.models import AgentSession, Skill, User
from agents.policy.calls import ToolCall
from agents.policy.decision import decide
from agents.policy.modes import Effect
from agents.rendering.images import KeptImage

from .permissions import policy_context, surroundings_of

ATTACHED: Final = "attached"
"""The key of a message's content under which pages find what to show."""
MAX_PATHS: Final = 50
MAX_SKILLS: Final = 10
MAX_IMAGES: Final = 8
MAX_PATH_CHARACTERS: Final = 1000
_COMMAND = re.compile(r"/([a-z0-9]+(?:-[a-z0-9]+)*)(?=\s|$)")
# Those that say whether a path may be read at all; the mode says who is asked, and
# here a person does it.
_GUARDS = frozenset({"bounds", "paths", "rules", "tool policy"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Attached:
    """What was chosen in a form."""

    paths: tuple[str, ...] = ()
    tools: tuple[str, ...] = ()
    skills: tuple[Skill, ...] = ()
    images: tuple[KeptImage, ...] = ()


def attachments_of(
    chosen: Attached, *, session: AgentSession | None = None
) -> dict[str, Any]:
    """As a message stores it. Without a session paths are judged when they are read.

    Raises: InvalidInputError naming the field.
    """
    _check_counts(chosen)
    kinds = {
        "context_paths": [_checked_path(path, session) for path in chosen.paths],
        "forced_tools": list(chosen.tools),
        "skills": [_snapshot(skill) for skill in chosen.skills],
        "images": list(chosen.images),
    }
    return {kind: items for kind, items in kinds.items() if items}


def _check_counts(chosen: Attached) -> None:
    for field, items, limit in (
        ("paths", chosen.paths, MAX_PATHS),
        ("skills", chosen.skills, MAX_SKILLS),
        ("images", chosen.images, MAX_IMAGES),
    ):
        if len(items) > limit:
            raise InvalidInputError(
                f"A message takes {limit} of these; {len(items)} were chosen.",
                field=field,
            )


def _checked_path(path: str, session: AgentSession | None) -> str:
    if len(path) > MAX_PATH_CHARACTERS:
        raise InvalidInputError("This path is too long.", field="paths")
    if session is None:
        if path.startswith(("/", "~")) or ".." in Path(path).parts:
            raise InvalidInputError(
                f"“{path}” leaves the agent's folder. Name what is in it.",
                field="paths",
            )
        return path
    refused = why_unreadable(session.pk, path)
    if refused is not None:
        raise InvalidInputError(refused, field="paths")
    return _as_stored(Path(session.cwd), path)


def _as_stored(root: Path, path: str) -> str:
    """From the folder on; a folder's name ends in a slash."""
    inside = Path(path)
    if inside.is_absolute() and inside.is_relative_to(root):
        inside = inside.relative_to(root)
    stored = str(inside)
    return f"{stored}/" if (root / inside).is_dir() else stored


def why_unreadable(session_id: UUID, path: str, *, jailed: bool = True) -> str | None:
    """Why the agent itself could not read this path, by the same guards.

    Only the session's folders count: the agent's home and /tmp are other places here
    than in its jail.
    """
    call = ToolCall("Read", {"file_path": path})
    around = surroundings_of(session_id, jailed=jailed)
    context = policy_context(session_id, around)
    context = replace(context, readable_paths=(), plan_dir=None, home=None)
    for step in decide(call, context).trace:
        if step.guard in _GUARDS and step.effect is Effect.DENY:
            return step.reason
    return None


def with_command(
    user: User, text: str, attachments: Mapping[str, Any]
) -> dict[str, Any]:
    """The same, with the skill that the text begins with, as in “/review this”.

    What an earlier text began with is left out.
    """
    found = _COMMAND.match(text)
    name = found[1] if found else ""
    kept = [
        skill
        for skill in _listed(attachments.get("skills"))
        if _name_of(skill) == name or not _is_by_command(skill)
    ]
    if name and all(_name_of(skill) != name for skill in kept):
        skills = Skill.objects.visible_to(user).filter(name=name)
        kept += [{**_snapshot(skill), "by_command": True} for skill in skills]
    changed = {**attachments, "skills": kept}
    return {key: value for key, value in changed.items() if key != "skills" or value}


def _is_by_command(skill: Any) -> bool:
    return isinstance(skill, Mapping) and bool(skill.get("by_command"))


def _snapshot(skill: Skill) -> dict[str, Any]:
    return {"id": str(skill.pk), "name": skill.name, "content": skill.content}


def summary(attachments: Mapping[str, Any]) -> dict[str, Any]:
    """What pages show, without the pictures and texts themselves."""
    found = {
        "paths": [_name_of(item) for item in _listed(attachments.get("context_paths"))],
        "tools": [_name_of(item) for item in _listed(attachments.get("forced_tools"))],
        "skills": [_name_of(item) for item in _listed(attachments.get("skills"))],
        "images": [_name_of(item) for item in _listed(attachments.get("images"))],
    }
    return {kind: names for kind, names in found.items() if names}


def _name_of(item: Any) -> str:
    if isinstance(item, Mapping):
        return str(item.get("path") or item.get("name") or "unnamed")
    return str(item)


def _listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def with_summary(
    content: Mapping[str, Any], attachments: Mapping[str, Any]
) -> dict[str, Any]:
    """A message's content with what pages show of its attachments."""
    rest = {key: value for key, value in content.items() if key != ATTACHED}
    shown = summary(attachments)
    return {**rest, ATTACHED: shown} if shown else rest


def chosen_skills(user: User, names: Iterable[str]) -> tuple[Skill, ...]:
    """The person's skills with these names, in their order."""
    return tuple(Skill.objects.visible_to(user).filter(name__in=list(names)))
