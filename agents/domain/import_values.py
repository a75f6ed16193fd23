"""What of an imported message's data is kept."""

from __future__ import annotations

from pathlib import PurePosixPath
from typing import Any

from agents.models.messages import MessageRole
from agents.rendering.images import is_kept_image

from .export import IMPORTED_KIND

_IMAGE_KINDS = {"image/png", "image/jpeg", "image/gif", "image/webp"}


def kept_content(role: str, content: dict[str, Any]) -> dict[str, Any]:
    if role == MessageRole.SYSTEM and content.get("kind") == IMPORTED_KIND:
        return {}
    return content


def kept_attachments(attached: dict[str, Any]) -> dict[str, Any]:
    """What a message may be sent again with; a path only inside of its workspace."""
    kept = {
        "context_paths": [
            item for item in _listed(attached, "context_paths") if _is_inside(item)
        ],
        "skills": [
            item for item in _listed(attached, "skills") if isinstance(item, dict)
        ],
        "forced_tools": [
            item for item in _listed(attached, "forced_tools") if isinstance(item, str)
        ],
        "images": [item for item in _listed(attached, "images") if _is_image(item)],
    }
    return {name: items for name, items in kept.items() if items}


def _listed(attached: dict[str, Any], name: str) -> list[Any]:
    value = attached.get(name)
    return value if isinstance(value, list) else []


def _is_inside(item: Any) -> bool:
    path = item.get("path") if isinstance(item, dict) else item
    if not isinstance(path, str) or not path:
        return False
    parts = PurePosixPath(path)
    return not parts.is_absolute() and not {"..", "~"} & set(parts.parts)


def _is_image(item: Any) -> bool:
    return (
        isinstance(item, dict)
        and str(item.get("media_type")) in _IMAGE_KINDS
        and isinstance(item.get("data"), str)
        and is_kept_image(item["data"], str(item["media_type"]))
    )
