"""Reads the process environment for `settings.py`: paths, secrets, overrides.

Nothing else reads `os.environ`. Secret files are made on first use, mode 600. What
can't be read is an ImproperlyConfigured error whose text names the variable; a switch
with a typing error must not silently be off.
"""

from __future__ import annotations

import math
import os
import secrets
from contextlib import suppress
from dataclasses import fields
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit

from django.core.exceptions import ImproperlyConfigured

PREFIX = "OPENSWARM_"
_TRUE = {"1", "true", "yes", "on"}
_FALSE = {"0", "false", "no", "off", ""}
_asked: set[str] = set()


def known_variables() -> set[str]:
    """The names of all variables that were asked for since the start."""
    return set(_asked)


def unknown_variables() -> list[str]:
    """Variables of ours that are set and that nothing has asked for."""
    set_ones = {name for name in os.environ if name.startswith(PREFIX)}
    return sorted(set_ones - _asked)


def text(name: str, default: str = "") -> str:
    return _read(name, default)


def flag(name: str, default: bool = False) -> bool:
    return bool(_convert(name, _read(name, "1" if default else "0"), "bool"))


def choice(name: str, default: str, choices: list[str]) -> str:
    value = _read(name, default).strip().upper()
    if value not in choices:
        raise ImproperlyConfigured(f"{name} must be one of {', '.join(choices)}.")
    return value


def words(name: str, default: str = "") -> list[str]:
    """A comma-separated list, blanks dropped."""
    return [part.strip() for part in text(name, default).split(",") if part.strip()]


def secret_file(path: Path) -> str:
    """The secret in `path`; made (mode 600) when it isn't there yet.

    Two processes that start together agree: the file appears at once and whole, and
    the loser reads the winner's.
    """
    try:
        return _secret_in(path)
    except OSError as error:
        raise ImproperlyConfigured(
            f"The data folder {path.parent} can't be written: {error.strerror}. Give"
            " it to this user, or set OPENSWARM_DATA_DIR to another folder."
        ) from error


def _secret_in(path: Path) -> str:
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    if not path.exists():
        draft = path.with_name(f"{path.name}.{os.getpid()}")
        draft.touch(mode=0o600)
        draft.write_text(secrets.token_urlsafe(48))
        with suppress(FileExistsError):
            os.link(draft, path)
        draft.unlink()
    secret = path.read_text().strip()
    if not secret:  # everybody knows that one
        raise ImproperlyConfigured(
            f"{path} is empty. Put the secret back, or delete the file."
        )
    return secret


def database(url: str, data_dir: Path) -> dict[str, Any]:
    """Django's DATABASES entry for `url` (postgresql://…), or SQLite without one.

    What follows a `?` goes to the driver, such as `sslmode=require`.
    """
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
                    "PRAGMA foreign_keys=ON; PRAGMA secure_delete=ON;"
                ),
            },
        }
    parts = urlsplit(url)
    if parts.scheme not in ("postgres", "postgresql"):
        raise ImproperlyConfigured(
            "OPENSWARM_DATABASE_URL must begin with postgresql://."
        )
    return {
        "ENGINE": "django.db.backends.postgresql",
        "NAME": unquote(parts.path.lstrip("/")),
        "USER": unquote(parts.username or ""),
        "PASSWORD": unquote(parts.password or ""),
        "HOST": unquote(parts.hostname or ""),
        "PORT": str(parts.port or ""),
        "CONN_MAX_AGE": 0,
        "OPTIONS": {
            "pool": {"min_size": 1, "max_size": 20},
            **dict(parse_qsl(parts.query)),
        },
    }


def conf_overrides(conf_class: type[Any]) -> dict[str, Any]:
    """`OPENSWARM_<FIELD>` variables, converted to the field's type."""
    found: dict[str, Any] = {}
    for field in fields(conf_class):
        name = f"{PREFIX}{field.name.upper()}"
        value = _read(name, "")
        if value:
            found[field.name] = _convert(name, value, str(field.type))
    return found


def _read(name: str, default: str) -> str:
    _asked.add(name)
    return os.environ.get(name, default)


def _convert(name: str, value: str, kind: str) -> bool | int | float | str:
    try:
        match kind:
            case "bool":
                return _to_bool(value.strip().lower())
            case "int":
                return int(value)
            case "float":
                return _to_finite(value)
            case _:
                return value
    except ValueError as error:
        wanted = {"bool": "on or off", "int": "a whole number", "float": "a number"}
        raise ImproperlyConfigured(
            f"{name} must be {wanted[kind]}, not {value!r}."
        ) from error


def _to_finite(value: str) -> float:
    number = float(value)
    if not math.isfinite(number):
        raise ValueError(value)
    return number


def _to_bool(value: str) -> bool:
    if value not in _TRUE | _FALSE:
        raise ValueError(value)
    return value in _TRUE
