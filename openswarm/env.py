"""Reads the process environment for `settings.py`: paths, secrets, overrides.

Nothing else reads `os.environ`. Secret files are made on first use, mode 600.
"""

from __future__ import annotations

import os
import secrets
from dataclasses import fields
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

_TRUE = {"1", "true", "yes", "on"}


def flag(name: str, default: bool = False) -> bool:
    value = os.environ.get(name)
    return default if value is None else value.strip().lower() in _TRUE


def text(name: str, default: str = "") -> str:
    return os.environ.get(name, default)


def words(name: str, default: str = "") -> list[str]:
    """A comma-separated list, blanks dropped."""
    return [part.strip() for part in text(name, default).split(",") if part.strip()]


def secret_file(path: Path) -> str:
    """The secret in `path`; made (mode 600) when it isn't there yet.

    Two processes that start together agree: the file is made exclusively, and
    the loser reads the winner's.
    """
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    try:
        handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except FileExistsError:
        return path.read_text().strip()
    with os.fdopen(handle, "w") as file:
        file.write(secrets.token_urlsafe(48))
    return path.read_text().strip()


def database(url: str, data_dir: Path) -> dict[str, Any]:
    """Django's DATABASES entry for `url` (postgresql://…), or SQLite without one."""
    if not url:
        return {
            "ENGINE": "django.db.backends.sqlite3",
            "NAME": str(data_dir / "openswarm.sqlite3"),
            "CONN_MAX_AGE": None,
            "OPTIONS": {
                "transaction_mode": "IMMEDIATE",
                "timeout": 20,
                "init_command": (
                    "PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL;"
                    "PRAGMA foreign_keys=ON;"
                ),
            },
        }
    parts = urlsplit(url)
    return {
        "ENGINE": "django.db.backends.postgresql",
        "NAME": unquote(parts.path.lstrip("/")),
        "USER": unquote(parts.username or ""),
        "PASSWORD": unquote(parts.password or ""),
        "HOST": unquote(parts.hostname or ""),
        "PORT": str(parts.port or ""),
        "CONN_MAX_AGE": 0,
        "OPTIONS": {"pool": {"min_size": 1, "max_size": 20}},
    }


def conf_overrides(conf_class: type[Any]) -> dict[str, Any]:
    """`OPENSWARM_<FIELD>` variables, converted to the field's type.

    Raises: ValueError naming the variable when it can't be converted.
    """
    found: dict[str, Any] = {}
    for field in fields(conf_class):
        name = f"OPENSWARM_{field.name.upper()}"
        if name in os.environ:
            found[field.name] = _convert(name, os.environ[name], str(field.type))
    return found


def _convert(name: str, value: str, kind: str) -> Any:
    try:
        match kind:
            case "bool":
                return value.strip().lower() in _TRUE
            case "int":
                return int(value)
            case "float":
                return float(value)
            case _:
                return value
    except ValueError as error:
        raise ValueError(f"{name}={value!r} is not a valid {kind}") from error
